"""Word vectors for the rows of a vocabulary, in files of our own and of other programs.

Both are in word2vec's text format. Published files have many faults, so more rows than the header announces are read,
single damaged rows are left out, and files that are not text are recognised by their first bytes.
"""

import re
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from io import BufferedReader
from itertools import chain, islice, takewhile
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from elmo_zh.config import Word2vecConfig
from elmo_zh.corpus.packing import compression_of, unpacked
from elmo_zh.corpus.text_files import iter_lines
from elmo_zh.errors import RunError
from elmo_zh.invocation import command
from elmo_zh.language import N_, _
from elmo_zh.run.files import atomic_path
from elmo_zh.text.entries import Entries
from elmo_zh.vocabulary.vocabulary import SPECIALS, UNKNOWN_ID, Vocabulary

_HEADER = re.compile(rb"\s*(\d+)\s+(\d+)\s*")
_SAMPLE_ROWS = 100
_CONTROL = bytes({*range(32)} - {*b"\t\n\v\f\r"})

_CUT_OFF = N_("its header announces {announced} words, but it has {rows}")
# How a file that is not text begins, what wrote it, and how gensim reads it.
_KINDS = (
    (re.compile(rb"\xba\x16\x4f\x2f"), "fastText", "fasttext.load_facebook_vectors({path})"),
    (re.compile(rb"\x80[\x02-\x05]"), "gensim", "KeyedVectors.load({path})"),
    (_HEADER, "word2vec", "KeyedVectors.load_word2vec_format({path}, binary=True)"),
)


@dataclass(frozen=True, kw_only=True)
class WordVectors:
    """Vectors for some of a vocabulary's rows."""

    rows: NDArray[np.int64]  # Row numbers, int64, shape (num_found,)
    vectors: NDArray[np.float32]  # Vectors of these rows, float32, shape (num_found, dimension)


@dataclass(frozen=True, kw_only=True)
class TrainingJob:
    """The training text, vocabulary, each row's count (for <S>, the number of sentences), dimension and settings."""

    files: Sequence[Path]
    vocabulary: Vocabulary
    counts: Sequence[int]
    dimension: int
    config: Word2vecConfig

    @cached_property
    def rows(self) -> NDArray[np.int64]:
        """The rows of the words that occur in the text, which get vectors, int64, shape (num_rows,)."""
        return np.array([row for row in range(len(SPECIALS), len(self.vocabulary)) if self.counts[row]], np.int64)

    @property
    def num_tokens(self) -> int:
        """The total number of tokens in all epochs."""
        return self.config.epochs * sum(self.counts[UNKNOWN_ID:])


def save_word_vectors(path: Path, vocabulary: Vocabulary, vectors: WordVectors) -> None:
    """Write vectors in word2vec's text format, with enough digits to restore float32 values exactly."""
    with atomic_path(path) as unfinished, unfinished.open("w", encoding="utf-8", newline="\n") as file:
        file.write(f"{len(vectors.rows)} {vectors.vectors.shape[1]}\n")
        for row, vector in zip(vectors.rows, vectors.vectors, strict=True):
            file.write(f"{vocabulary.tokens[row]} {' '.join(map(str, vector))}\n")


def load_word_vectors(path: Path, vocabulary: Vocabulary, dimension: int = 0) -> WordVectors:
    """Read the vectors that `save_word_vectors` wrote; raise RunError if a line is wrong or missing.

    A `dimension` of 0 stands for the length of the first vector.
    """
    rows = {word: row for row, word in enumerate(vocabulary.tokens) if row >= len(SPECIALS)}
    vectors: dict[int, NDArray[np.float32]] = {}
    again = command("word2vec", "--run", path.parent, "--force")
    lines = iter_lines(path, drop_mark=False)
    num_announced = next(lines, "").partition(" ")[0]
    for number, line in enumerate(lines, start=2):
        word, *numbers = line.split(" ")
        try:
            vector = np.array(numbers, np.float32)
        except ValueError:
            vector = np.zeros(0, np.float32)
        dimension = dimension or len(vector)
        if word not in rows or not 0 < len(vector) == dimension or not np.isfinite(vector).all():
            raise RunError.damaged(path, _("line {number}").format(number=number), again)
        vectors[rows[word]] = vector
    if num_announced != str(len(vectors)):
        raise RunError.damaged(path, _(_CUT_OFF).format(announced=num_announced, rows=len(vectors)), again)
    found = np.array(sorted(vectors), np.int64)
    return WordVectors(rows=found, vectors=np.array([vectors[row] for row in found]).reshape(len(found), dimension))


def has_spread(vectors: NDArray[np.float32]) -> bool:
    """Return whether vectors differ; from one vector, or identical ones, a table would start with equal rows."""
    return len(vectors) > 1 and bool(np.ptp(vectors, axis=0).any())


def read_given_vectors(entries: Entries, vocabulary: Vocabulary, dimension: int) -> WordVectors:
    """Read vectors for the vocabulary's words from the file of `entries`, which counts what is left out.

    Words are prepared as the text is. If several become the same word, the first that preparation did not change wins,
    otherwise the first. A `dimension` of 0 stands for the length in the header or, without a header, for the most
    common length in the first lines.

    Raises:
        RunError: If the file is not UTF-8 text or is cut off, or if its first lines have no vector of that length.
    """
    with _opened(entries.path) as file:
        _require_text(entries.path, file)
        return _Rows(entries, vocabulary, dimension).read(file)


@contextmanager
def _opened(path: Path) -> Iterator[BufferedReader]:
    with path.open("rb") as packed:
        suffix = compression_of(packed.peek(8))
        size = path.stat().st_size
        yield cast(BufferedReader, unpacked(packed, suffix, str(path), size)) if suffix else packed


