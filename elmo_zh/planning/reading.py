"""Read a corpus for a plan: all of it if time allows, else byte ranges of large files and the start of the others."""

import time
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from random import Random
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from elmo_zh.config import TextConfig
from elmo_zh.corpus.archives import ZIP_STARTS
from elmo_zh.corpus.encodings import MistakenEncodingError
from elmo_zh.corpus.names import format_of_name
from elmo_zh.corpus.packing import compression_of
from elmo_zh.corpus.ranges import ranges_at, read_range
from elmo_zh.corpus.read_source import read_source
from elmo_zh.corpus.sources import Source
from elmo_zh.corpus.tally import PassedOver, Tally
from elmo_zh.planning.block_picker import Block, BlockPicker
from elmo_zh.planning.estimates import Estimate, estimate_total, sum_of
from elmo_zh.segmenting.duplicates import key_rule, repeated_keys

# Files from this size on are read in ranges where their format allows it. Wikitext is slow to read, other text is not.
_RANGED_FROM_BYTES, _RANGED_DUMP_FROM_BYTES = 2**26, 2**22
_RANGE_BYTES, _MOST_RANGES, _LEAST_RANGES = 2**16, 256, 4
# Sources of more than this fraction of all bytes are read first; of the others, every eighth, then again every eighth.
_LARGE_FRACTION, _PASSES = 0.02, 8
# A source gets time in proportion to its size, but at least this fraction of all. When time is over, the start of each
# of the others is read, since they may be quite different; when this factor of the time is over, they are skipped.
_LEAST_TIME, _SKIPPED_FROM = 0.05, 1.5
# Of a packed file at least so much is read, since about so many of the bytes read last are not yet unpacked.
_LEAST_PACKED_BYTES, _READ_AHEAD_BYTES = 2**19, 3 * 2**14
# By which factor what was not read may have more or fewer documents, or other counts, than expected from what was read.
_UNREAD_DOCUMENTS_FACTOR, _UNREAD_FACTOR = 4.0, 2.0


@dataclass(frozen=True, kw_only=True)
class SampleSize:
    """Limits of a plan: bytes of text to segment at most, a time limit for reading and again for segmenting."""

    num_bytes: int = 2**21
    seconds: float = 20.0
    seed: int = 1
    tries_training: bool = True


@dataclass(frozen=True)
class _ReadSource:
    """The parts of one source that were read: all of it, or byte ranges, each with its bytes on disk and its counts.

    Counted are documents, characters (line ends not counted, text that does not decode counted), line_characters and
    line_bytes (of lines, in UTF-8).
    """

    file_bytes: int
    parts: Sequence[tuple[int, Counter[str]]]
    is_one_document: bool

    @property
    def fraction(self) -> float:
        return sum(num_bytes for num_bytes, _ in self.parts) / self.file_bytes

    def total(self, name: str) -> Estimate:
        """Return the estimate of one of the counts for the whole source."""
        if name == "documents" and self.is_one_document:
            return Estimate.exact(1)
        counts, sizes = [counts[name] for _, counts in self.parts], [size for size, _ in self.parts]
        if self.fraction < 1 and len(self.parts) > 1:
            return estimate_total(counts, sizes, self.file_bytes, self.fraction)
        found = Estimate.exact(sum(counts))
        factor = _UNREAD_DOCUMENTS_FACTOR if name == "documents" else _UNREAD_FACTOR
        return sum_of([found, found.times(1 / self.fraction - 1).widened(factor)])


