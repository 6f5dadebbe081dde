"""Sample blocks of lines from all over a corpus for a plan, and run on them the stages that precede training."""

import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import BinaryIO

import numpy as np

from elmo_zh.config import Config, TextConfig, VocabConfig
from elmo_zh.corpus.ranges import ByteRange, ranges_at, read_range
from elmo_zh.corpus.read_source import read_source
from elmo_zh.corpus.sources import Source, Sources, find_sources
from elmo_zh.corpus.tally import PassedOver, Tally
from elmo_zh.errors import CorpusError, RunError
from elmo_zh.planning import PlanLimits
from elmo_zh.run.files import folder_bytes
from elmo_zh.run.layout import RunDir
from elmo_zh.run.record import finished_stages
from elmo_zh.run.reporter import SilentReporter
from elmo_zh.segmenting.text_shards import KeyRule
from elmo_zh.stages.encode import encode
from elmo_zh.stages.segment import segment_sources
from elmo_zh.stages.vocab import vocab
from elmo_zh.stages.word2vec import word2vec

BLOCK_BYTES = 2**14
# Above this many blocks, every second one is dropped; copies are looked for among this many lines.
_MOST_BLOCKS, _MOST_KEYS = 2**12, 2_000_000
# From this size on, files are read in ranges of this size, at most this many, where their format allows it.
_RANGED_FROM_BYTES, _RANGE_BYTES, _MOST_RANGES = 2**24, 2**16, 256


@dataclass(kw_only=True)
class Block:
    """Consecutive lines of a file, about 16 kB, without repeated lines; it stands for `weight` blocks of its file."""

    lines: list[str]
    num_bytes: int
    weight: float = 0.0


@dataclass(frozen=True, kw_only=True)
class _WatchedSource(Source):
    """A source that remembers the last file it opened, whose position shows how far reading has come."""

    opened: list[BinaryIO]

    def open_packed(self) -> BinaryIO:
        self.opened[:] = [super().open_packed()]
        return self.opened[0]


