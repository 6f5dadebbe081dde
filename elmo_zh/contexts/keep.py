"""Choose the lines with the lowest scores, and write them as they were read, in flat memory."""

import codecs
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elmo_zh.contexts.score_lines import ScoredLine
from elmo_zh.corpus.input_texts import InputText
from elmo_zh.corpus.names import is_archive_name
from elmo_zh.errors import CorpusError
from elmo_zh.run.reporter import SilentReporter

_CHUNK_LINES = 2**18
_SIGN = np.uint64(1 << 63)


@dataclass(frozen=True, kw_only=True)
class KeepRule:
    """The rule for keeping lines: those whose bits per character, or difference, are `below`, or the lowest `share`.

    One of the two is given. A line without a token is never kept; ties go to the earlier.
    """

    below: float | None = None
    share: float | None = None


class _Threshold(NamedTuple):
    """Lines below `rank` are kept, and of those equal to it the first `num_equal`."""

    rank: int
    num_equal: int


def write_kept(
    lines: Iterable[ScoredLine], texts: Sequence[InputText], rule: KeepRule, scratch: Path, output: BinaryIO
) -> int:
    """Write the kept lines in order, and return their number.

    If all texts are plain, compressed or not, and have one encoding, lines are written byte for byte. Lines in UTF-16
    and UTF-32, of archives, records and texts of different encodings are written in UTF-8. Each line ends with LF, and
    byte order marks are left out. The file `scratch` takes eight bytes a line.
    """
    num_scored = _write_ranks(lines, scratch)
    if not scratch.stat().st_size:
        return 0
    ranks = np.memmap(scratch, np.uint64, mode="r")
    threshold = _choose_threshold(ranks, num_scored, rule)
    num_kept, num_equal = 0, threshold.num_equal
    num_lines = 0
    for rank, line in zip(_iter_values(ranks), _iter_raw_lines(texts), strict=False):
        num_lines += 1
        if rank < threshold.rank or (rank == threshold.rank and num_equal > 0):
            num_equal -= rank == threshold.rank
            num_kept += 1
            output.write(line)
    if num_lines != len(ranks):
        raise CorpusError("A text has changed while it was read. Type the same command again.")
    return num_kept


def _write_ranks(lines: Iterable[ScoredLine], path: Path) -> int:
    """Write the rank of each line, uint64, highest for those without a token; return the number of the others."""
    num_scored = 0
    keys: list[float] = []
    with path.open("wb") as file:
        for line in lines:
            key = line.score.bits_per_character if line.difference is None else line.difference
            num_scored += key is not None
            keys.append(np.inf if key is None else key)
            if len(keys) == _CHUNK_LINES:
                file.write(_ranks(np.array(keys)).tobytes())
                keys = []
        file.write(_ranks(np.array(keys)).tobytes())
    return num_scored


def _ranks(keys: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Return whole numbers in the order of the numbers."""
    bits = (keys + 0.0).view(np.uint64)  # -0.0 becomes 0.0
    return np.where(bits & _SIGN, ~bits, bits | _SIGN)


def _choose_threshold(ranks: NDArray[np.uint64], num_scored: int, rule: KeepRule) -> _Threshold:
    if rule.share is None:
        return _Threshold(int(_ranks(np.array([rule.below], np.float64))[0]), 0)
    num_kept = int(rule.share * num_scored + 0.5)
    if num_kept == 0:
        return _Threshold(0, 0)
    return _smallest(ranks, num_kept)


def _smallest(ranks: NDArray[np.uint64], count: int) -> _Threshold:
    """Return the threshold that `count` numbers pass, found 16 bits at a time."""
    prefix, left = 0, count
    for shift in (48, 32, 16, 0):
        histogram = np.zeros(2**16, np.int64)
        for start in range(0, len(ranks), _CHUNK_LINES):
            upper = ranks[start : start + _CHUNK_LINES] >> np.uint64(shift)
            own = upper if shift == 48 else upper[upper >> np.uint64(16) == np.uint64(prefix)]
            histogram += np.bincount((own & np.uint64(0xFFFF)).astype(np.int64), minlength=2**16)
        sums = histogram.cumsum()
        digit = int(np.searchsorted(sums, left))
        left -= int(sums[digit] - histogram[digit])
        prefix = prefix << 16 | digit
    return _Threshold(prefix, left)


def _iter_values(ranks: NDArray[np.uint64]) -> Iterator[int]:
    for start in range(0, len(ranks), _CHUNK_LINES):
        yield from ranks[start : start + _CHUNK_LINES].tolist()


def _iter_raw_lines(texts: Sequence[InputText]) -> Iterator[bytes]:
    texts = [text for text in texts if text.tally.forms]  # the others have no lines
    encodings = {_encoding_of_bytes(text) for text in texts}
    for text in texts:
        if len(encodings) > 1 or "" in encodings:
            for line in text.lines_if_text(SilentReporter()):
                yield f"{line}\n".encode()
        else:
            with text.source.open() as file:
                for number, raw in enumerate(file):
                    unmarked = raw if number else raw.removeprefix(codecs.BOM_UTF8)
                    yield unmarked.removesuffix(b"\n") + b"\n"


def _encoding_of_bytes(text: InputText) -> str:
    """Return the encoding of a text that was read, if its bytes can be split at LF into its lines; else ""."""
    forms = list(text.tally.forms.elements())
    if len(forms) != 1 or is_archive_name(text.source.file_name):
        return ""
    kind, encoding, _ = forms[0]
    return encoding if kind == "text" and "\n".encode(encoding) == b"\n" else ""
