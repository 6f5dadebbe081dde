"""The sample of a plan: blocks of lines from all over a corpus, and the stages before training run on them."""

import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

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
# When so many blocks are kept, every second one goes; copies are looked for among so many lines.
_MOST_BLOCKS, _MOST_KEYS = 2**12, 2_000_000
# Files from this size on are read in ranges where their format allows it.
_RANGED_FROM_BYTES, _RANGE_BYTES, _MOST_RANGES = 2**24, 2**16, 256


@dataclass(kw_only=True)
class Block:
    """Consecutive lines of a file, some 16 kB, without copies; it stands for `weight` blocks of its file."""

    lines: list[str] = field(default_factory=list)
    num_bytes: int = 0
    weight: float = 0.0


@dataclass(kw_only=True)
class Sample:
    """Blocks of a corpus, and whether they are all of it.

    `totals` estimates documents, characters, line_characters and line_bytes (of the lines that the reader leaves) and
    copied_characters (in lines that are copies) of the whole corpus, and `seconds` the time to read it. `num_unreached`
    counts files that were not read to their end.
    """

    blocks: list[Block] = field(default_factory=list)
    is_all: bool = False
    totals: dict[str, float] = field(default_factory=dict)
    num_files: int = 0
    num_unreached: int = 0
    seconds: float = 0.0
    passed_over: PassedOver = field(default_factory=PassedOver)

    @property
    def num_bytes(self) -> int:
        """The bytes of the blocks."""
        return sum(block.num_bytes for block in self.blocks)

    def described(self) -> dict[str, Any]:
        """Return the size of the sample and of the corpus for JSON."""
        return {
            "pieces": len(self.blocks),
            "files": self.num_files,
            "corpus_bytes": round(self.totals["line_bytes"]),
            "bytes": self.num_bytes,
            "share": 1.0 if self.is_all else round(min(1.0, self.num_bytes / self.totals["line_bytes"]), 6),
            "is_all": self.is_all,
            "places_not_reached": self.num_unreached,
        }


def take_sample(sources: Sequence[Source], config: TextConfig, limits: PlanLimits) -> Sample:
    """Read a corpus as far as the time limit allows, and choose blocks of it."""
    if config.bad_bytes == "strict":
        config = replace(config, bad_bytes="skip-line")  # how much text there is, even where `segment` refuses it
    sample = _Reader(config, limits).read(sources)
    if not any(line.strip() for block in sample.blocks for line in block.lines):
        names = ", ".join(source.name for source in sources[:3])
        other = "; ".join(f"{count:,} {reason}" for reason, count in sorted(sample.passed_over.counts.items()))
        raise CorpusError(f"{names} holds no text{f' (passed over: {other})' if other else ''}. Give a file with text.")
    return sample


@dataclass(frozen=True, kw_only=True)
class _WatchedSource(Source):
    """A source that keeps its file on disk, opened last, whose position says how far reading has come."""

    opened: list[BinaryIO]

    def open_packed(self) -> BinaryIO:
        self.opened[:] = [super().open_packed()]
        return self.opened[0]


