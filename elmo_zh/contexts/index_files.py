"""The files of an index: arrays, which are checked when read, and metadata; see docs/contexts.md."""

from array import array
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.corpus.cell_types import ColumnType, column_type, sort_key
from elmo_zh.corpus.input_texts import Members, member_name
from elmo_zh.errors import ConfigError, OutputError
from elmo_zh.invocation import command, program
from elmo_zh.language import _, ngettext
from elmo_zh.run.files import file_digest, read_json
from elmo_zh.run.mark import require_unchanged
from elmo_zh.run.reporter import Reporter

# Bump it when a program that knows the old number would misread the new files.
INDEX_FORMAT = 3

# `count` is the number of occurrences in the texts; the other two say where a word's spelling and its postings end.
WORD = np.dtype([("end", "<i8"), ("count", "<i8"), ("postings_end", "<i8")])
# `start` is the first character of the text in its raw line, since a sentence may begin anywhere in it.
LINE = np.dtype([("end", "<i8"), ("source", "<i4"), ("number", "<i8"), ("start", "<i4"), ("tokens_end", "<i8")])
# `word` is the number of its word; `start` and `end` are its characters in the text of its line.
TOKEN = np.dtype([("word", "<i4"), ("start", "<i4"), ("end", "<i4")])
OCCURRENCE = np.dtype([("word", "<i4"), ("line", "<i4"), ("token", "<i4"), ("start", "<i4"), ("end", "<i4")])
POSTING, VECTOR, NORM, COLUMN = np.dtype("<i8"), np.dtype("<f2"), np.dtype("<f4"), np.dtype("<i4")
# Longer values are cut off, so that a column of texts does not double an index.
_LONGEST_VALUE = 200


@dataclass(frozen=True, eq=False)
class Column:
    """A column of values for L lines: the distinct values, and each line's place among them, int32, shape (L,)."""

    values: Sequence[str]
    codes: NDArray[np.int32]

    @cached_property
    def counts(self) -> list[tuple[str, int]]:
        """The distinct values, each with its number of lines."""
        numbers = np.bincount(self.codes, minlength=len(self.values)).tolist()
        return list(zip(self.values, numbers, strict=True))

    @cached_property
    def type(self) -> ColumnType:
        """The type that most of the filled cells have: numbers, dates or text."""
        return column_type(self.counts)

    def ranks(self) -> NDArray[np.float64]:
        """Return each value's rank by the column's type, float64, shape (V,): empty cells first, others by spelling."""
        parse = self.type.parse
        keys = [
            (0, sort_key(parsed), "") if (parsed := parse(value)) is not None else (-1 + 2 * bool(value), (), value)
            for value in self.values
        ]
        places = {key: place for place, key in enumerate(sorted({*keys}))}
        return np.array([places[key] for key in keys], np.float64)


def require_column(columns: Mapping[str, Column], name: str, option: str) -> Column:
    """Return a column; if there is no such column, raise a ConfigError that lists the columns."""
    if name not in columns:
        close = get_close_matches(name, columns, 1, cutoff=0.5)
        meant = f"Did you mean {close[0]}? " if close else ""
        raise ConfigError(f"{option}: the texts have no column {name}. {meant}Their columns are: {', '.join(columns)}")
    return columns[name]


def free_name(name: str, taken: Collection[str]) -> str:
    """Return a name for a user's column that no column of ours has: the name itself or, say, line_2."""
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}_{number}"
    return free


def with_source(source: Column, columns: Mapping[str, Column]) -> dict[str, Column]:
    """Return columns with the file of each line in front as `source`; another column of that name is renamed."""
    new_name = free_name("source", {"source", *columns})
    return {"source": source, **{new_name if name == "source" else name: values for name, values in columns.items()}}


def note_type(name: str, column: Column, reporter: Reporter) -> None:
    """Say how a column is compared and sorted, if it holds dates or if some cells are of another type."""
    count, example = column.type.num_others, column.type.example
    if column.type.name == "dates" and not count:
        reporter.note(_("{name}: compared as dates").format(name=name))
    elif column.type.name == "dates":
        reporter.note(
            ngettext(
                "{name}: compared as dates; {count:,} cell is not a date, such as {example!r}",
                "{name}: compared as dates; {count:,} cells are not dates, such as {example!r}",
                count,
            ).format(name=name, count=count, example=example[:20])
        )
    elif count:
        reporter.note(
            ngettext(
                "{name}: compared as numbers; {count:,} cell is not a number, such as {example!r}",
                "{name}: compared as numbers; {count:,} cells are not numbers, such as {example!r}",
                count,
            ).format(name=name, count=count, example=example[:20])
        )


