"""Pieces of a corpus: places at equal distances over all its bytes, and what stands there."""

import re
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from elmo_zh.corpus.archives import is_tar
from elmo_zh.corpus.packing import damage_told, unpacked
from elmo_zh.planning.cutting import (
    HEAD_BYTES,
    LONGEST_BYTES,
    PIECE_BYTES,
    Cut,
    LineCutter,
    PageCutter,
    choose_cutter,
    closed_json,
)
from elmo_zh.planning.portions import Portion
from elmo_zh.planning.tars import tar_cuts

_SKIPPED_BYTES = 2**18
# Files up to this size are taken as a whole; of a corpus of very small ones no more than so many are opened.
_WHOLE_BYTES, _MOST_PLACES = 4 * PIECE_BYTES, 5000
# Unpacking all of a smaller file is a matter of seconds.
_SOUGHT_FROM_BYTES = 2**26
# Where a stream begins within a file of several, as in multistream dumps: its header and that of its first block.
_BZ2_STREAM = re.compile(rb"BZh[1-9]1AY&SY")


@dataclass(frozen=True, kw_only=True)
class Piece:
    """Some of a portion's bytes.

    Attributes:
        portion: Where it is from.
        num_places: Places of the corpus that it stands for.
        data: Its bytes, with those of the portion's start that it cannot be read without, such as a table's header.
        num_bytes: How much of the portion it is.
        is_cut: Whether there is more of the portion.
        expansion: Bytes of the portion over those it was taken to have.
        is_start_only: Whether it was taken from the start since the portion cannot be cut elsewhere.
    """

    portion: Portion
    num_places: int
    data: bytes
    num_bytes: int
    is_cut: bool
    expansion: float = 1.0
    is_start_only: bool = False


@dataclass(frozen=True, kw_only=True)
class Pieces:
    """A sample.

    Attributes:
        pieces: In the order of their places.
        corpus_bytes: Of all portions, unpacked.
        is_all: Whether the pieces are the whole corpus.
        num_unreached: Places that time did not suffice for, since what is compressed has to be read from its start.
    """

    pieces: Sequence[Piece]
    corpus_bytes: float
    is_all: bool
    num_unreached: int = 0


def take_pieces(portions: Sequence[Portion], sample_bytes: int, seconds: float, seed: int) -> Pieces:
    """Take pieces of about `sample_bytes` in all, each portion's share in proportion to its size.

    Args:
        portions: Of the corpus, in order.
        sample_bytes: A corpus of no more bytes is taken as a whole.
        seconds: After so long no more places are looked for.
        seed: Of where the first place is.
    """
    size = sum(portion.num_bytes for portion in portions)
    if size <= sample_bytes:
        pieces = [_whole(portion, 1) for portion in portions]
        return Pieces(pieces=pieces, corpus_bytes=sum(piece.num_bytes for piece in pieces), is_all=True)
    num_wanted = max(1, min(_MOST_PLACES, round(sample_bytes / _mean_piece_bytes(portions, size))))
    places = _choose_places(portions, num_wanted, Random(seed))  # noqa: S311
    num_places = sum(len(mine) for mine in places.values())
    deadline = time.monotonic() + seconds
    pieces = [piece for number, mine in places.items() for piece in _cut(portions[number], mine, deadline)]
    num_reached = sum(piece.num_places for piece in pieces)
    return Pieces(pieces=pieces, corpus_bytes=size, is_all=False, num_unreached=num_places - num_reached)


def _mean_piece_bytes(portions: Sequence[Portion], size: float) -> float:
    """Return how long pieces at places chosen in proportion to size are on average: small files come as a whole."""
    lengths = ((portion.num_bytes, portion.num_bytes <= _WHOLE_BYTES) for portion in portions)
    return sum(length * (length if is_small else PIECE_BYTES) for length, is_small in lengths) / size


def _whole(portion: Portion, num_places: int) -> Piece:
    with damage_told(portion.name), portion.open() as (stream, _):
        data = stream.read()
    return Piece(
        portion=portion,
        num_places=num_places,
        data=data,
        num_bytes=len(data),
        is_cut=False,
        expansion=len(data) / portion.num_bytes,
    )


def _choose_places(portions: Sequence[Portion], num_places: int, random: Random) -> Mapping[int, list[float]]:
    """Return for each portion that has any the places in it, from 0 to 1."""
    distance = sum(portion.num_bytes for portion in portions) / num_places
    next_place = random.random() * distance
    chosen: dict[int, list[float]] = defaultdict(list)
    start = 0.0
    for number, portion in enumerate(portions):
        while next_place < start + portion.num_bytes:
            chosen[number].append((next_place - start) / portion.num_bytes)
            next_place += distance
        start += portion.num_bytes
    return chosen


