"""Labels that the user gives to occurrences: a table of files, lines and words."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from elmo_zh.contexts.index_entries import IndexedLine
from elmo_zh.corpus.text_files import iter_lines
from elmo_zh.errors import CorpusError

# Columns that say which occurrences a row is about; a row is about all that agree with it.
_FILE, _LINE, _WORD = "file", "line", "word"
# Columns of the project's tables that are neither.
_PASSED_OVER = ("start", "end", "text_start", "text")
# Texts of the index that a message names.
_SHOWN_NAMES = 3
_Key = tuple[str | None, int | None, str | None]


@dataclass(frozen=True)
class PointLabels:
    """Labels of occurrences, by the names of the columns that have them.

    Attributes:
        path: The table.
        names: The columns with labels.
        rows: By file, line and word, each None if the table does not have this column, the label of each column; an
            empty one where rows disagree.
    """

    path: Path
    names: tuple[str, ...]
    rows: Mapping[_Key, tuple[str, ...]]

    @classmethod
    def load(
        cls, path: Path, texts: Sequence[str], *, archives: Collection[str] = (), skips_others: bool = False
    ) -> "PointLabels":
        """Read a table.

        Args:
            path: A TSV file in UTF-8 with a header. The columns file, line (from 0) and word, at least one of them, say
                which occurrences a row is about; every other one has labels, except start, end, text_start and text.
            texts: The names of the texts of the index; of an archive its members.
            archives: The names of the archives, which a table without line numbers may have instead of their members.
            skips_others: Skip rows about files that are no texts of the index, which are otherwise an error.

        Raises:
            CorpusError: If the table has no such columns, a row has too few fields or a wrong file or line.
        """
        rows = enumerate(iter_lines(path), start=1)
        _, header = next(rows, (0, ""))
        columns = header.split("\t")
        names = tuple(name for name in columns if name and name not in (_FILE, _LINE, _WORD, *_PASSED_OVER))
        if not {_FILE, _LINE, _WORD}.intersection(columns) or not names:
            raise CorpusError(
                f"{path}: line 1 has the columns {', '.join(columns) or 'none'}; expected file, line or word, and one"
                " more with labels, separated by tabs."
            )
        if len(set(columns)) < len(columns):
            raise CorpusError(f"{path}: line 1 names a column twice. Give each column a name of its own.")
        files = _names_of_texts([*texts, *archives])
        found: dict[_Key, tuple[str, ...]] = {}
        for number, row in rows:
            if row:
                fields = _fields(row, columns, f"{path}: line {number}")
                if skips_others and _FILE in fields and fields[_FILE] not in files:
                    continue
                key = _key(fields, files, f"{path}: line {number}")
                if key[0] in archives and key[1] is not None:
                    member = next(text for text in texts if text.startswith(f"{key[0]}/"))
                    raise CorpusError(
                        f"{path}: line {number}: {key[0]} is an archive, whose files have lines of their own. Name one,"
                        f" such as {member}"
                    )
                own = tuple(fields[name] for name in names)
                before = found.get(key, own)
                found[key] = tuple(one if one == other else "" for one, other in zip(before, own, strict=True))
        return cls(path, names, found)

    @property
    def words(self) -> frozenset[str]:
        """The words that the table names; empty if it has no such column."""
        return frozenset(word for _, _, word in self.rows if word)

    def label(self, name: str, line: IndexedLine, word: str) -> str | None:
        """Return the label of an occurrence in a column; None if it has none."""
        place = self.names.index(name)
        for key in _keys(line, word):
            if (found := self.rows.get(key)) is not None:
                return found[place] or None
        return None


def _keys(line: IndexedLine, word: str) -> Iterator[_Key]:
    """Yield the keys that a table can have for an occurrence, by the columns that it may lack."""
    for own_word in (word, None):
        for source in (line.source, line.archive, None):
            for number in (line.number, None):
                yield source, number, own_word


def _fields(row: str, columns: Sequence[str], where: str) -> dict[str, str]:
    fields = row.split("\t")
    if len(fields) != len(columns):
        raise CorpusError(f"{where} has {len(fields)} fields, expected {len(columns)} as in line 1.")
    return dict(zip(columns, fields, strict=True))


def _key(fields: Mapping[str, str], files: Mapping[str, str | None], where: str) -> _Key:
    source, line = None, None
    if (file := fields.get(_FILE)) is not None:
        source = files.get(file)
        if source is None and file in files:
            raise CorpusError(f"{where}: several texts of the index end in {file}. Give more of the path.")
        if source is None:
            shown = ", ".join(list(files)[:_SHOWN_NAMES])
            raise CorpusError(f"{where}: {file} is no text of the index. There are: {shown}")
    if (number := fields.get(_LINE)) is not None:
        if not (number.isascii() and number.isdecimal()):
            raise CorpusError(f"{where}: {number} is no number of a line. Lines are counted from 0.")
        line = int(number)
    return source, line, fields.get(_WORD)


def _names_of_texts(texts: Sequence[str]) -> dict[str, str | None]:
    """Return the text of each name: its path or the end of it; None where several texts have it."""
    found: dict[str, str | None] = {text: text for text in texts}
    for text in texts:
        parts = text.split("/")
        for start in range(1, len(parts)):
            end = "/".join(parts[start:])
            if found.setdefault(end, text) != text and end not in texts:
                found[end] = None
    return found
