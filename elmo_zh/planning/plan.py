"""Plan a run: try the stages up to `encode` on a sample of the corpus, scale their figures, and describe the plan.

The number of distinct words grows as a power of the text's length (Herdan 1960, Heaps 1978). Part of each count is set
aside for words that the sample lacks: up to 0.6 of the discount of Ney, Essen and Kneser (1994).
"""

import math
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from elmo_zh.config import Config, TextConfig, VocabConfig, result_settings
from elmo_zh.corpus.counts import Tally, skipped_lines
from elmo_zh.corpus.read_source import read_lines
from elmo_zh.corpus.sources import Source, Sources
from elmo_zh.engine import EngineChoice
from elmo_zh.errors import CorpusError
from elmo_zh.language import N_, _
from elmo_zh.planning import PlanLimits
from elmo_zh.run.files import folder_bytes
from elmo_zh.run.layout import RunDir
from elmo_zh.run.record import StageContext, load_records
from elmo_zh.run.reporter import Reporter, SilentReporter, aligned, counted, first_ten, format_bytes, format_seconds
from elmo_zh.stages.text import encode, segment, vocab, word2vec
from elmo_zh.text.script import count_han
from elmo_zh.vocabulary.vocabulary import SPECIALS
from elmo_zh.word2vec import choose_epochs

PLAN_FORMAT = 4
# A vocabulary is large enough if it covers this much, or almost as much as all frequent words together.
ENOUGH_COVERAGE, LITTLE_GAIN = 0.95, 0.01
_FEW_LINES = 50
_DISCOUNTED = 0.6  # measured on four corpora
ROUND_SIZES = tuple(1_000 * number for number in (1, 2, 5, 10, 20, 30, 50, 100, 200, 400, 800, 1_600))
_TITLES = {"rows": N_("vocabulary rows")}


# The sample


@dataclass(frozen=True, kw_only=True)
class _WatchedSource(Source):
    """A source that remembers the last file it opened, whose position shows how far reading has come."""

    opened: list[BinaryIO]

    def open_packed(self) -> BinaryIO:
        self.opened[:] = [super().open_packed()]
        return self.opened[0]


class Sample:
    """Lines drawn with equal probability from what was read of a corpus, and what was counted on the way.

    `totals` estimates characters, line_characters and line_bytes of the whole corpus, and `seconds` the time
    to read all of it. `num_unreached` counts the files that were not read to their end.
    """

    def __init__(self, sources: Sequence[Source], config: TextConfig, limits: PlanLimits) -> None:
        """Read the files, largest first, each for its share of the time; raise CorpusError if none has text."""
        self.lines: list[str] = []
        self.tally = Tally()
        self.num_bytes = self.num_files = self.num_unreached = 0
        # All text is counted, even where `segment` would refuse it.
        self._config = replace(config, bad_bytes="skip-line") if config.bad_bytes == "strict" else config
        self._random, self._probability = Random(limits.seed), 1.0  # noqa: S311
        self._most_bytes = limits.sample_megabytes * 1e6
        started_at = time.monotonic()
        sizes = {source: size for source in sources if (size := source.path.stat().st_size)}
        totals, corpus_bytes, bytes_begun, bytes_read = Counter[str](), sum(sizes.values()), 0, 0.0
        for source in sorted(self._random.sample([*sizes], len(sizes)), key=lambda source: -sizes[source]):
            if bytes_begun and time.monotonic() > started_at + limits.seconds:
                self.num_unreached += 1
                continue
            bytes_begun += sizes[source]
            counts, share = self._read(source, started_at + limits.seconds * bytes_begun / corpus_bytes)
            totals += Counter({name: count / share for name, count in counts.items()})
            bytes_read += sizes[source] * share
        self.totals = {name: total * corpus_bytes / bytes_begun for name, total in totals.items()}
        self.seconds = (time.monotonic() - started_at) * corpus_bytes / max(1.0, bytes_read)
        if not any(line.strip() for line in self.lines):
            raise CorpusError.no_text(first_ten([source.name for source in sources]))

    @property
    def is_all(self) -> bool:
        """Whether the lines are the whole corpus."""
        return self._probability == 1 and not self.num_unreached

    def _read(self, source: Source, deadline: float) -> tuple[Counter[str], float]:
        """Read a file until its time is up; return the counts, and the fraction of the file that was read."""
        watched, counts, tally = _WatchedSource(**vars(source), opened=[]), Counter[str](), Tally()
        size, reached, is_whole = source.path.stat().st_size, 0, True
        lines = read_lines(watched, self._config, tally, trusts_head=True)
        for line in lines:
            num_bytes = len(line.encode("utf-8", "replace"))
            counts.update(line_characters=len(line), line_bytes=num_bytes)
            self._keep(line, num_bytes)
            position = 0 if watched.opened[0].closed else watched.opened[0].tell()
            # Lines in bytes that have already been read are used before reading stops.
            if position > reached > 0 and time.monotonic() > deadline:
                lines.close()  # type: ignore[attr-defined]
                is_whole = False
                break
            reached = max(reached, position)
        self.tally.add(tally)
        self.num_files += sum(form.files for form in tally.read_as)
        self.num_unreached += not is_whole
        counts.update(characters=tally.characters + counts["line_characters"])
        return counts, 1.0 if is_whole else reached / size

    def _keep(self, line: str, num_bytes: int) -> None:
        """Keep a line with the current probability; while the sample is too large, halve it and the probability."""
        if self._random.random() < self._probability:
            self.lines.append(line)
            self.num_bytes += num_bytes
        while self.num_bytes > self._most_bytes and len(self.lines) > 1:
            self._probability /= 2
            self.lines = [kept for kept in self.lines if self._random.random() < 0.5]
            self.num_bytes = sum(len(kept.encode("utf-8", "replace")) for kept in self.lines)