class ColumnBuilder:
    """Builds columns from lines that are added one by one; a line without a value gets an empty one."""

    def __init__(self) -> None:
        self._places: dict[str, dict[str, int]] = {}
        self._codes: dict[str, array[int]] = {}
        self._num_lines = 0

    def add(self, columns: Mapping[str, str]) -> None:
        """Add the columns of the next line."""
        for name in columns.keys() - self._places.keys():
            self._places[name], self._codes[name] = {"": 0}, array("i", bytes(4 * self._num_lines))
        for name, codes in self._codes.items():
            places = self._places[name]
            codes.append(places.setdefault(columns.get(name, "")[:_LONGEST_VALUE], len(places)))
        self._num_lines += 1

    def columns(self) -> dict[str, Column]:
        """Return the columns by name, sorted by name."""
        return {
            name: Column(list(self._places[name]), np.array(self._codes[name], COLUMN)) for name in sorted(self._codes)
        }


class IndexLayout:
    """The paths of the files in an index folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # Texts, model and settings of the index, and the sizes of the other files.
        self.info = path / "index.json"
        # `WORD` of each distinct token, sorted by spelling, including tokens without vectors; and the spellings in
        # UTF-8, one directly after the other.
        self.words, self.word_text = path / "words.npy", path / "words.utf8"
        # `LINE` of each line, in the order of the texts; the texts of lines, joined likewise; `TOKEN` of each token.
        self.lines, self.line_text = path / "lines.npy", path / "lines.utf8"
        self.tokens = path / "tokens.npy"
        # The columns of the lines, such as year and author: the distinct values of each column; and for each line the
        # places of its values among these, int32, shape (L, columns).
        self.column_values, self.columns = path / "columns.json", path / "columns.npy"
        # `OCCURRENCE` of each occurrence, in the order of the texts; and their numbers, word by word, ascending.
        self.occurrences, self.postings = path / "occurrences.npy", path / "postings.npy"
        # Copy of the words that the segmenter kept whole besides the model's, if there were any.
        self.user_dictionary = path / "user_dictionary.txt"

    def vectors(self, layer: int) -> Path:
        """Return the file with the vectors of all occurrences in one layer, float16, shape (N, 2P)."""
        return self.path / f"layer-{layer}.npy"

    def norms(self, layer: int) -> Path:
        """Return the file with the Euclidean norms of a layer's vectors, float32, shape (N,)."""
        return self.path / f"norms-{layer}.npy"

    def files(self, layers: Sequence[int]) -> list[Path]:
        """Return the paths of all files except `info`."""
        texts = [self.words, self.word_text, self.lines, self.line_text, self.tokens, self.columns, self.column_values]
        return [*texts, self.occurrences, self.postings, *map(self.vectors, layers), *map(self.norms, layers)]

    def arrays(
        self, counts: Mapping[str, int], layers: Sequence[int], dimension: int
    ) -> dict[Path, tuple[np.dtype[Any], tuple[int, ...]]]:
        """Return the dtype and shape of each array file, for an index with these counts."""
        num_occurrences = counts["occurrences"]
        return {
            self.words: (WORD, (counts["distinct_words"],)),
            self.lines: (LINE, (counts["lines"],)),
            self.tokens: (TOKEN, (counts["tokens"],)),
            self.columns: (COLUMN, (counts["lines"], counts["columns"])),
            self.occurrences: (OCCURRENCE, (num_occurrences,)),
            self.postings: (POSTING, (num_occurrences,)),
            **{self.vectors(layer): (VECTOR, (num_occurrences, dimension)) for layer in layers},
            **{self.norms(layer): (NORM, (num_occurrences,)) for layer in layers},
        }