def _require_text(path: Path, file: BufferedReader) -> None:
    head = file.peek()
    is_text = b"\0" not in head and 100 * len(head.translate(None, _CONTROL)) >= 99 * len(head)
    for start, kind, load in _KINDS:
        if start.match(head) and not (is_text and start is _HEADER):
            program = f"from gensim import models; v = models.{load.format(path=repr(str(path)))}"
            raise RunError(
                _('{path} is a binary file ({kind}). Save it as text: python -c "{program}"').format(
                    path=path,
                    kind=kind,
                    program=f"{program}; getattr(v, 'wv', v).save_word2vec_format('vectors.txt')",
                )
            )
    if not is_text:
        message = _("{path} is not text. Use an unpacked file in the text format of word2vec, in UTF-8.")
        raise RunError(message.format(path=path))


class _Rows:
    """Reads the rows of a file of vectors, one line each: a word, which may hold spaces, and its numbers."""

    def __init__(self, entries: Entries, vocabulary: Vocabulary, dimension: int) -> None:
        self._entries, self._path, self._dimension = entries, entries.path, dimension
        self._rows = {word: row for row, word in enumerate(vocabulary.tokens) if row >= len(SPECIALS)}
        self._as_written: dict[int, NDArray[np.float32]] = {}
        self._changed: dict[int, NDArray[np.float32]] = {}
        self._num_rows = self._num_undecodable = 0

    def read(self, file: BinaryIO) -> WordVectors:
        """Return the vectors of the words in the vocabulary; raise RunError if the file is truncated or unsuitable."""
        sample = list(islice(file, _SAMPLE_ROWS))
        sample[:1] = [line.removeprefix(BOM_UTF8) for line in sample[:1]]
        header = _HEADER.fullmatch(sample[0]) if sample and self._dimension != 1 else None
        first = 2 if header else 1
        self._dimension = self._dimension or (int(header[2]) if header else 0)
        self._find_dimension(sample[first - 1 :], first)
        for number, line in enumerate(chain(sample[first - 1 :], file), start=first):
            if line.strip():
                self._num_rows += 1
                self._read_row(line, number)
        self._require_whole(int(header[1]) if header else self._num_rows)
        vectors = self._changed | self._as_written
        rows = np.array(sorted(vectors), np.int64)
        stacked = np.array([vectors[row] for row in rows], np.float32).reshape(len(rows), self._dimension)
        return WordVectors(rows=rows, vectors=stacked)

    def _find_dimension(self, lines: Sequence[bytes], first: int) -> None:
        """Take the most common length if none is given; raise RunError if no line has that many numbers."""
        lines = [line for line in lines if line.strip()]
        lengths = Counter(map(_num_numbers, lines))
        expected = f"{self._dimension} (model.projection_dim)" if self._dimension else "> 0"
        self._dimension = self._dimension or max(filter(None, lengths), key=lengths.__getitem__, default=1)
        if lengths[self._dimension]:
            return
        shown = lines[0][:40].decode("utf-8", "replace").strip() if lines else ""
        numbers = _num_numbers(lines[0]) if lines else 0
        raise RunError(
            _(
                "{path}: line {number} ({line}): numbers after the word: {numbers}; expected {dimension}, separated by"
                " spaces. Use dense vectors, all of one length."
            ).format(path=self._path, number=first, line=repr(shown), numbers=numbers, dimension=expected)
        )

    def _read_row(self, line: bytes, number: int) -> None:
        fields = line.strip(b"\r\n").rsplit(None, self._dimension)
        if line[:1].isspace() and len(fields) == self._dimension:
            fields = [b" ", *fields]
        try:
            word = fields[0].decode("utf-8")
        except UnicodeDecodeError:
            self._num_undecodable += 1
            self._entries.leave_out(number, fields[0].decode("utf-8", "replace"), _("is not UTF-8"))
            return
        if len(fields) <= self._dimension:
            self._leave_out(number, word)
        elif not line.endswith(b"\n"):
            self._entries.leave_out(number, word, _("has no line end, so its last number may be cut off"))
        elif (prepared := self._entries.prepare(word, number)) and (row := self._rows.get(prepared)) is not None:
            vectors = self._as_written if prepared == word else self._changed
            vector = _parse_vector(fields[1:])
            if vector is None:
                self._leave_out(number, word)
            elif prepared == word and row in vectors:
                self._entries.leave_out(number, word, _("has a vector in an earlier line"))
            else:
                vectors.setdefault(row, vector)

    def _leave_out(self, number: int, word: str) -> None:
        reason = _("does not have {dimension} finite numbers").format(dimension=self._dimension)
        self._entries.leave_out(number, word, reason)

    def _require_whole(self, num_announced: int) -> None:
        if 2 * self._num_undecodable > self._num_rows:
            raise RunError(
                _("{path} is not UTF-8. Convert it first, for example: iconv -f GB18030 -t UTF-8 OLD > NEW").format(
                    path=self._path
                )
            )
        if self._num_rows < num_announced:
            raise RunError.damaged(self._path, _(_CUT_OFF).format(announced=num_announced, rows=self._num_rows))


def _num_numbers(line: bytes) -> int:
    """Return how many numbers there are at the end of a line that begins with a word."""
    numbers = takewhile(_is_number, reversed(line.split()[1:]))
    return sum(1 for _number in numbers)


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _parse_vector(numbers: Sequence[bytes]) -> NDArray[np.float32] | None:
    """Return a vector, or None if a number cannot be read or is not finite."""
    try:
        with np.errstate(over="ignore"):
            vector = np.array(numbers, np.float32)
    except ValueError:
        return None
    return vector if np.isfinite(vector).all() else None
