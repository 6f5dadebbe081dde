"""How a file is cut into pieces that its reader can read: at line ends, between pages, or from its start only."""

from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

from elmo_zh.corpus.names import format_of_name
from elmo_zh.planning.portions import Portion

PIECE_BYTES = 2**14
HEAD_BYTES = 2**16
# A record is not followed further than this.
LONGEST_BYTES = 2**21
_PAGE, _PAGE_END, _DUMP_END = b"<page>", b"</page>", b"</mediawiki>"


class Cut(NamedTuple):
    """Whole records with what belongs around them, the bytes of the records alone, and the bytes read for them."""

    data: bytes
    num_bytes: int
    num_read: int


@dataclass(frozen=True)
class LineCutter:
    """Cuts at line ends; `header` is the table's first line, empty where lines stand for themselves."""

    header: bytes = b""

    def cut(self, stream: BinaryIO, *, is_start: bool) -> Cut:
        """Return the next lines of a stream; of the line that it stands in the rest is left out."""
        dropped = 0 if is_start else len(stream.readline(LONGEST_BYTES))
        data = stream.read(PIECE_BYTES)
        data += stream.readline(LONGEST_BYTES) if data and not data.endswith(b"\n") else b""
        return Cut(data if is_start else self.header + data, len(data), dropped + len(data))


@dataclass(frozen=True)
class PageCutter:
    """Cuts between the pages of a wiki dump; `start` is what stands before the first."""

    start: bytes

    def cut(self, stream: BinaryIO, *, is_start: bool) -> Cut:  # noqa: ARG002
        """Return the next pages of a stream, as a dump of its own."""
        data, begin, end = b"", -1, -1
        while len(data) < LONGEST_BYTES and (begin < 0 or end < begin + PIECE_BYTES):
            more = stream.read(PIECE_BYTES)
            if not more:
                break
            data += more
            begin = data.find(_PAGE) if begin < 0 else begin
            end = data.rfind(_PAGE_END)
        pages = data[begin : end + len(_PAGE_END)] if 0 <= begin < end else b""
        return Cut(self.start + pages + _DUMP_END if pages else b"", len(pages), len(data))


def choose_cutter(portion: Portion, head: bytes) -> LineCutter | PageCutter | None:
    """Return how to cut a portion that begins like this, None for one that can only be read from its start."""
    kind = format_of_name(portion.file_name) or ""
    if b"<mediawiki" in head[:4000] and _PAGE in head and kind in ("", "wikidump"):
        return PageCutter(head[: head.find(_PAGE)])
    # Characters of two or four bytes: a line end is no byte of its own.
    is_wide = head.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in head[:1000]
    if is_wide or kind in ("html", "markdown", "wikidump"):
        return None
    start = head.lstrip()[:1]
    if (kind == "" and start in (b"[", b"<")) or (
        kind in ("", "json") and start in (b"[", b"{") and not _is_line(head)
    ):
        return None
    if kind in ("csv", "tsv"):
        # Where a field holds line ends, the middle of one cannot be told from a record.
        has_long_fields = kind == "csv" and any(line.count(b'"') % 2 for line in head.split(b"\n")[:-1])
        return None if has_long_fields else LineCutter(head[: head.find(b"\n") + 1])
    return LineCutter()


def _is_line(head: bytes) -> bool:
    """Return whether the first line is a JSON record."""
    first = head.lstrip().split(b"\n", 1)[0].strip()
    return first.startswith(b"{") and first.endswith(b"}")


def closed_json(data: bytes) -> bytes:
    """Return the start of a JSON file, cut after the last whole item of an array, with all brackets closed."""
    closers: list[bytes] = []
    end, closed = 0, b""
    in_text = is_escaped = False
    for place, byte in enumerate(data):
        if in_text:
            in_text = is_escaped or byte != 0x22
            is_escaped = byte == 0x5C and not is_escaped
        elif byte == 0x22:
            in_text = True
        elif byte in b"[{":
            closers.append(b"]" if byte == 0x5B else b"}")
        elif byte in b"]}" and closers:
            closers.pop()
        elif byte == 0x2C and closers and closers[-1] == b"]":
            end, closed = place, b"".join(reversed(closers))
    return data[:end] + closed if end else data