def _cut(portion: Portion, places: Sequence[float], deadline: float) -> Iterator[Piece]:
    """Yield the pieces of a portion that are reached in time."""
    if portion.num_bytes <= _WHOLE_BYTES:
        yield _whole(portion, len(places))
        return
    with damage_told(portion.name):
        with portion.open() as (stream, _):
            head = stream.read(HEAD_BYTES)
        cutter = choose_cutter(portion, head)
        if is_tar(head[:512]):
            yield from _tar_pieces(portion, places, deadline)
            return
        if cutter is None:
            yield _from_the_start(portion, len(places))
            return
        found: list[Piece] = []
        if portion.compression == ".bz2" and portion.packed_bytes >= _SOUGHT_FROM_BYTES:
            found = list(_bz2_pieces(portion, places, cutter, deadline))
        yield from found or _in_passing(portion, places, cutter, deadline)


def _from_the_start(portion: Portion, num_places: int) -> Piece:
    """Return one piece as long as those of all places together."""
    with portion.open() as (stream, _):
        data = stream.read(PIECE_BYTES * num_places)
        is_cut = bool(stream.read(1))
    is_json = data.lstrip()[:1] in (b"[", b"{")
    return Piece(
        portion=portion,
        num_places=num_places,
        data=closed_json(data) if is_cut and is_json else data,
        num_bytes=len(data),
        is_cut=is_cut,
        is_start_only=is_cut,
    )


def _in_passing(
    portion: Portion, places: Sequence[float], cutter: LineCutter | PageCutter, deadline: float
) -> Iterator[Piece]:
    """Yield the pieces while reading, or seeking where nothing is compressed, from start to end."""
    can_seek = not portion.compression and not portion.member
    size = _unpacked_bytes(portion, deadline) if portion.compression else portion.num_bytes
    position = 0
    with portion.open() as (stream, _):
        for share in places:
            goal = min(int(share * size), max(0, int(size) - PIECE_BYTES))
            if can_seek:
                stream.seek(goal)
            while not can_seek and position < goal and time.monotonic() < deadline:
                skipped = len(stream.read(min(_SKIPPED_BYTES, goal - position)))
                if not skipped:
                    break
                position += skipped
            if time.monotonic() >= deadline:
                return
            cut = cutter.cut(stream, is_start=goal == 0)
            position += cut.num_read
            if cut.num_bytes:
                yield replace(_piece(portion, cut), expansion=size / portion.num_bytes)


def _tar_pieces(portion: Portion, places: Sequence[float], deadline: float) -> Iterator[Piece]:
    """Yield pieces of the members of a tar archive."""
    size = _unpacked_bytes(portion, deadline) if portion.compression else portion.num_bytes
    with portion.open() as (stream, _):
        for inside, cut, num_places, is_cut in tar_cuts(portion, stream, [int(share * size) for share in places]):
            yield Piece(
                portion=inside,
                num_places=num_places,
                data=cut.data,
                num_bytes=cut.num_bytes,
                is_cut=is_cut,
                expansion=size / portion.num_bytes,
            )
            if time.monotonic() >= deadline:
                return


def _unpacked_bytes(portion: Portion, deadline: float) -> float:
    """Return the size of a compressed portion, or how large it seems if half the time does not suffice to unpack it."""
    half = time.monotonic() + (deadline - time.monotonic()) / 2
    size = 0
    with portion.open() as (stream, packed):
        while chunk := stream.read(_SKIPPED_BYTES):
            size += len(chunk)
            if time.monotonic() > half:
                return size * portion.packed_bytes / max(1, packed.tell())
    return size


def _piece(portion: Portion, cut: Cut) -> Piece:
    return Piece(portion=portion, num_places=1, data=cut.data, num_bytes=cut.num_bytes, is_cut=True)


def _bz2_pieces(
    portion: Portion, places: Sequence[float], cutter: LineCutter | PageCutter, deadline: float
) -> Iterator[Piece]:
    """Yield pieces from the streams that begin next to the places; none if the file is one stream."""
    begun = -1
    with portion.source.open_packed() as packed:
        for share in places:
            if time.monotonic() >= deadline:
                return
            goal = int(share * portion.packed_bytes)
            packed.seek(goal)
            match = _BZ2_STREAM.search(packed.read(LONGEST_BYTES))
            if match is None or goal + match.start() == begun:
                continue
            begun = goal + match.start()
            packed.seek(begun)
            with unpacked(packed, ".bz2", portion.name, portion.packed_bytes) as stream:
                cut = cutter.cut(stream, is_start=False)
            if cut.num_bytes:
                yield _piece(portion, cut)