@dataclass(kw_only=True)
class CorpusReading:
    """The part of a corpus that was read.

    Attributes:
        sources: The parts of each source that were read.
        skipped_bytes: Sizes of the sources that time did not suffice for.
        num_files: Files, members of archives among them.
        num_unreached: Sources and ranges that were not read, or not to their end.
        keys: Key of each line for finding copies, 0 where it needs none, uint64.
        lengths: Characters of each line, uint32.
        blocks: Blocks of lines to segment, chosen with equal chance for each byte of text.
        seconds: Time spent.
        passed_over: Files that are no corpus.
    """

    sources: list[_ReadSource] = field(default_factory=list)
    skipped_bytes: list[int] = field(default_factory=list)
    num_files: int = 0
    num_unreached: int = 0
    keys: "array[int]" = field(default_factory=lambda: array("Q"))
    lengths: "array[int]" = field(default_factory=lambda: array("I"))
    blocks: Sequence[Block] = ()
    seconds: float = 0.0
    passed_over: PassedOver = field(default_factory=PassedOver)

    @property
    def counts(self) -> Counter[str]:
        """Sums of the counts of all that was read."""
        return sum((counts for source in self.sources for _, counts in source.parts), Counter())

    @property
    def is_complete(self) -> bool:
        """Whether all of the corpus was read."""
        return self.num_unreached == 0 and all(source.fraction >= 1 for source in self.sources)

    def total(self, name: str) -> Estimate:
        """Return the estimate of one of the counts for the whole corpus."""
        totals = [source.total(name) for source in self.sources]
        return sum_of([*totals, self._skipped(name)] if self.skipped_bytes else totals)

    def _skipped(self, name: str) -> Estimate:
        """Return the estimate of one of the counts for the sources that were skipped, from others of their size."""
        most, number = max(self.skipped_bytes), len(self.skipped_bytes)
        alike = [source for source in self.sources if source.file_bytes <= most]
        values = [source.total(name).value for source in alike or self.sources]
        if name == "documents" and alike:
            # Each file may be one document, however long it is.
            found = estimate_total(values, [1] * len(alike), number, 0.0)
        else:
            sizes = [source.file_bytes for source in alike or self.sources]
            found = estimate_total(values, sizes, sum(self.skipped_bytes), 0.0)
        if name != "documents":
            return found.widened(_UNREAD_FACTOR)
        found = found.widened(_UNREAD_DOCUMENTS_FACTOR)
        return replace(found, low=min(found.low, number))


def read_corpus(sources: Sequence[Source], config: TextConfig, size: SampleSize) -> CorpusReading:
    """Read a corpus as far as the time limit allows.

    Raises:
        CorpusError: If a file that was named is no corpus, or a file is damaged.
    """
    # A plan says how much text there is even where `segment` would refuse it.
    config = replace(config, bad_bytes="skip-line" if config.bad_bytes == "strict" else config.bad_bytes)
    try:
        return _CorpusReader(config, size, trusts_head=True).read(sources)
    except MistakenEncodingError:
        return _CorpusReader(config, size, trusts_head=False).read(sources)


@dataclass(frozen=True, kw_only=True)
class _WatchedSource(Source):
    """A source that keeps its packed file, opened last, whose position says how far reading has come."""

    opened: list[BinaryIO]

    def open_packed(self) -> BinaryIO:
        self.opened[:] = [super().open_packed()]
        return self.opened[0]

    @property
    def is_packed(self) -> bool:
        """Whether the file is compressed or a zip archive."""
        with self.path.open("rb") as file:
            head = file.read(6)
        return compression_of(head) is not None or head[:4] in ZIP_STARTS

    def position(self) -> int:
        """Return how many bytes of the file were read; all where it has been closed."""
        return self.path.stat().st_size if self.opened[0].closed else self.opened[0].tell()


