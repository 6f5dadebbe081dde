"""Ways to colour the points of a page: by usage, by source, and by the user's labels."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from elmo_zh.contexts.index import ContextIndex, IndexedLine
from elmo_zh.corpus.text_files import iter_lines
from elmo_zh.errors import CorpusError
from elmo_zh.explore.points import WordPoints
from elmo_zh.language import _
from elmo_zh.run.reporter import Reporter, counted

# Colours that people can tell apart; rarer labels share the grey of the others.
NUM_COLOURS = 15
_NUM_SHOWN = 4
# Columns that select occurrences; a row applies to every occurrence that agrees with it.
_FILE, _LINE, _START, _WORD = "file", "line", "start", "word"
# Columns of the project's own tables that neither select occurrences nor label them.
_PASSED_OVER = ("end", "text_start", "text")
# A column NAME_zh has the Chinese of the labels in the column NAME.
_CHINESE = "_zh"
_SHOWN_NAMES = 3
_Key = tuple[str | None, int | None, int | None, str | None]


@dataclass(frozen=True)
class PointLabels:
    """A table with labels for occurrences, in one or more columns.

    `rows` maps (file, line, first character, word), with None for a missing column, to one label for each of `names`; a
    label is empty where rows disagree.
    """

    path: Path
    names: tuple[str, ...]
    rows: Mapping[_Key, tuple[str, ...]]

    @classmethod
    def load(
        cls, path: Path, texts: Sequence[str], *, archives: Collection[str] = (), skips_others: bool = False
    ) -> "PointLabels":
        """Read a table for an index of these texts; raise CorpusError if a row is malformed or names another text."""
        rows = enumerate(iter_lines(path), start=1)
        columns = next(rows, (0, ""))[1].split("\t")
        names = tuple(name for name in columns if name and name not in (_FILE, _LINE, _START, _WORD, *_PASSED_OVER))
        if not {_FILE, _LINE, _WORD}.intersection(columns) or not names:
            raise CorpusError(
                _(
                    "{path}: line 1 has the columns {value}; expected at least one of the columns file, line"
                    " and word, plus a column of labels, separated by tabs."
                ).format(path=path, value=", ".join(columns) or "none")
            )
        if len(set(columns)) < len(columns):
            raise CorpusError(
                _("{path}: line 1 names a column twice. Give each column a name of its own.").format(path=path)
            )
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
                        _(
                            "{path}: line {number}: {key} is an archive, and each file in it has its own line"
                            " numbers. Give one of these files, such as {member}"
                        ).format(path=path, number=number, key=key[0], member=member)
                    )
                own = tuple(fields[name] for name in names)
                before = found.get(key, own)
                found[key] = tuple(one if one == other else "" for one, other in zip(before, own, strict=True))
        return cls(path, names, found)

    @property
    def words(self) -> frozenset[str]:
        """The words in the table; empty if it has no column for them."""
        return frozenset(word for *_, word in self.rows if word)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The columns that points can be coloured by: all except Chinese versions of other columns."""
        return tuple(name for name in self.names if name.removesuffix(_CHINESE) not in {*self.names} - {name})

    def chinese(self, name: str, labels: Iterable[str]) -> tuple[str, ...]:
        """Return labels in Chinese, unchanged where there is no Chinese name; empty if the column has none at all."""
        if (other := f"{name}{_CHINESE}") not in self.names:
            return ()
        places = self.names.index(name), self.names.index(other)
        found = {row[places[0]]: row[places[1]] for row in self.rows.values() if row[places[1]]}
        return tuple(found.get(label, label) for label in labels)

    def label(self, name: str, line: IndexedLine, start: int, word: str) -> str | None:
        """Return an occurrence's label in a column, or None; `start` is its offset in the raw line."""
        place = self.names.index(name)
        for key in _keys(line, start, word):
            if (found := self.rows.get(key)) is not None:
                return found[place] or None
        return None


def _keys(line: IndexedLine, start: int, word: str) -> Iterator[_Key]:
    """Yield the keys under which a table may list an occurrence, since it may lack some columns."""
    for own_word in (word, None):
        for source in (line.source, line.archive, None):
            for place in ((line.number, start), (line.number, None), (None, None)):
                yield source, *place, own_word


def _fields(row: str, columns: Sequence[str], where: str) -> dict[str, str]:
    fields = row.split("\t")
    if len(fields) != len(columns):
        raise CorpusError(
            _("{where} has {fields}; expected {columns}, as in line 1.").format(
                where=where, fields=counted(len(fields), "{number} column", "{number} columns"), columns=len(columns)
            )
        )
    return dict(zip(columns, fields, strict=True))


def _key(fields: Mapping[str, str], files: Mapping[str, str | None], where: str) -> _Key:
    source = None
    if (file := fields.get(_FILE)) is not None:
        source = files.get(file)
        if source is None and file in files:
            raise CorpusError(
                _("{where}: the paths of several texts in the index end in {file}. Give more of the path.").format(
                    where=where, file=file
                )
            )
        if source is None:
            shown = ", ".join(list(files)[:_SHOWN_NAMES])
            raise CorpusError(
                _("{where}: the index contains no text named {file}. Examples of its texts: {shown}").format(
                    where=where, file=file, shown=shown
                )
            )
    line = _number(fields, _LINE, where)
    # Without its line, the place of a character says nothing.
    start = None if line is None else _number(fields, _START, where)
    return source, line, start, fields.get(_WORD)