@dataclass(frozen=True, kw_only=True)
class Trial:
    """Figures from trying the stages on lines: counts, the training words, and each stage's seconds and bytes."""

    counts: Mapping[str, float]
    words: Counter[str]
    seconds: Mapping[str, float]
    num_bytes: Mapping[str, int]
    factor: float = 1.0  # The corpus has this many times the text


def try_stages(sample: Sample, config: Config, seconds: float) -> Trial:
    """Run the stages up to `encode` on as much of a sample as can be segmented in about this many seconds."""
    # The first trial also loads what the stages need; the second shows how long they take.
    every_word = replace(config, vocab=VocabConfig(size=0, min_count=1))
    few = [_try_lines(sample.lines[:_FEW_LINES], every_word) for _ in range(2)]
    most = max(1, int(seconds * _FEW_LINES / max(1e-3, few[1].seconds["segment"])))
    lines = sample.lines[:: -(-len(sample.lines) // most)]
    return replace(_try_lines(lines, config), factor=sample.totals["line_characters"] / sum(map(len, lines)))


def _try_lines(lines: Sequence[str], config: Config) -> Trial:
    """Run the stages up to `encode` in one process, with at most one epoch of word2vec."""
    text = replace(config.text, format="text", encoding="utf-8", field="")
    config = replace(config, text=text, word2vec=replace(config.word2vec, epochs=1))
    with TemporaryDirectory(prefix="elmo-zh-plan-") as folder:
        path, run = Path(folder, "sample.txt"), RunDir(Path(folder, "run"))
        written = "".join(f"{line}\n" for line in lines)
        path.write_text(written, encoding="utf-8", errors="replace", newline="\n")
        context = StageContext(run=run, config=config, reporter=SilentReporter(), engine=EngineChoice(num_workers=1))
        counts = dict(segment(context, [str(path)]).counts)
        counts |= {name: counts[f"train_{name}"] + counts[f"heldout_{name}"] for name in ("sentences", "tokens")}
        counts |= vocab(context).counts
        if config.word2vec.enabled and not config.word2vec.vectors and not config.train.init:
            word2vec(context)
        encode(context)
        seconds = {stage: record["seconds"] for stage, record in load_records(run).items()}
        paths = {"segment": run.segmented, "word2vec": run.word2vec, "encode": run.ids}
        num_bytes = {stage: folder_bytes(path) for stage, path in paths.items() if path.exists()}
        words = Counter(chain.from_iterable(path.read_text("utf-8").split() for path in run.train_files()))
        return Trial(counts=counts, words=words, seconds=seconds, num_bytes=num_bytes)


# Its words


@dataclass(frozen=True, kw_only=True)
class Words:
    """The numbers of distinct and frequent words, and the fractions of the text that the `ranks` first words cover."""

    distinct: float
    frequent: float
    ranks: NDArray[np.float64]
    covered: NDArray[np.float64]

    def share(self, num_words: float) -> float:
        """Return the fraction of tokens that the `num_words` most frequent words cover."""
        return float(np.interp(math.log1p(num_words), np.log1p(self.ranks), self.covered))

    def recommended_size(self) -> int:
        """Return the smallest round size that covers enough of the text, or else the largest."""
        enough = min(ENOUGH_COVERAGE, self.share(self.frequent) - LITTLE_GAIN)
        return next((size for size in ROUND_SIZES if self.share(size) >= enough), ROUND_SIZES[-1])


def words_of(counts: Iterable[int], factor: float, min_count: int) -> Words:
    """Estimate the vocabulary of a text `factor` times as long as a sample with these counts (1: the sample itself)."""
    ranked = np.array(sorted(counts, reverse=True), np.int64)
    half = np.random.default_rng(1).binomial(ranked, 0.5)

    def power(least: int) -> float:
        whole, *halves = (int((sample >= least).sum()) for sample in (ranked, half, ranked - half))
        return math.log2(2 * max(1, whole) / max(1, sum(halves)))

    growth = power(1)
    distinct = len(ranked) * factor**growth
    # The number of frequent words grows faster: its power has a surplus, which halves whenever the text doubles.
    surplus = (power(min_count) - growth) * (1 - 1 / factor)
    frequent = int((ranked >= min_count).sum()) * factor**growth * 4**surplus
    once, twice = (int((ranked == number).sum()) for number in (1, 2))
    discount = _DISCOUNTED * (1 - 1 / factor) * once / max(1, once + 2 * twice)
    covered = np.cumsum([0.0, *(ranked - discount)]) / max(1, ranked.sum())
    ranks = np.arange(len(covered), dtype=np.float64)
    if factor > 1:
        ranks, covered = np.append(ranks, max(distinct, ranks[-1] + 1)), np.append(covered, 1.0)
    return Words(distinct=distinct, frequent=frequent, ranks=ranks, covered=covered)


# The plan


def make_plan(
    sources: Sources, config: Config, user_dictionary: Path | None, limits: PlanLimits, reporter: Reporter
) -> dict[str, Any]:
    """Estimate the counts, times, disk space and memory of a run from a sample; return the content of plan.json."""
    config = replace(config, text=replace(config.text, user_dictionary=str(user_dictionary or "")))
    sample = Sample(sources.sources, config.text, limits)
    for line in skipped_lines(sample.tally.passed_over):
        reporter.note(line)
    trial = try_stages(sample, config, limits.seconds)
    if not count_han(trial.words):
        reporter.warn(_("The sample contains no Chinese characters. Check that this is the right corpus."))
    words = words_of(trial.words.values(), trial.factor, config.vocab.min_count)
    rows = max(trial.counts["rows"], min(words.frequent + len(SPECIALS), config.vocab.size or math.inf))
    figures = {"characters": sample.totals["characters"]}
    figures |= {name: trial.factor * trial.counts[name] for name in ("kept_characters", "sentences", "tokens")}
    figures |= {"distinct_words": words.distinct, "rows": rows}
    stages, training = _stages(sample, trial, config, figures), {}
    if not limits.no_training:
        from elmo_zh.training.computation import forecast_training  # a plan without training needs no torch

        heldout = min(config.text.heldout_share, config.text.heldout_max_tokens / figures["tokens"])
        predictions = round((figures["tokens"] + figures["sentences"]) * (1 - heldout))
        training = forecast_training(config, predictions, round(rows))
        stages["train"] = {"seconds": training["seconds"], "bytes": training["checkpoint_bytes"]}
        stages["export"] = {"seconds": 0.0, "bytes": training["bundle_bytes"]}
    return {
        "format": PLAN_FORMAT,
        "settings": {
            name: result_settings(getattr(config, name)) for name in ("text", "vocab", "word2vec", "model", "train")
        },
        "sample": {
            "files": sample.num_files,
            "bytes": sample.num_bytes,
            "corpus_bytes": round(sample.totals["line_bytes"]),
            "is_all": sample.is_all,
            "files_not_read_to_the_end": sample.num_unreached,
        },
        "figures": {name: round(value) for name, value in figures.items()},
        "coverage": round(words.share(rows), 6),
        "coverage_curve": [
            {"words": size, "share": round(words.share(size), 4)} for size in ROUND_SIZES if size < words.distinct
        ],
        "recommended_vocab_size": words.recommended_size(),
        "stages": {stage: {name: round(cost, 2) for name, cost in costs.items()} for stage, costs in stages.items()},
        "training": training,
    }


def _stages(sample: Sample, trial: Trial, config: Config, figures: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Return the time and the disk space of each stage before training; the trial ran one epoch of word2vec."""
    num_workers = EngineChoice(num_workers=config.text.num_workers).num_processes(sample.totals["line_bytes"])
    epochs = choose_epochs(config.word2vec, figures["tokens"]).epochs
    growth = dict.fromkeys(trial.seconds, trial.factor / num_workers) | {"word2vec": trial.factor * epochs}
    seconds = {stage: growth[stage] * tried for stage, tried in trial.seconds.items()}
    seconds["segment"] += sample.seconds / num_workers
    grown = {stage: trial.factor * num_bytes for stage, num_bytes in trial.num_bytes.items()}
    if "word2vec" in grown:
        grown["word2vec"] = trial.num_bytes["word2vec"] * figures["rows"] / trial.counts["rows"]
    return {stage: {"seconds": seconds[stage], "bytes": grown.get(stage, 0)} for stage in seconds}


def describe_plan(plan: Mapping[str, Any]) -> Iterator[str]:
    """Yield a plan as lines for the screen: sample, counts, coverage, and the needs of each stage and of training."""
    figures, sample, training = plan["figures"], plan["sample"], plan["training"]
    read = _("Sample: {size} of text from {files}; the whole corpus has about {all}.")
    files = counted(sample["files"], "{number} file", "{number} files")
    sizes = {"size": format_bytes(sample["bytes"]), "all": format_bytes(sample["corpus_bytes"])}
    yield read.format(files=files, **sizes)
    if unread := sample["files_not_read_to_the_end"]:
        yield _("Files not read to the end: {count}. Use --seconds to allow more time.").format(count=unread)
    yield ""
    rows = [(_(_TITLES.get(name, name.replace("_", " "))), f"{value:,}") for name, value in figures.items()]
    yield from aligned([*rows, (_("coverage"), f"{plan['coverage']:.2%}")])
    yield ""
    if curve := plan["coverage_curve"]:
        covered = [(f"{point['words']:,}", f"{point['share']:.1%}") for point in curve]
        yield from aligned(covered, header=(N_("most frequent words"), N_("coverage")))
    if not plan["settings"]["vocab"]["init"]:
        sizes = {"size": f"{plan['recommended_vocab_size']:,}", "rows": f"{figures['rows']:,}"}
        yield _("Recommended: vocab.size = {size}; the current settings give {rows} rows.").format(**sizes)
    yield ""
    stages = dict(plan["stages"])
    stages |= {_("total"): {name: sum(cost[name] for cost in stages.values()) for name in ("seconds", "bytes")}}
    costs = [(stage, format_seconds(cost["seconds"]), format_bytes(cost["bytes"])) for stage, cost in stages.items()]
    yield from aligned([(_("stage"), _("time"), _("disk")), *costs])
    if training:
        message = _(
            "Training: {parameters} M parameters; {tokens} tokens ({epochs} epochs) at {speed} tokens/s, not counting"
            " evaluations; {memory} of memory."
        )
        yield message.format(
            parameters=f"{training['parameters'] / 1e6:,.1f}",
            tokens=f"{training['tokens']:,}",
            epochs=f"{training['epochs']:.2f}",
            speed=f"{training['tokens_per_second']:,.0f}",
            memory=format_bytes(training["memory_bytes"]),
        )