def load_info(folder: Path) -> dict[str, Any]:
    """Return the content of index.json; raise OutputError if it is missing, damaged or from a different version."""
    path = IndexLayout(folder).info
    if folder.is_file():
        raise OutputError(_explain_file(folder))
    if not path.is_file():
        problem = f"is not an index: {path.name} is missing" if folder.is_dir() else "does not exist"
        raise OutputError(f"{folder} {problem}. Create an index with: {program()} index TEXT --output INDEX")
    require_unchanged(path, "Rebuild the index.")
    try:
        info = read_json(path)
        number = info["format"]
    except (ValueError, KeyError, TypeError):
        raise damaged(path) from None
    if number != INDEX_FORMAT:
        raise OutputError(
            f"{path} has format {number}, but this version of elmo-zh reads format {INDEX_FORMAT}. Rebuild the index"
            " with this version."
        )
    if not _is_sound(info):
        raise damaged(path)
    return dict(info)


def _explain_file(path: Path) -> str:
    if IndexLayout(path.parent).info.is_file():
        return f"{path} is a file inside an index. Give the folder of the index: {path.parent}"
    making = command("index", path, "--split-sentences", "--output", path.with_suffix(".index").name)
    return f"{path} is a file, not the folder of an index. If it is a text file, create its index with: {making}"


def _is_sound(info: Any) -> bool:
    """Return whether index.json has all required values, each of the right type."""
    try:
        counts = [info["counts"][name] for name in ("words", "distinct_words", "lines", "tokens", "occurrences")]
        numbers = [info["counts"]["columns"]]
        numbers += [*counts, *info["settings"]["layers"], *info["bytes"].values(), info["dimension"]]
        names = [*(info["model"][name] for name in ("path", "model_digest", "precision", "unknown"))]
        names += [text["name"] for text in info["texts"]] + list(info.get("digests", {}).values())
        for text in info["texts"]:
            Members.restored(text.get("members", []))
    except (KeyError, TypeError, AttributeError, ValueError):
        return False
    are_numbers = all(type(number) is int and 0 <= number < 2**62 for number in numbers)
    return are_numbers and min(counts) > 0 and all(isinstance(name, str) for name in names)


def damaged(path: Path) -> OutputError:
    """Return the error for an index file that has invalid content."""
    return OutputError(f"{path} is damaged. Rebuild the index.")


class IndexArrays:
    """The arrays of an index, memory-mapped on first access; a damaged file raises OutputError."""

    def __init__(self, layout: IndexLayout, info: dict[str, Any], layers: Sequence[int]) -> None:
        """Check the sizes of all files, and the content of words and lines."""
        self.layout = layout
        self._unchecked = {layout.path / name: digest for name, digest in info.get("digests", {}).items()}
        self._kinds = layout.arrays(info["counts"], layers, info["dimension"])
        self._opened: dict[Path, NDArray[Any]] = {}
        _check_sizes(layout, info, layers)
        words, lines = self.read(layout.words), self.read(layout.lines)
        for column, last, where in (
            (words["end"], info["bytes"][layout.word_text.name], layout.words),
            (words["postings_end"], info["counts"]["occurrences"], layout.words),
            (lines["end"], info["bytes"][layout.line_text.name], layout.lines),
            (lines["tokens_end"], info["counts"]["tokens"], layout.lines),
        ):
            if column[-1] != last or column[0] < 0 or (np.diff(column) < 0).any():
                raise damaged(where)
        if lines["source"].min() < 0 or lines["source"].max() >= len(info["texts"]):
            raise damaged(layout.lines)

    def read(self, path: Path) -> NDArray[Any]:
        """Return the array in a file, memory-mapped, after checking its digest, dtype and shape."""
        if path not in self._opened:
            self.check(path)
            try:
                array = np.load(path, mmap_mode="r", allow_pickle=False)
            except (ValueError, EOFError, TokenError):
                raise damaged(path) from None
            if (array.dtype, array.shape) != self._kinds[path]:
                raise damaged(path)
            self._opened[path] = array
        return self._opened[path]

    def user_dictionary(self, model: Mapping[str, str]) -> Path | None:
        """Return the index's copy of the user dictionary, or None if the index was made without one."""
        path, digest = self.layout.user_dictionary, model.get("user_dictionary")
        if digest is not None and not (path.is_file() and file_digest(path) == digest):
            raise damaged(path)
        return None if digest is None else path

    def check(self, path: Path) -> None:
        """Raise OutputError if a file does not match its recorded digest; each file is checked once."""
        expected = self._unchecked.pop(path, None)
        if expected is not None and file_digest(path) != expected:
            self._unchecked[path] = expected
            raise damaged(path)

    def columns(self) -> dict[str, Column]:
        """Return the columns of the lines by name."""
        self.check(self.layout.column_values)
        codes = self.read(self.layout.columns)
        try:
            values = {
                str(name): [str(each) for each in own] for name, own in read_json(self.layout.column_values).items()
            }
        except (ValueError, AttributeError, TypeError):
            raise damaged(self.layout.column_values) from None
        if len(values) != codes.shape[1]:
            raise damaged(self.layout.column_values)
        for number, own in enumerate(values.values()):
            _require_places(self.layout.columns, codes[:, number], len(own))
        return {name: Column(own, codes[:, number]) for number, (name, own) in enumerate(values.items())}

    def tokens(self) -> NDArray[Any]:
        """Return the `TOKEN` record of each token."""
        found = self.read(self.layout.tokens)
        _require_places(self.layout.tokens, found["word"], len(self.read(self.layout.words)))
        return found