def _number(fields: Mapping[str, str], name: str, where: str) -> int | None:
    given = fields.get(name)
    if given is not None and not (given.isascii() and given.isdecimal()):
        raise CorpusError(
            _("{where}: {name} is {given}; expected a whole number, 0 or greater.").format(
                where=where, name=name, given=given
            )
        )
    return None if given is None else int(given)


def _names_of_texts(texts: Sequence[str]) -> dict[str, str | None]:
    """Map names to texts; a name is a path or the end of one, mapped to None if several texts share it."""
    found: dict[str, str | None] = {text: text for text in texts}
    for text in texts:
        parts = text.split("/")
        for start in range(1, len(parts)):
            end = "/".join(parts[start:])
            if found.setdefault(end, text) != text and end not in texts:
                found[end] = None
    return found


@dataclass(frozen=True, kw_only=True)
class Colouring:
    """A way to colour the points of a page: labels, their colours, and the label of each point."""

    labels: tuple[str, ...]
    colours: tuple[int | None, ...]  # the number of each label's colour; None for the grey of the others
    points: tuple[int | None, ...]  # the number of each point's label; None for a point without one
    chinese: tuple[str, ...] = ()  # the labels in Chinese; empty without Chinese names

    @classmethod
    def of(cls, labels: Sequence[str | None], words: Sequence[str]) -> "Colouring":
        """Choose colours for the labels of points.

        Labels that occur with the same word have different colours; when colours run out, the rarest labels are grey.
        """
        counts = Counter(label for label in labels if label is not None)
        ranked = sorted(counts, key=lambda label: (-counts[label], label))
        numbers = {label: number for number, label in enumerate(ranked)}
        seen_with: dict[str, set[str]] = {}
        for label, word in zip(labels, words, strict=True):
            if label is not None:
                seen_with.setdefault(word, set()).add(label)
        colours: list[int | None] = []
        for label in ranked:
            beside = set[str]().union(*(others for others in seen_with.values() if label in others))
            taken = {colours[numbers[other]] for other in beside if numbers[other] < len(colours)}
            colours.append(next((colour for colour in range(NUM_COLOURS) if colour not in taken), None))
        points = tuple(None if label is None else numbers[label] for label in labels)
        return cls(labels=tuple(ranked), colours=tuple(colours), points=points)

    def described(self) -> dict[str, Any]:
        """Return the colouring as JSON values."""
        return {"labels": self.labels, "labels_zh": self.chinese, "colours": self.colours, "points": self.points}


def colour_points(
    index: ContextIndex,
    words: Sequence[WordPoints],
    names: Mapping[str, str],
    labels: PointLabels | None,
    reporter: Reporter,
) -> dict[str, dict[str, Any]]:
    """Return the colourings by name: usage, source, label:NAME for the user's labels, column:NAME for other columns."""
    points = [point for word in words for point in word.occurrences]
    lines = [index.line(point.line) for point in points]
    spelled = [word.word for word in words for _ in word.occurrences]
    found = {
        "usage": _by_usage(words),
        "source": Colouring.of([names[line.source] for line in lines], spelled),
    }
    if labels is not None:
        starts = [line.start + point.start for line, point in zip(lines, points, strict=True)]
        found |= _by_labels(labels, list(zip(lines, starts, spelled, strict=True)), reporter)
    for name, column in index.columns.items():
        if name != "source":
            values = [column.values[column.codes[point.line]] or None for point in points]
            found[f"column:{name}"] = Colouring.of(values, spelled)
    return {name: colouring.described() for name, colouring in found.items()}


def _by_usage(words: Sequence[WordPoints]) -> Colouring:
    """Return the colouring by usage, with the usage's number as colour and the words used alike as label."""
    labels: list[str] = []
    colours: list[int | None] = []
    points: list[int | None] = []
    for word in words:
        points += (len(labels) + word.usages).tolist()
        labels += ["、".join(name[:_NUM_SHOWN]) for name in word.names]
        colours += range(word.num_usages)
    return Colouring(labels=tuple(labels), colours=tuple(colours), points=tuple(points))


def _by_labels(
    labels: PointLabels, places: Sequence[tuple[IndexedLine, int, str]], reporter: Reporter
) -> dict[str, Colouring]:
    found = {}
    for name in labels.kinds:
        own = [labels.label(name, *place) for place in places]
        if all(label is None for label in own):
            reporter.warn(
                _("{path}: no occurrence on the page has a label in column {name}.").format(path=labels.path, name=name)
            )
        colouring = Colouring.of(own, [word for *_, word in places])
        found[f"label:{name}"] = replace(colouring, chinese=labels.chinese(name, colouring.labels))
    return found
