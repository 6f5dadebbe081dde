"""The plan of a run: what the stages report of a sample, scaled to the corpus."""

import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from elmo_zh.allocator import peak_memory_bytes
from elmo_zh.config import Config, VocabConfig, result_settings, shipped_configs
from elmo_zh.corpus.sources import Sources
from elmo_zh.engine.select import EngineChoice
from elmo_zh.planning import PlanLimits
from elmo_zh.planning.sample import Sample, Trial, take_sample, try_sample
from elmo_zh.planning.words import Words, words_of
from elmo_zh.run.reporter import Reporter
from elmo_zh.text.han import count_han
from elmo_zh.version import __version__
from elmo_zh.vocabulary.coverage import ROUND_SIZES
from elmo_zh.vocabulary.vocabulary import SPECIALS
from elmo_zh.word2vec.implementations import choose_epochs

PLAN_FORMAT = 2
THIS_CONFIG = "this run"
SECTIONS = ("text", "vocab", "word2vec", "model", "train")
_DIGITS = {"coverage": 6, "seconds": 2}
# Memory of Python with what the early stages import, of a word in a table of counts, of a row with its word.
_PROCESS_BYTES, _WORD_BYTES, _ROW_BYTES = 60_000_000, 140, 600


def make_plan(
    sources: Sources, config: Config, user_dictionary: Path | None, limits: PlanLimits, reporter: Reporter
) -> dict[str, Any]:
    """Return the content of plan.json."""
    config = replace(config, text=replace(config.text, user_dictionary=str(user_dictionary or "")))
    sample = take_sample(sources.sources, config.text, limits)
    reporter.note("Trying the stages on the sample ...")
    trial = try_sample(sources, sample, config, limits.seconds)
    process_bytes = peak_memory_bytes()
    if not count_han(trial.words):
        reporter.warn("There is no Chinese character in what was read of this corpus. Check that it is the right one.")
    # How many times as much text as the sample the corpus has, without copies.
    originals = sample.totals["line_characters"] - sample.totals.get("copied_characters", 0)
    factor = 1 if sample.is_all else originals / sum(len(line) for block in sample.blocks for line in block.lines)
    counts, words = trial.counts, words_of(trial.words.values(), factor, config.vocab.min_count)
    figures = {name: factor * counts[name] for name in ("kept_characters", "sentences", "tokens")}
    exact = {name: counts[name] for name in ("documents", "characters", "distinct_words", "rows", "coverage")}
    figures |= exact if sample.is_all else _estimated(sample, words, exact["rows"], config.vocab)
    num_workers = EngineChoice(num_workers=config.text.num_workers).num_processes(sample.totals["line_bytes"])
    figures |= _seconds(sample, trial, factor, num_workers, choose_epochs(config.word2vec, figures["tokens"]).epochs)
    figures |= _bytes(trial, factor, figures["rows"], config)
    memory = _stage_memory(process_bytes, num_workers, figures, config)
    training = {}
    if not limits.no_training:
        reporter.note("Trying some steps of training ...")
        # Imported here, so that a plan without training needs no torch.
        from elmo_zh.training.trial import forecast_training

        heldout = min(config.text.heldout_share, config.text.heldout_max_tokens / figures["tokens"])
        predictions = round((figures["tokens"] + figures["sentences"]) * (1 - heldout))
        heldout_tokens = round(figures["tokens"] * heldout)
        # A model to start from brings its words and its sizes.
        configs = {THIS_CONFIG: config} if config.vocab.init else {THIS_CONFIG: config, **shipped_configs()}
        num_words = round(figures["rows"]) - len(SPECIALS) if config.vocab.init else round(words.frequent)
        training = forecast_training(configs, predictions, heldout_tokens, num_words)
        this = training[THIS_CONFIG]
        checkpoints = config.train.keep_checkpoints * this["checkpoint_bytes"]
        figures |= {"seconds.train": this["seconds"], "bytes.checkpoints": checkpoints}
        figures["bytes.model"], memory["train"] = this["bundle_bytes"], this["memory_bytes"]
    recommended, reason = words.recommended_size()
    sizes = [size for size in ROUND_SIZES if size < words.distinct]
    return {
        "format": PLAN_FORMAT,
        "elmo_zh": __version__,
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "settings": {name: result_settings(getattr(config, name)) for name in SECTIONS},
        "sample": sample.described(),
        "figures": {name: {"value": round(value, _DIGITS.get(name.split(".")[0]))} for name, value in figures.items()},
        "coverage_curve": [{"words": size, "share": round(words.share(size), 4)} for size in sizes],
        "recommended_vocab_size": recommended,
        "recommended_because": reason,
        "memory_bytes": {stage: round(num_bytes) for stage, num_bytes in memory.items()},
        "training": training,
        "embedding_bytes": {"value": round(figures["tokens"] * _vector_bytes(config))},
        "passed_over": sample.passed_over.described(),
    }


def _estimated(sample: Sample, words: Words, least_rows: float, config: VocabConfig) -> dict[str, float]:
    rows = max(least_rows, min(words.frequent + len(SPECIALS), config.size or math.inf))
    read = {name: sample.totals[name] for name in ("documents", "characters")}
    return {**read, "distinct_words": words.distinct, "rows": rows, "coverage": words.share(rows)}


def _seconds(sample: Sample, trial: Trial, factor: float, num_workers: int, epochs: int) -> dict[str, float]:
    """Return the time of each stage before training; word2vec was tried for one epoch."""
    times = dict.fromkeys(trial.seconds, factor / num_workers) | {"word2vec": factor * epochs}
    seconds = {stage: trial.start[stage] + times[stage] * tried for stage, tried in trial.seconds.items()}
    if not sample.is_all:
        seconds["segment"] += sample.seconds / num_workers
    return {f"seconds.{stage}": value for stage, value in seconds.items()}


def _bytes(trial: Trial, factor: float, rows: float, config: Config) -> dict[str, float]:
    """Return the bytes that each stage before training writes."""
    num_bytes = {name: factor * size for name, size in trial.num_bytes.items()}
    if rows > 2**16 >= trial.counts["rows"] and config.model.mode == "token":
        num_bytes["ids"] *= 2  # each id takes four bytes instead of two
    if "word2vec" in num_bytes:
        num_bytes["word2vec"] = trial.num_bytes["word2vec"] * rows / trial.counts["rows"]
    return {f"bytes.{name}": value for name, value in num_bytes.items()}


def _stage_memory(
    process_bytes: int, num_workers: int, figures: Mapping[str, float], config: Config
) -> dict[str, float]:
    """Return about how many bytes of memory each stage takes at most, all its processes together."""
    words, rows = figures["distinct_words"], figures["rows"]
    main_bytes = _PROCESS_BYTES if num_workers > 1 else 0
    encoded = words if config.model.mode == "character" else rows
    vectors = rows * (2 * 4 * config.model.projection_dim + _ROW_BYTES)
    return {
        "segment": main_bytes + num_workers * process_bytes,
        "vocab": main_bytes + num_workers * (_PROCESS_BYTES + _WORD_BYTES * words) + _WORD_BYTES * rows,
        "encode": main_bytes + num_workers * (_PROCESS_BYTES + _WORD_BYTES * encoded),
        "word2vec": 2 * _PROCESS_BYTES + vectors if config.word2vec.enabled else 0,
    }


def _vector_bytes(config: Config) -> int:
    """Return the bytes of the vectors of one token, with the settings of section embed."""
    layers = config.model.num_layers + 1 if config.embed.layers == "all" else 1
    return layers * 2 * config.model.projection_dim * (2 if config.embed.dtype == "float16" else 4)
