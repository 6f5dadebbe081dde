"""Pieces of a tar archive: a stream of members, of which each is cut as a file of its own."""

import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import IO, BinaryIO, cast

from elmo_zh.corpus.names import is_archive_name, is_hidden, is_other_name
from elmo_zh.errors import CorpusError
from elmo_zh.planning.cutting import HEAD_BYTES, PIECE_BYTES, Cut, choose_cutter
from elmo_zh.planning.portions import Portion

_SKIPPED_BYTES = 2**18


def tar_cuts(portion: Portion, stream: BinaryIO, goals: Sequence[int]) -> Iterator[tuple[Portion, Cut, int, bool]]:
    """Yield of the members at the goals: the member, what was cut, for how many goals, whether there is more of it.

    A goal in the header of a member or between two is in the member that follows.

    Args:
        portion: The archive.
        stream: Its bytes, unpacked.
        goals: Places in them, rising.

    Raises:
        CorpusError: If it is damaged.
    """
    waiting = list(goals)
    try:
        with tarfile.open(fileobj=stream, mode="r|") as archive:
            for member in archive:
                end = member.offset_data + member.size
                mine = [goal - member.offset_data for goal in waiting if goal < end]
                waiting = waiting[len(mine) :]
                content = archive.extractfile(member) if mine and _is_taken(member) else None
                if content is not None:
                    inside = replace(
                        portion,
                        name=f"{portion.name}: {member.name}",
                        file_name=PurePosixPath(member.name).name,
                        packed_bytes=member.size,
                        num_bytes=member.size,
                        compression="",
                    )
                    yield from ((inside, *cut) for cut in _member_cuts(inside, content, mine))
                if not waiting:
                    return
    except tarfile.TarError as error:
        raise CorpusError(f"{portion.name} is a damaged tar archive ({error}). Fetch or pack it again.") from None


def _is_taken(member: tarfile.TarInfo) -> bool:
    is_text = not (is_archive_name(member.name) or is_other_name(member.name))
    return member.isreg() and member.size > 0 and is_text and not is_hidden(PurePosixPath(member.name))


def _member_cuts(inside: Portion, content: IO[bytes], goals: Sequence[int]) -> Iterator[tuple[Cut, int, bool]]:
    if inside.num_bytes <= 4 * PIECE_BYTES:
        data = content.read()
        yield Cut(data, len(data), len(data)), len(goals), False
        return
    head = content.read(HEAD_BYTES)
    cutter = choose_cutter(inside, head)
    if cutter is None:
        data = head + content.read(max(0, PIECE_BYTES * len(goals) - len(head)))
        yield Cut(data, len(data), len(data)), len(goals), True
        return
    position = len(head)
    for goal in goals:
        while position < goal and (skipped := len(content.read(min(_SKIPPED_BYTES, goal - position)))):
            position += skipped
        cut = cutter.cut(cast(BinaryIO, content), is_start=False)
        position += cut.num_read
        if cut.num_bytes:
            yield cut, 1, True