def _require_places(path: Path, places: NDArray[np.int32], size: int) -> None:
    if len(places) and (places.min() < 0 or places.max() >= size):
        raise damaged(path)


def _check_sizes(layout: IndexLayout, info: dict[str, Any], layers: Sequence[int]) -> None:
    """Raise OutputError if a file is missing or does not have its recorded size, before reading any of them."""
    for path in layout.files(layers):
        if not path.is_file():
            raise OutputError(f"{path} is missing. Rebuild the index.")
        expected, found = info["bytes"].get(path.name), path.stat().st_size
        if expected is None:
            raise damaged(layout.info)
        if found != expected:
            raise OutputError(f"{path} is damaged: it has {found:,} bytes instead of {expected:,}. Rebuild the index.")


@dataclass(frozen=True)
class Occurrence:
    """One occurrence of a word: its number in the index, and its place in its line."""

    number: int  # its number in the index, from 0, in the order of the texts
    word: str  # the word as the model reads it
    line: int  # number of its line in the index, for `ContextIndex.line`
    token: int  # its place among the tokens of that line
    start: int  # its first character in the text of that line
    end: int  # one past its last character


@dataclass(frozen=True)
class IndexedLine:
    """One line of an index: its text, and the file it comes from."""

    text: str  # the raw line, or one of its sentences if lines were split
    source: str  # name of its text; for an archive, archive and member, such as texts.zip/old/1.txt
    number: int  # number of the line in that text, from 0
    archive: str = ""  # name of the archive; empty if the text is not in one
    # The place of the first character of `text` in the raw line: 0 unless lines were split. Add it to the offsets of an
    # `Occurrence` to get offsets in the raw line.
    start: int = 0


class IndexedTexts:
    """The texts that the lines of an index come from; `sources` and `archives` are as in `ContextIndex`."""

    def __init__(self, info: dict[str, Any]) -> None:
        self._texts = [(text["name"], Members.restored(text.get("members", []))) for text in info["texts"]]
        self.archives = [name for name, members in self._texts if members.names]
        self.sources = [
            source
            for name, members in self._texts
            for source in ([member_name(name, member) for member in members.names] or [name])
        ]

    def source_column(self, texts: NDArray[np.int32], numbers: NDArray[np.int64]) -> Column:
        """Return the source column, given each line's text and its number in that text, both of shape (L,)."""
        first = np.cumsum([0, *(max(1, len(members.names)) for _, members in self._texts)])[:-1]
        codes = first[texts].astype(COLUMN)
        for text, (_name, members) in enumerate(self._texts):
            own = texts == text
            if members.names:
                codes[own] += np.searchsorted(members.first_lines, numbers[own], side="right").astype(COLUMN) - 1
        return Column(self.sources, codes)

    def line(self, text: str, text_number: int, number: int, start: int) -> IndexedLine:
        """Return a line of a text; in an archive, `number` is counted across all members."""
        name, members = self._texts[text_number]
        source, own_number = members.place(name, number)
        return IndexedLine(text, source, own_number, archive=name if members.names else "", start=start)


@dataclass(frozen=True)
class Neighbour:
    """An occurrence that is similar to a given vector."""

    occurrence: Occurrence
    cosine: float  # cosine between its vector and the given one
