"""Sample lines from all over a corpus for a plan, and run on them the stages that precede training."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import BinaryIO

from elmo_zh.config import Config, TextConfig, VocabConfig
from elmo_zh.corpus.counts import PassedOver, Tally
from elmo_zh.corpus.read_source import read_source
from elmo_zh.corpus.sources import Source
from elmo_zh.errors import CorpusError
from elmo_zh.language import _
from elmo_zh.planning import PlanLimits
from elmo_zh.run.files import folder_bytes
from elmo_zh.run.layout import RunDir
from elmo_zh.run.record import StageContext, load_records
from elmo_zh.run.reporter import SilentReporter, first_ten
from elmo_zh.stages.encode import encode
from elmo_zh.stages.segment import segment
from elmo_zh.stages.vocab import vocab
from elmo_zh.stages.word2vec import word2vec

_FEW_LINES = 50


@dataclass(frozen=True, kw_only=True)
class _WatchedSource(Source):
    """A source that remembers the last file it opened, whose position shows how far reading has come."""

    opened: list[BinaryIO]

    def open_packed(self) -> BinaryIO:
        self.opened[:] = [super().open_packed()]
        return self.opened[0]


class Sample:
    """Lines of a corpus, each drawn with the same probability, and what was counted while reading it.

    `totals` estimates documents, characters, line_characters and line_bytes of the whole corpus, and `seconds` the time
    to read it. `num_unreached` counts the files that were not read to their end.
    """

    def __init__(self, sources: Sequence[Source], config: TextConfig, limits: PlanLimits) -> None:
        """Read the files, largest first, each for a time that depends on its size; CorpusError if there is no text."""
        self.lines: list[str] = []
        self.passed_over = PassedOver()
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
            one = {} if counts["documents"] > 1 else {"documents": 1}  # a single document so far is not scaled up
            totals += Counter({name: count / share for name, count in counts.items()} | one)
            bytes_read += sizes[source] * share
        self.totals = {name: total * corpus_bytes / bytes_begun for name, total in totals.items()}
        self.seconds = (time.monotonic() - started_at) * corpus_bytes / max(1.0, bytes_read)
        if not any(line.strip() for line in self.lines):
            message = _("{names}: no text found. Use files that contain text.")
            raise CorpusError(message.format(names=first_ten([source.name for source in sources])))

    @property
    def is_all(self) -> bool:
        """Whether the lines are the whole corpus."""
        return self._probability == 1 and not self.num_unreached

    def _read(self, source: Source, deadline: float) -> tuple[Counter[str], float]:
        """Read a file until its time is up; return the counts, and the fraction of the file that was read."""
        watched, counts, tally = _WatchedSource(**vars(source), opened=[]), Counter[str](), Tally()
        size, reached, is_whole = source.path.stat().st_size, 0, True
        documents = read_source(watched, self._config, tally, self.passed_over, trusts_head=True)
        for line in chain.from_iterable(documents):
            num_bytes = len(line.encode("utf-8", "replace"))
            counts.update(line_characters=len(line), line_bytes=num_bytes)
            self._keep(line, num_bytes)
            position = 0 if watched.opened[0].closed else watched.opened[0].tell()
            # The lines in the bytes that were read last are used up first.
            if position > reached > 0 and time.monotonic() > deadline:
                documents.close()  # type: ignore[attr-defined]
                is_whole = False
                break
            reached = max(reached, position)
        self.num_files += tally.forms.total()
        self.num_unreached += not is_whole
        counts.update(documents=tally.documents, characters=tally.characters + counts["line_characters"])
        return counts, 1.0 if is_whole else reached / size

    def _keep(self, line: str, num_bytes: int) -> None:
        """Keep a line with the current probability, which is halved whenever the sample is full."""
        if self._random.random() < self._probability:
            self.lines.append(line)
            self.num_bytes += num_bytes
        while self.num_bytes > self._most_bytes and len(self.lines) > 1:
            self._probability /= 2
            self.lines = [kept for kept in self.lines if self._random.random() < 0.5]
            self.num_bytes = sum(len(kept.encode("utf-8", "replace")) for kept in self.lines)


@dataclass(frozen=True, kw_only=True)
class Trial:
    """Figures from trying the stages on lines: counts, the text's words, and each stage's seconds and bytes."""

    counts: Mapping[str, float]
    words: Counter[str]
    seconds: Mapping[str, float]  # Without start-up
    num_bytes: Mapping[str, int]
    start: Mapping[str, float] = field(default_factory=dict)  # Seconds that a stage needs for almost no text
    factor: float = 1.0  # The corpus has this many times the text


def try_stages(sample: Sample, config: Config, seconds: float) -> Trial:
    """Run the stages on as much of a sample as time allows."""
    # With almost no text, the stages take only their start-up time, first with reading the dictionary, then without.
    every_word = replace(config, vocab=VocabConfig(size=0, min_count=1))
    start, again = (_try_lines(sample.lines[:_FEW_LINES], every_word).seconds for _ in range(2))
    most = max(1, int(seconds * _FEW_LINES / max(1e-3, again["segment"])))
    lines = sample.lines[:: -(-len(sample.lines) // most)]
    trial = _try_lines(lines, config)
    growing = {stage: max(0.0, trial.seconds[stage] - again[stage]) for stage in again}
    factor = sample.totals["line_characters"] / sum(map(len, lines))
    return replace(trial, seconds=growing, start=start, factor=factor)


def _try_lines(lines: Sequence[str], config: Config) -> Trial:
    """Run the stages in one process, with one epoch of word2vec."""
    text = replace(config.text, format="text", encoding="utf-8", field="", document="line", num_workers=1)
    config = replace(config, text=text, word2vec=replace(config.word2vec, epochs=1))
    with TemporaryDirectory(prefix="elmo-zh-plan-") as folder:
        path, run = Path(folder, "sample.txt"), RunDir(Path(folder, "run"))
        written = "".join(f"{line}\n" for line in lines)
        path.write_text(written, encoding="utf-8", errors="replace", newline="\n")
        context = StageContext(run=run, config=config, reporter=SilentReporter())
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