class _Reader:
    def __init__(self, config: TextConfig, limits: PlanLimits) -> None:
        self._config, self._limits = config, limits
        self._found, self._random = Sample(), Random(limits.seed)  # noqa: S311
        self._rule = KeyRule(least_characters=config.duplicate_min_characters, has_short=False)
        self._keys: set[int] = set()
        self._step, self._num_blocks = 1, 0

    def read(self, sources: Sequence[Source]) -> Sample:
        """Read the files, the largest first, each for a part of the time as large as its part of the bytes."""
        found, started_at = self._found, time.monotonic()
        sizes = {source: size for source in sources if (size := source.path.stat().st_size)}
        corpus_bytes = bytes_left = sum(sizes.values())
        read, totals, bytes_begun = Counter[str](), Counter[str](), 0
        for source in sorted(sizes, key=lambda each: (-sizes[each], self._random.random())):
            now = time.monotonic()
            seconds = (started_at + self._limits.seconds - now) * sizes[source] / bytes_left
            bytes_left -= sizes[source]
            if seconds <= 0 and bytes_begun:
                found.num_unreached += 1
                continue
            counts, factor = self._read_source(source, sizes[source], now + seconds)
            read += counts
            one = {} if counts["documents"] > 1 else {"documents": 1}  # one so far stays one
            totals += Counter({name: factor * count for name, count in counts.items()} | one)
            bytes_begun += sizes[source]
        # Files that were not begun are like the others.
        found.totals = {name: total * corpus_bytes / bytes_begun for name, total in totals.items()}
        found.seconds = (time.monotonic() - started_at) * found.totals.get("line_bytes", 0) / max(1, read["line_bytes"])
        most_bytes = self._limits.sample_megabytes * 1e6
        found.is_all = not found.num_unreached and self._step == 1 and found.num_bytes <= most_bytes
        if not found.is_all:
            found.blocks = self._chosen(max(1, int(most_bytes * len(found.blocks) / max(1, found.num_bytes))))
        return found

    def _chosen(self, number: int) -> list[Block]:
        """Return the blocks that hold points at equal distances; each is as long as the text that it stands for."""
        blocks = self._found.blocks
        ends = np.cumsum([block.weight * block.num_bytes for block in blocks] or [0.0])
        points = (np.arange(number) + self._random.random()) * ends[-1] / number
        places = np.unique(np.searchsorted(ends, points, side="right"))
        return [blocks[place] for place in places if place < len(blocks)]

    def _read_source(self, source: Source, file_bytes: int, deadline: float) -> tuple[Counter[str], float]:
        """Read a file as far as time allows; return the counts of that, and how many times as much the file holds."""
        counts, read_bytes = Counter[str](), 0
        pieces: list[ByteRange | None] = [*self._ranges(source, file_bytes)] or [None]
        for piece in pieces:
            if read_bytes and time.monotonic() > deadline:
                break
            tally = Tally()
            read_bytes += self._read_piece(source, piece, tally, counts, deadline) or file_bytes
            self._found.num_files += tally.forms.total()
            counts.update(documents=tally.documents, characters=tally.characters)
        self._found.num_unreached += read_bytes < file_bytes
        for block in self._found.blocks:
            block.weight = block.weight or file_bytes / read_bytes
        return counts, file_bytes / read_bytes

    def _ranges(self, source: Source, file_bytes: int) -> list[ByteRange]:
        """Return ranges of a large file at equal distances, in random order; none if it cannot be read in ranges."""
        if file_bytes < _RANGED_FROM_BYTES:
            return []
        number = min(_MOST_RANGES, file_bytes // (4 * _RANGE_BYTES))
        places = [int((i + self._random.random()) * file_bytes / number) for i in range(number)]
        ranges = ranges_at(source, self._config, places, _RANGE_BYTES)
        return self._random.sample(ranges, len(ranges))

    def _read_piece(
        self, source: Source, piece: ByteRange | None, tally: Tally, counts: Counter[str], deadline: float
    ) -> int:
        """Read a range, or a file until its time is over; return the bytes read, 0 for the whole file."""
        passed_over, reached = self._found.passed_over, 0
        if piece is not None:
            documents = read_range(source, piece, self._config, tally, passed_over)
            deque(self._blocks_of(chain.from_iterable(documents), counts), maxlen=0)
            return piece.end - piece.start
        watched = _WatchedSource(**vars(source), opened=[])
        documents = read_source(watched, self._config, tally, passed_over, trusts_head=True)
        for _ in self._blocks_of(chain.from_iterable(documents), counts):
            if time.monotonic() > deadline and not watched.opened[0].closed:
                position = watched.opened[0].tell()
                # The bytes that were read last are taken to their end.
                if position > reached > 0:
                    documents.close()  # type: ignore[attr-defined]
                    return reached
                reached = position
        return 0

    def _blocks_of(self, lines: Iterable[str], counts: Counter[str]) -> Iterator[None]:
        """Make blocks of lines, and yield after each one."""
        block = Block()
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
                block = Block()
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
            self._found.blocks.append(block)
        self._num_blocks += 1
        if len(self._found.blocks) > _MOST_BLOCKS:
            self._found.blocks, self._step = self._found.blocks[::2], 2 * self._step


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What the stages report: counts, seconds and bytes of each, seconds to start; and the words of the text."""

    counts: Mapping[str, float]
    seconds: Mapping[str, float]
    num_bytes: Mapping[str, int]
    words: Counter[str]
    start: Mapping[str, float] = field(default_factory=dict)


def try_sample(sources: Sources, sample: Sample, config: Config, seconds: float) -> Trial:
    """Run the stages on a sample, or on the corpus if the sample is all of it.

    Blocks for which the time limit of the segment stage would not suffice are taken out of the sample.
    """
    name = ", ".join(source.name for source in sources.sources[:3])
    # Almost no text takes the time of starting, with the dictionary, and then without.
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
    """Run the stages on blocks of lines, which have no copies."""
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
