"""Plan a run: scale the figures of a sample to the whole corpus, and describe them.

The number of distinct words grows as a power of the text's length (Herdan 1960, Heaps 1978). Part of each count is set
aside for words that the sample lacks: more than half of the discount of Ney, Essen and Kneser (1994).
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.allocator import peak_memory_bytes
from elmo_zh.config import Config, result_settings, shipped_configs
from elmo_zh.corpus.sources import Sources
from elmo_zh.engine.select import EngineChoice
from elmo_zh.language import translate
from elmo_zh.planning import PlanLimits
from elmo_zh.planning.sample import Sample, Trial, take_sample, try_sample
from elmo_zh.run.record import STAGES
from elmo_zh.run.reporter import Reporter, aligned, counted, format_bytes, format_seconds
from elmo_zh.text.han import count_han
from elmo_zh.version import __version__
from elmo_zh.vocabulary.coverage import ROUND_SIZES, coverage_lines
from elmo_zh.vocabulary.vocabulary import SPECIALS
from elmo_zh.word2vec.implementations import choose_epochs

PLAN_FORMAT = 3
THIS_CONFIG = "this run"
_CONFIGURED = ("text", "vocab", "word2vec", "model", "train")
_DIGITS = {"coverage": 6, "seconds": 2}
# Memory of Python with the modules that stages import, of a word in a table of counts, and of a row with its word.
_PROCESS_BYTES, _WORD_BYTES, _ROW_BYTES = 60_000_000, 140, 600
# A vocabulary is large enough if it covers this much, or almost as much as all frequent words together.
ENOUGH_COVERAGE, LITTLE_GAIN = 0.95, 0.01
_DISCOUNTED = 0.6  # measured on four corpora

# Figures of the corpus, in the order in which they are shown, with their titles.
_CORPUS = {
    "documents": "documents", "characters": "characters", "kept_characters": "characters kept",
    "sentences": "sentences", "tokens": "tokens", "distinct_words": "distinct words", "rows": "vocabulary rows",
}  # fmt: skip
# The stage that writes the files behind each figure of disk space.
_MAKERS = {"segmented": "segment", "ids": "encode", "word2vec": "word2vec", "checkpoints": "train", "model": "export"}


@dataclass(frozen=True, kw_only=True)
class Words:
    """The numbers of distinct and frequent words, and the fractions of the text that the first `ranks` words cover."""

    distinct: float
    frequent: float
    ranks: NDArray[np.float64]
    covered: NDArray[np.float64]

    def share(self, num_words: float) -> float:
        """Return the fraction of tokens that the `num_words` most frequent words cover."""
        return float(np.interp(math.log1p(num_words), np.log1p(self.ranks), self.covered))

    def recommended_size(self) -> int:
        """Return the smallest round size that covers enough of the text."""
        enough = min(ENOUGH_COVERAGE, self.share(self.frequent) - LITTLE_GAIN)
        return next((size for size in ROUND_SIZES if self.share(size) >= enough), ROUND_SIZES[-1])


def words_of(counts: Iterable[int], factor: float, min_count: int) -> Words:
    """Estimate the vocabulary of a text `factor` times as long as a sample with these counts (1: the sample itself)."""
    found = np.array(sorted(counts, reverse=True), np.int64)
    half = np.random.default_rng(1).binomial(found, 0.5)

    def power(least: int) -> float:
        whole, *halves = (int((each >= least).sum()) for each in (found, half, found - half))
        return math.log2(2 * max(1, whole) / max(1, sum(halves)))

    growth = power(1)
    distinct = len(found) * factor**growth
    # The number of frequent words grows faster: its power has a surplus, which halves whenever the text doubles.
    surplus = (power(min_count) - growth) * (1 - 1 / factor)
    frequent = int((found >= min_count).sum()) * factor**growth * 4**surplus
    once, twice = (int((found == number).sum()) for number in (1, 2))
    discount = _DISCOUNTED * (1 - 1 / factor) * once / max(1, once + 2 * twice)
    covered = np.cumsum([0.0, *(found - discount)]) / max(1, found.sum())
    ranks = np.arange(len(covered), dtype=np.float64)
    if factor > 1:
        ranks, covered = np.append(ranks, max(distinct, ranks[-1] + 1)), np.append(covered, 1.0)
    return Words(distinct=distinct, frequent=frequent, ranks=ranks, covered=covered)


def make_plan(
    sources: Sources, config: Config, user_dictionary: Path | None, limits: PlanLimits, reporter: Reporter
) -> dict[str, Any]:
    """Estimate the counts, times, disk space and memory of a run from a sample; return the content of plan.json."""
    config = replace(config, text=replace(config.text, user_dictionary=str(user_dictionary or "")))
    sample = take_sample(sources.sources, config.text, limits)
    reporter.note("Trying the stages on the sample ...")
    trial = try_sample(sources, sample, config, limits.seconds)
    process_bytes = peak_memory_bytes()
    if not count_han(trial.words):
        reporter.warn(
            "The part of this corpus that was read contains no Chinese characters. Check that it is the right corpus."
        )
    # The corpus has this many times the text of the sample, not counting copies.
    originals = sample.totals["line_characters"] - sample.totals.get("copied_characters", 0)
    factor = 1 if sample.is_all else originals / sum(len(line) for block in sample.blocks for line in block.lines)
    words = words_of(trial.words.values(), factor, config.vocab.min_count)
    figures = _counts(sample, trial, factor, words, config)
    num_workers = EngineChoice(num_workers=config.text.num_workers).num_processes(sample.totals["line_bytes"])
    figures |= _seconds(sample, trial, factor, num_workers, choose_epochs(config.word2vec, figures["tokens"]).epochs)
    figures |= _bytes(trial, factor, figures["rows"], config)
    worker_bytes = process_bytes + _WORD_BYTES * figures["distinct_words"]
    early_bytes = num_workers * worker_bytes + (_PROCESS_BYTES if num_workers > 1 else 0)
    memory = dict.fromkeys(("segment", "vocab", "encode"), early_bytes)
    vector_bytes = figures["rows"] * (2 * 4 * config.model.projection_dim + _ROW_BYTES)
    memory["word2vec"] = 2 * _PROCESS_BYTES + vector_bytes if config.word2vec.enabled else 0
    training = {}
    if not limits.no_training:
        reporter.note("Trying a few training steps ...")
        training = _training(config, figures, words)
        this = training[THIS_CONFIG]
        checkpoints = config.train.keep_checkpoints * this["checkpoint_bytes"]
        figures |= {"seconds.train": this["seconds"], "bytes.checkpoints": checkpoints}
        figures["bytes.model"], memory["train"] = this["bundle_bytes"], this["memory_bytes"]
    layers = config.model.num_layers + 1 if config.embed.layers == "all" else 1
    token_bytes = layers * 2 * config.model.projection_dim * (2 if config.embed.dtype == "float16" else 4)
    return {
        "format": PLAN_FORMAT,
        "elmo_zh": __version__,
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "settings": {name: result_settings(getattr(config, name)) for name in _CONFIGURED},
        "sample": _described(sample),
        "figures": {name: round(value, _DIGITS.get(name.split(".")[0])) for name, value in figures.items()},
        "coverage_curve": [
            {"words": size, "share": round(words.share(size), 4)} for size in ROUND_SIZES if size < words.distinct
        ],
        "recommended_vocab_size": words.recommended_size(),
        "memory_bytes": {stage: round(num_bytes) for stage, num_bytes in memory.items()},
        "training": training,
        "embedding_bytes": round(figures["tokens"] * token_bytes),
        "passed_over": sample.passed_over.described(),
    }


def _described(sample: Sample) -> dict[str, Any]:
    return {
        "pieces": len(sample.blocks),
        "files": sample.num_files,
        "corpus_bytes": round(sample.totals["line_bytes"]),
        "bytes": sample.num_bytes,
        "share": 1.0 if sample.is_all else round(min(1.0, sample.num_bytes / sample.totals["line_bytes"]), 6),
        "is_all": sample.is_all,
        "places_not_reached": sample.num_unreached,
    }


def _counts(sample: Sample, trial: Trial, factor: float, words: Words, config: Config) -> dict[str, float]:
    figures = {name: factor * trial.counts[name] for name in ("kept_characters", "sentences", "tokens")}
    exact = ("documents", "characters", "distinct_words", "rows", "coverage")
    if sample.is_all:
        return figures | {name: trial.counts[name] for name in exact}
    rows = max(trial.counts["rows"], min(words.frequent + len(SPECIALS), config.vocab.size or math.inf))
    read = (sample.totals["documents"], sample.totals["characters"])
    return figures | dict(zip(exact, (*read, words.distinct, rows, words.share(rows)), strict=True))


def _seconds(sample: Sample, trial: Trial, factor: float, num_workers: int, epochs: int) -> dict[str, float]:
    """Return the time of each stage before training; word2vec was run for one epoch."""
    times = dict.fromkeys(trial.seconds, factor / num_workers) | {"word2vec": factor * epochs}
    seconds = {stage: trial.start[stage] + times[stage] * tried for stage, tried in trial.seconds.items()}
    if not sample.is_all:
        seconds["segment"] += sample.seconds / num_workers
    return {f"seconds.{stage}": value for stage, value in seconds.items()}


def _bytes(trial: Trial, factor: float, rows: float, config: Config) -> dict[str, float]:
    num_bytes = {name: factor * size for name, size in trial.num_bytes.items()}
    if rows > 2**16 >= trial.counts["rows"] and config.model.mode == "token":
        num_bytes["ids"] *= 2  # each id takes four bytes instead of two
    if "word2vec" in num_bytes:
        num_bytes["word2vec"] = trial.num_bytes["word2vec"] * rows / trial.counts["rows"]
    return {f"bytes.{name}": value for name, value in num_bytes.items()}


def _training(config: Config, figures: Mapping[str, float], words: Words) -> dict[str, dict[str, Any]]:
    # Imported here, so that a plan without training needs no torch.
    from elmo_zh.training.trial import forecast_training

    heldout = min(config.text.heldout_share, config.text.heldout_max_tokens / figures["tokens"])
    predictions = round((figures["tokens"] + figures["sentences"]) * (1 - heldout))
    # A model to start from brings its words and its sizes.
    configs = {THIS_CONFIG: config} if config.vocab.init else {THIS_CONFIG: config, **shipped_configs()}
    num_words = round(figures["rows"]) - len(SPECIALS) if config.vocab.init else round(words.frequent)
    return forecast_training(configs, predictions, round(figures["tokens"] * heldout), num_words)


def describe_plan(plan: Mapping[str, Any]) -> Iterator[str]:
    """Yield a plan as lines for the screen: the sample, the counts, and the needs of each stage and of training."""
    figures = plan["figures"]
    yield from _sample_lines(plan["sample"], plan["passed_over"])
    yield ""
    counts = [(title, f"{figures[name]:,.0f}") for name, title in _CORPUS.items()]
    rows = [(translate(name), shown) for name, shown in (*counts, ("tokens covered", f"{figures['coverage']:.2%}"))]
    yield from aligned(rows, header=("corpus", "exactly" if plan["sample"]["is_all"] else "about"))
    yield ""
    yield from coverage_lines(plan["coverage_curve"])
    size, enough = plan["settings"]["vocab"]["size"], plan["recommended_vocab_size"]
    if plan["settings"]["vocab"]["init"]:
        yield f"The vocabulary has {figures['rows']:,.0f} rows, including all rows of the model to start from."
    else:
        yield (
            f"Recommended: vocab.size = {enough:,}. More words would cover little more text. The current setting,"
            f" {size:,}, gives {figures['rows']:,.0f} rows."
        )
    yield ""
    yield from _stage_lines(plan["memory_bytes"], figures)
    if plan["training"]:
        yield ""
        yield from _training_lines(plan["training"])
    yield ""
    size = format_bytes(plan["embedding_bytes"])
    yield f"The vectors of the whole corpus, with the settings of section embed, would take up about {size}."


def _sample_lines(sample: Mapping[str, Any], passed_over: Mapping[str, Any]) -> Iterator[str]:
    files, size = counted(sample["files"], "file"), format_bytes(sample["bytes"])
    if sample["is_all"]:
        yield f"The whole corpus was read: {files}, {size}."
    else:
        blocks, corpus = counted(sample["pieces"], "block"), format_bytes(sample["corpus_bytes"])
        yield f"Sample: {size} in {blocks} from {files}, {sample['share']:.2%} of the corpus (about {corpus} of text)."
    if sample["places_not_reached"]:
        yield (
            f"Files not read to the end in time: {sample['places_not_reached']}; the unread text may differ. To allow"
            " more time: --seconds"
        )
    for reason, found in passed_over.items():
        yield f"Skipped in the sample ({reason}): {found['count']:,}, for example {found['names'][0]}."


def _stage_lines(memory: Mapping[str, float], figures: Mapping[str, float]) -> Iterator[str]:
    rows: list[tuple[str, ...]] = []
    seconds = {stage: figures[name] for stage in STAGES if (name := f"seconds.{stage}") in figures}
    disk = {stage: figures[name] for what, stage in _MAKERS.items() if (name := f"bytes.{what}") in figures}
    for stage in (stage for stage in STAGES if stage in {**seconds, **disk}):
        sizes = [format_bytes(found[stage]) if found.get(stage) else "" for found in (memory, disk)]
        rows.append((stage, format_seconds(seconds[stage]) if stage in seconds else "", *sizes))
    rows.append((translate("total"), format_seconds(sum(seconds.values())), "", format_bytes(sum(disk.values()))))
    yield from aligned(rows, header=("stage", "time", "memory", "disk"))


def _training_lines(training: Mapping[str, Any]) -> Iterator[str]:
    header = ("training with", "rows", "parameters", "tokens", "epochs", "tokens/s", "time", "memory", "speed")
    rows = []
    for name, each in training.items():
        sizes = (f"{each['rows']:,}", f"{each['parameters'] / 1e6:,.1f} M", f"{each['tokens']:,}")
        pace = (f"{each['epochs']:.2f}", f"{each['tokens_per_second']:,.0f}", format_seconds(each["seconds"]))
        speed = translate("measured" if each["is_measured"] else "estimated")
        rows.append((translate(name), *sizes, *pace, format_bytes(each["memory_bytes"]), speed))
    yield from aligned(rows, header=header)