class Sample:
    """Blocks of a corpus that is read as far as the time limit allows, and whether they are the whole corpus.

    `totals` estimates, for the whole corpus, documents, characters, line_characters, line_bytes and copied_characters,
    which are in copies of lines. `seconds` estimates the time to read the whole corpus, and `num_unreached` counts the
    files that were not read to their end.
    """

    def __init__(self, sources: Sequence[Source], config: TextConfig, limits: PlanLimits) -> None:
        self.blocks: list[Block] = []
        self.passed_over = PassedOver()
        self.num_files = self.num_unreached = 0
        self._config, self._random = config, Random(limits.seed)  # noqa: S311
        self._rule = KeyRule(least_characters=config.duplicate_min_characters, has_short=False)
        self._keys: set[int] = set()
        self._step, self._num_blocks = 1, 0
        started_at = time.monotonic()
        self.totals, share_read = self._read(sources, started_at, limits.seconds)
        self.seconds = (time.monotonic() - started_at) / share_read
        most_bytes = limits.sample_megabytes * 1e6
        self.is_all = not self.num_unreached and self._step == 1 and self.num_bytes <= most_bytes
        if not self.is_all:
            self._choose(max(1, int(most_bytes * len(self.blocks) / max(1, self.num_bytes))))

    @property
    def num_bytes(self) -> int:
        """The total size of the blocks, in bytes."""
        return sum(block.num_bytes for block in self.blocks)

    def _read(self, sources: Sequence[Source], started_at: float, seconds: float) -> tuple[dict[str, float], float]:
        """Read the files, largest first, each for a time that depends on its size; return totals and fraction read."""
        sizes = {source: size for source in sources if (size := source.path.stat().st_size)}
        totals, corpus_bytes, bytes_begun, bytes_read = Counter[str](), sum(sizes.values()), 0, 0.0
        for source in sorted(sizes, key=lambda each: (-sizes[each], self._random.random())):
            if bytes_begun and time.monotonic() > started_at + seconds:
                self.num_unreached += 1
                continue
            bytes_begun += sizes[source]
            counts, factor = self._read_source(source, sizes[source], started_at + seconds * bytes_begun / corpus_bytes)
            one = {} if counts["documents"] > 1 else {"documents": 1}  # a single document so far is not scaled up
            totals += Counter({name: factor * count for name, count in counts.items()} | one)
            bytes_read += sizes[source] / factor
        whole = {name: total * corpus_bytes / bytes_begun for name, total in totals.items()}
        return whole, bytes_read / max(1, corpus_bytes) or 1.0

    def _choose(self, number: int) -> None:
        """Keep only the blocks at equally spaced points, with each block as wide as the text it represents."""
        ends = np.cumsum([block.weight * block.num_bytes for block in self.blocks] or [0.0])
        points = (np.arange(number) + self._random.random()) * ends[-1] / number
        places = np.unique(np.searchsorted(ends, points, side="right"))
        self.blocks = [self.blocks[place] for place in places if place < len(self.blocks)]

    def _read_source(self, source: Source, file_bytes: int, deadline: float) -> tuple[Counter[str], float]:
        """Read a file as far as time allows; return the counts, and how many times larger the whole file is."""
        counts, read_bytes = Counter[str](), 0
        for piece in self._pieces(source, file_bytes):
            if read_bytes and time.monotonic() > deadline:
                break
            tally = Tally()
            if piece is None:
                read_bytes = self._read_file(source, tally, counts, deadline) or file_bytes
            else:
                read_bytes += piece.end - piece.start
                documents = read_range(source, piece, self._config, tally, self.passed_over)
                deque(self._keep_blocks(chain.from_iterable(documents), counts), maxlen=0)
            self.num_files += tally.forms.total()
            counts.update(documents=tally.documents, characters=tally.characters)
        self.num_unreached += read_bytes < file_bytes
        for block in self.blocks:
            block.weight = block.weight or file_bytes / read_bytes
        return counts, file_bytes / read_bytes

    def _pieces(self, source: Source, file_bytes: int) -> Sequence[ByteRange | None]:
        """Return ranges of a large file at equal distances, in random order, or None for a file that is read whole."""
        if file_bytes < _RANGED_FROM_BYTES:
            return [None]
        number = min(_MOST_RANGES, file_bytes // (4 * _RANGE_BYTES))
        places = [int((i + self._random.random()) * file_bytes / number) for i in range(number)]
        ranges = ranges_at(source, self._config, places, _RANGE_BYTES)
        return self._random.sample(ranges, len(ranges)) or [None]

    def _read_file(self, source: Source, tally: Tally, counts: Counter[str], deadline: float) -> int:
        """Read a file until its time is up; return the number of bytes read, or 0 if that is the whole file."""
        watched, reached = _WatchedSource(**vars(source), opened=[]), 0
        documents = read_source(watched, self._config, tally, self.passed_over, trusts_head=True)
        for _ in self._keep_blocks(chain.from_iterable(documents), counts):
            position = 0 if watched.opened[0].closed else watched.opened[0].tell()
            # The lines in the bytes that were read last are used up first.
            if time.monotonic() > deadline and position > reached > 0:
                documents.close()  # type: ignore[attr-defined]
                return reached
            reached = max(reached, position)
        return 0

    def _keep_blocks(self, lines: Iterable[str], counts: Counter[str]) -> Iterator[None]:
        block = Block(lines=[], num_bytes=0)
        for line in lines:
            encoded = line.encode("utf-8", "replace")
            counts.update(characters=len(line), line_characters=len(line), line_bytes=len(encoded))
            if self._is_copy(line, encoded):
                counts["copied_characters"] += len(line)
                continue
            block.lines.append(line)
            block.num_bytes += len(encoded)
            if block.num_bytes >= BLOCK_BYTES:
                self._keep(block)
                yield
                block = Block(lines=[], num_bytes=0)
        if block.lines:
            self._keep(block)

    def _is_copy(self, line: str, encoded: bytes) -> bool:
        key = self._rule.key(line, encoded) if self._config.drop_duplicates else None
        is_copy = key in self._keys
        if key is not None and len(self._keys) < _MOST_KEYS:
            self._keys.add(key)
        return is_copy

    def _keep(self, block: Block) -> None:
        if self._num_blocks % self._step == 0:
            self.blocks.append(block)
        self._num_blocks += 1
        if len(self.blocks) > _MOST_BLOCKS:
            self.blocks, self._step = self.blocks[::2], 2 * self._step


def take_sample(sources: Sequence[Source], config: TextConfig, limits: PlanLimits) -> Sample:
    """Read a corpus as far as the time limit allows, and choose blocks from it; raise CorpusError if it has no text."""
    if config.bad_bytes == "strict":
        config = replace(config, bad_bytes="skip-line")  # count all text, even where `segment` would refuse it
    sample = Sample(sources, config, limits)
    if not any(line.strip() for block in sample.blocks for line in block.lines):
        names = ", ".join(source.name for source in sources[:3])
        other = "; ".join(f"{count:,} {reason}" for reason, count in sorted(sample.passed_over.counts.items()))
        raise CorpusError(
            f"{names}: no text found{f' (skipped: {other})' if other else ''}. Use files that contain text."
        )
    return sample


@dataclass(frozen=True, kw_only=True)
class Trial:
    """Figures from trying the stages: counts; each stage's seconds, bytes and start-up seconds; the text's words."""

    counts: Mapping[str, float]
    seconds: Mapping[str, float]
    num_bytes: Mapping[str, int]
    words: Counter[str]
    start: Mapping[str, float] = field(default_factory=dict)


def try_sample(sources: Sources, sample: Sample, config: Config, seconds: float) -> Trial:
    """Run the stages on as much of a sample as time allows, or on the corpus itself if the sample is all of it."""
    name = ", ".join(source.name for source in sources.sources[:3])
    # With almost no text, the stages take only their start-up time, first with reading the dictionary, then without.
    every_word = replace(config, vocab=VocabConfig(size=0, min_count=1))
    start, again = (_try_blocks(sample.blocks[:2], every_word, name).seconds for _ in range(2))
    if sample.is_all:
        trial = _try_stages(sources, config, name)
    else:
        most = int(seconds * len(sample.blocks[:2]) / max(1e-3, again["segment"]))
        sample.blocks = sample.blocks[:: -(-len(sample.blocks) // max(1, most))]
        trial = _try_blocks(sample.blocks, config, name)
    growing = {stage: max(0.0, trial.seconds[stage] - again[stage]) for stage in again}
    return replace(trial, seconds=growing, start=start)


def _try_blocks(blocks: Sequence[Block], config: Config, name: str) -> Trial:
    """Run the stages on blocks of lines, which contain no repeated lines."""
    text = replace(config.text, drop_duplicates=False, boilerplate_copies=0, field="", document="line")
    config = replace(config, text=replace(text, format="text", encoding="utf-8"))
    with TemporaryDirectory(prefix="elmo-zh-plan-") as folder:
        path = Path(folder, "sample.txt")
        lines = "".join(f"{line}\n" for block in blocks for line in block.lines)
        path.write_text(lines, encoding="utf-8", errors="replace", newline="\n")
        return _try_stages(find_sources([str(path)]), config, name)


def _try_stages(sources: Sources, config: Config, name: str) -> Trial:
    """Run the stages in one process, with one epoch of word2vec."""
    epoch, silent = replace(config.word2vec, epochs=1), SilentReporter()
    config = replace(config, text=replace(config.text, num_workers=1), word2vec=epoch)
    with TemporaryDirectory(prefix="elmo-zh-plan-") as folder:
        run = RunDir(Path(folder, "run"))
        try:
            counts = dict(segment_sources(run, config, sources, force=True, reporter=silent).counts)
            counts |= {name: counts[f"train_{name}"] + counts[f"heldout_{name}"] for name in ("sentences", "tokens")}
            counts |= vocab(run, config, force=True, reporter=silent).counts
        except RunError as error:
            raise CorpusError(str(error).replace(str(run.segmented), name)) from None
        if epoch.enabled and not epoch.vectors and not config.train.init:
            word2vec(run, config, force=True, reporter=silent)
        encode(run, config, force=True, reporter=silent)
        seconds = {stage: record["seconds"] for stage, record in finished_stages(run).items()}
        paths = [path for path in (run.segmented, run.ids, run.word2vec) if path.exists()]
        num_bytes = {path.stem: folder_bytes(path) for path in paths}
        words = Counter(chain.from_iterable(path.read_text("utf-8").split() for path in run.train_files()))
        return Trial(counts=counts, seconds=seconds, num_bytes=num_bytes, words=words)