class _CorpusReader:
    """Reads sources into one `CorpusReading`."""

    def __init__(self, config: TextConfig, size: SampleSize, *, trusts_head: bool) -> None:
        self._config, self._size, self._trusts_head = config, size, trusts_head
        self._rule = key_rule(config)
        self._random = Random(size.seed)  # noqa: S311
        self._found = CorpusReading()
        self._picker = BlockPicker(size.num_bytes, self._random)

    def read(self, sources: Sequence[Source]) -> CorpusReading:
        started_at = time.monotonic()
        sizes = {source: size for source in sources if (size := source.path.stat().st_size)}
        bytes_left = sum(sizes.values())
        for source in self._ordered(sizes):
            seconds_left = started_at + self._size.seconds - time.monotonic()
            if seconds_left <= (1 - _SKIPPED_FROM) * self._size.seconds and self._found.sources:
                self._found.skipped_bytes.append(sizes[source])
            else:
                seconds_left = max(0.0, seconds_left)
                least = min(_LEAST_TIME * self._size.seconds, seconds_left)
                seconds = max(least, seconds_left * sizes[source] / bytes_left)
                if not self._read_ranges(source, sizes[source], seconds):
                    self._read_start(source, sizes[source], seconds)
            bytes_left -= sizes[source]
        found = self._found
        found.num_files += len(found.skipped_bytes)
        found.num_unreached += len(found.skipped_bytes)
        found.blocks = self._picker.chosen()
        found.seconds = time.monotonic() - started_at
        return found

    def _ordered(self, sizes: Mapping[Source, int]) -> list[Source]:
        """Return the sources, the large ones first: time may not suffice for the last, which should be like others."""
        least = _LARGE_FRACTION * sum(sizes.values())
        large, small = (
            [source for source in sizes if (sizes[source] > least) == is_large] for is_large in (True, False)
        )
        starts = self._random.sample(range(_PASSES), _PASSES)
        return large + [source for start in starts for source in small[start::_PASSES]]

    def _read_start(self, source: Source, file_bytes: int, seconds: float) -> None:
        """Read a source until it ends or its time is over."""
        deadline = time.monotonic() + seconds
        watched = _WatchedSource(**vars(source), opened=[])
        tally, counts = Tally(), Counter[str]()
        documents = read_source(watched, self._config, tally, self._found.passed_over, trusts_head=self._trusts_head)
        num_read, reached, first_line = file_bytes, 0, len(self._found.keys)
        least, read_ahead = (_LEAST_PACKED_BYTES, _READ_AHEAD_BYTES) if watched.is_packed else (1, 0)
        for line in chain.from_iterable(documents):
            if self._take(line, counts) and time.monotonic() > deadline:
                # The chunk of the file that was read last is taken to its end.
                position = watched.position()
                if position > reached >= least:
                    num_read = reached - read_ahead
                    self._picker.weigh_blocks(first_line, file_bytes / num_read)
                    self._found.num_unreached += 1
                    break
                reached = position
        documents.close()  # type: ignore[attr-defined]
        is_one = num_read < file_bytes and tally.documents == 1
        self._found.sources.append(_ReadSource(file_bytes, [(num_read, self._counted(counts, tally))], is_one))

    def _read_ranges(self, source: Source, file_bytes: int, seconds: float) -> bool:
        """Read ranges of a large source at equal distances, in random order; return whether it has any."""
        is_dump = format_of_name(source.file_name) == "wikidump"
        if file_bytes < (_RANGED_DUMP_FROM_BYTES if is_dump else _RANGED_FROM_BYTES):
            return False
        deadline = time.monotonic() + seconds
        number = min(_MOST_RANGES, file_bytes // (4 * _RANGE_BYTES))
        places = [int((i + self._random.random()) * file_bytes / number) for i in range(number)]
        ranges = ranges_at(source, self._config, places, _RANGE_BYTES, trusts_head=self._trusts_head)
        if len(ranges) < _LEAST_RANGES:
            return False
        self._random.shuffle(ranges)
        texts: list[tuple[int, list[str], Tally]] = []
        for each in ranges:
            if len(texts) < _LEAST_RANGES or time.monotonic() <= deadline:
                tally = Tally()
                documents = read_range(source, each, self._config, tally, self._found.passed_over)
                texts.append((each.end - each.start, list(chain.from_iterable(documents)), tally))
        self._picker.finish_block()
        parts, weight = [], file_bytes / sum(num_bytes for num_bytes, _, _ in texts)
        for num_bytes, lines, tally in texts:
            counts = Counter[str]()
            for line in lines:
                self._take(line, counts, weight)
            self._picker.finish_block()
            parts.append((num_bytes, self._counted(counts, tally)))
        self._found.num_unreached += len(ranges) - len(texts)
        is_one = ranges[0].kind == "text" and self._config.document == "file"
        self._found.sources.append(_ReadSource(file_bytes, parts, is_one))
        return True

    def _take(self, line: str, counts: Counter[str], weight: float = 1.0) -> bool:
        """Count a line and add it to the block being built; return whether that ended the block."""
        encoded = line.encode("utf-8", "replace")
        number = len(self._found.keys)
        self._found.keys.append((self._rule and self._rule.key(line, encoded)) or 0)
        self._found.lengths.append(len(line))
        counts["line_characters"] += len(line)
        counts["line_bytes"] += len(encoded)
        return self._picker.add(line, len(encoded), number, weight)

    def _counted(self, counts: Counter[str], tally: Tally) -> Counter[str]:
        """Return the counts of a part's lines with those that its reader made."""
        self._found.num_files += tally.forms.total()
        characters = tally.characters + counts["line_characters"]
        return counts + Counter(documents=tally.documents, characters=characters)


def find_copies(keys: NDArray[np.uint64], config: TextConfig) -> NDArray[np.bool_]:
    """Return which lines the segment stage leaves out as copies, by the keys of all lines."""
    order = np.argsort(keys, kind="stable")
    is_duplicate, is_boilerplate = repeated_keys(keys[order], config.boilerplate_copies)
    is_copy = np.zeros(len(keys), np.bool_)
    is_copy[order] = (is_duplicate | is_boilerplate) & (keys[order] != 0)
    return is_copy
