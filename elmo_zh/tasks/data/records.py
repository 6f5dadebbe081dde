"""Records with named fields: the rows of CSV and TSV, the objects of JSON."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from elmo_zh.corpus.decoding import DecodedText
from elmo_zh.corpus.readers.fields import KNOWN_NAMES
from elmo_zh.corpus.readers.tables import LONGEST_CELL, checked_rows, csv_rows, is_number, tsv_rows
from elmo_zh.errors import CorpusError
from elmo_zh.tasks.data.examples import UnlabelledError
from elmo_zh.tasks.data.json_objects import iter_objects
from elmo_zh.tasks.data.part_names import column_of_parts, part_of
from elmo_zh.text.han import count_han

# In order of preference, in lower case.
LABEL_NAMES = (
    "label", "labels", "class", "category", "target", "sentiment", "score", "rating", "star", "stars", "similarity",
    "tag", "gold_label", "label_desc", "标签", "標籤", "类别", "類別", "分类", "分類", "情感", "情感倾向", "评分",
    "得分", "分数", "相似度",
)  # fmt: skip
TEXT_NAMES = (*KNOWN_NAMES, "comment", "title", "query", "question", "标题", "標題", "问题", "問題")
PAIR_NAMES = (
    ("sentence1", "sentence2"), ("text1", "text2"), ("text_a", "text_b"), ("sentence_a", "sentence_b"),
    ("question1", "question2"), ("query1", "query2"), ("q1", "q2"), ("s1", "s2"), ("premise", "hypothesis"),
    ("question", "answer"), ("query", "title"), ("query", "doc"), ("句子1", "句子2"), ("问题", "答案"),
)  # fmt: skip
# Columns that number the rows: never a text or a label.
_NUMBERING = re.compile(r".*id\d*|idx|index|序号|编号")
_SAMPLE_ROWS = 200
# Signs between the columns of some tables, such as _!_ or ||, and how many lines have to show it.
_SEPARATOR = re.compile(r"(?!__)[_!|#@$^*+=~]{2,}")
_LEAST_LINES = 10
# A first row whose label never comes again, where every other label does in at least so many rows, names the columns.
_LEAST_ROWS = 20
# Columns with more empty cells, or fewer distinct ones, are texts only if there are no others.
_MOST_EMPTY, _LEAST_DISTINCT = 0.2, 0.1
# Least fraction of the rows without a header that have as many columns as most.
_ALIKE_FRACTION = 0.95
_QUOTE_CELLS = "Put cells that hold the separator in quotes, or separate the columns by tabs."


@dataclass(frozen=True)
class Record:
    """One row or object.

    Attributes:
        number: Its number in the file, from 1.
        cells: The text of each wanted field.
        part: The part of the data, train, dev or test, that a further field names; "" without such a field.
    """

    number: int
    cells: tuple[str, ...]
    part: str = ""


def read_table(
    text: DecodedText, kind: str, wanted: Sequence[str], num_texts: int, *, with_label: bool = True
) -> tuple[Iterator[Record], str]:
    """Return the rows of a table as (texts, label), and a note on the columns.

    Args:
        text: The file.
        kind: csv or tsv.
        wanted: Names of the columns, or numbers from 1; "" for one that has to be found. The label comes last.
        num_texts: 1, or 2 for pairs.
        with_label: Whether there is a label; else only texts are read.

    Raises:
        CorpusError: If a column is missing or cannot be found, or a row is too short.
    """
    rows = _rows(text, kind)
    numbered = ((number, row) for number, row in enumerate(rows, start=1) if any(cell.strip() for cell in row))
    sample = list(islice(numbered, _SAMPLE_ROWS))
    if not sample:
        raise CorpusError(f"{text.name}: it has no rows. Give a table with a text and a label in each row.")
    columns, has_header = _find_columns(text.name, [row for _, row in sample], wanted, num_texts, with_label)
    number, first = sample[0]
    width = _width(text.name, [row for _, row in sample], has_header=has_header)
    _cells(text.name, number, first, columns, width)  # a first row without one of the columns is an error
    shown = ", ".join(f"{column + 1}{f' ({first[column].strip()})' if has_header else ''}" for column in columns)
    body = chain(sample[1:] if has_header else sample, numbered)
    note = f"columns {shown}{'' if has_header else ', no header'}"
    parts = column_of_parts([row for _, row in sample[1:]], columns, width) if has_header and with_label else None
    if parts is None:
        return (Record(number, _cells(text.name, number, row, columns, width)) for number, row in body), note
    found = (
        Record(
            number,
            _cells(text.name, number, row, (*columns, parts), width)[:-1],
            part_of(text.name, number, row[parts]),
        )
        for number, row in body
    )
    return found, f"{note}, parts in {parts + 1} ({first[parts].strip()})"


def _rows(text: DecodedText, kind: str) -> Iterator[list[str]]:
    separator = _separator(text)
    if separator:
        return (line.split(separator) for line in text.whole_lines(LONGEST_CELL))
    return checked_rows(text, csv_rows(text) if kind == "csv" else tsv_rows(text))


def _separator(text: DecodedText) -> str:
    """Return a separator such as _!_ that occurs equally often in each of the first lines; "" if there is none."""
    lines = [line for line in islice(text.whole_lines(LONGEST_CELL), _SAMPLE_ROWS) if line.strip()]
    if len(lines) < _LEAST_LINES or "\t" in lines[0]:
        return ""
    found = sorted(set(_SEPARATOR.findall(lines[0])), key=lambda signs: (-len(signs), signs))
    return next((signs for signs in found if len({line.count(signs) for line in lines}) == 1), "")


def _width(name: str, sample: Sequence[Sequence[str]], *, has_header: bool) -> int:
    """Return the number of columns: that of the header, else the largest; CorpusError if rows differ much."""
    counts = Counter(map(len, sample))
    if not has_header and len(sample) >= _LEAST_LINES and max(counts.values()) < _ALIKE_FRACTION * len(sample):
        raise CorpusError(f"{name}: its rows have {min(counts)} to {max(counts)} columns. {_QUOTE_CELLS}")
    return len(sample[0]) if has_header else max(map(len, sample))


def _num_filled(row: Sequence[str]) -> int:
    """Return the number of columns up to the last that is not empty."""
    return max((place for place, cell in enumerate(row, start=1) if cell.strip()), default=0)


def _cells(name: str, number: int, row: Sequence[str], columns: Sequence[int], width: int) -> tuple[str, ...]:
    if _num_filled(row) > width:
        raise CorpusError(f"{name}: row {number} has {_num_filled(row)} columns, expected {width}. {_QUOTE_CELLS}")
    if max(columns) >= len(row):
        raise CorpusError(
            f"{name}: row {number} has {len(row)} columns, expected at least {max(columns) + 1}. Correct it, or name"
            " the columns: --text-column, --label-column"
        )
    return tuple(row[column] for column in columns)


def _find_columns(
    name: str, sample: Sequence[Sequence[str]], wanted: Sequence[str], num_texts: int, with_label: bool
) -> tuple[tuple[int, ...], bool]:
    """Return the columns of the texts and the label, and whether the first row names them."""
    header = [cell.strip() for cell in sample[0]]
    told = [column for column in wanted if column]
    missing = [
        column
        for column in told
        if (not 1 <= int(column) <= len(header) if column.isdecimal() else column not in header)
    ]
    if missing:
        raise CorpusError(
            f"{name} has no column {missing[0]!r}. Its first row is: {shown_names(header)}."
            " Give one of these names, or a number from 1."
        )
    known = _known_columns(sample, num_texts, with_label)
    guess = known or _guess(sample[1:] or sample, num_texts, with_label)
    if guess is None and len(header) == 1 < num_texts + with_label and not told:
        raise UnlabelledError(
            f"{name}: its first row has one column ({header[0][:40]!r}), expected {num_texts + with_label}, separated"
            " by tabs, commas or another sign. Give such a table, or name its format: --input-format csv or tsv."
        )
    found: list[int] = []
    for place, column in enumerate([*wanted][: num_texts + with_label]):
        if column:
            found.append(int(column) - 1 if column.isdecimal() else header.index(column))
        elif guess is not None and place < len(guess) and guess[place] is not None:
            found.append(int(guess[place] or 0))
        else:
            raise _not_found(name, "column", header, place, num_texts)
    has_header = known is not None or any(not column.isdecimal() for column in told)
    if not has_header and with_label and len(sample) > 2:
        has_header = _is_header(sample, found[-1])
    return tuple(found), has_header


def _not_found(name: str, kind: str, names: Sequence[str], place: int, num_texts: int) -> CorpusError:
    """Return the error for a text or label that no column or field is known to hold."""
    shown = shown_names(names)
    what = "label" if place == num_texts else "text"
    number = f", or by number from 1: --{what}-column {place + 1}" if kind == "column" else ""
    pair = _pair([each.lower() for each in names]) if num_texts == 1 and what == "text" else None
    advice = f"It has the two texts of a pair, {' and '.join(pair)}: use task fit pairs, or name" if pair else "Name"
    message = f"{name}: the {kind} of the {what} was not found among {shown}. {advice} it: --{what}-column NAME{number}"
    return (UnlabelledError if what == "label" else CorpusError)(message)


def shown_names(names: Sequence[str]) -> str:
    """Return the first names of columns or fields in one line, each cut after 20 characters."""
    return ", ".join(" ".join(name.split())[:20] for name in names[:8])


def _pair(header: Sequence[str]) -> tuple[str, str] | None:
    return next((pair for pair in PAIR_NAMES if set(pair) <= set(header)), None)


def _known_columns(sample: Sequence[Sequence[str]], num_texts: int, with_label: bool) -> tuple[int | None, ...] | None:
    """Return the columns by their names in the first row; None if none of the names is known.

    Beside a known label the texts are the other columns with the most Chinese; beside known texts a single other column
    is the label if it may be one. Columns that number the rows are neither.
    """
    header = [cell.strip().lower() for cell in sample[0]]
    label = next((header.index(name) for name in LABEL_NAMES if name in header), None)
    pair = _pair(header)
    if num_texts == 2:
        texts: tuple[int | None, ...] = tuple(map(header.index, pair)) if pair else (None, None)
    else:
        single = (*TEXT_NAMES, *(first for first, second in PAIR_NAMES if second not in header))
        texts = (next((header.index(name) for name in single if name in header), None),)
    if label is None and pair is None and None in texts:
        return None
    others = [place for place, name in enumerate(header) if not _NUMBERING.fullmatch(name)]
    others = [place for place in others if place != label and place not in texts]
    if label is not None and None in texts and len(others) >= num_texts and not (pair and num_texts == 1):
        texts = _texts_among(sample[1:], others, num_texts)
    if label is None and with_label and None not in texts and len(others) == 1 and _may_be_label(sample[1:], others[0]):
        label = others[0]
    return (*texts, label)


def _cells_of(rows: Sequence[Sequence[str]], column: int) -> list[str]:
    return [row[column].strip() for row in rows if column < len(row)]


def _may_be_label(rows: Sequence[Sequence[str]], column: int) -> bool:
    """Return whether the cells of a column are numbers, or at most half as many labels as there are rows."""
    cells = _cells_of(rows, column)
    few = len(cells) < _LEAST_ROWS or 2 * len(set(cells)) <= len(cells)
    return all(cells) and (few or all(map(is_number, cells)))


def _texts_among(rows: Sequence[Sequence[str]], columns: Sequence[int], count: int) -> tuple[int, ...]:
    """Return the columns with the most Chinese, else the longest; those that are often empty or alike come last."""

    def rank(column: int) -> tuple[bool, bool, int, int, int]:
        cells = _cells_of(rows, column)
        is_empty = cells.count("") > _MOST_EMPTY * len(cells)
        is_alike = len(cells) >= _LEAST_ROWS and len(set(cells)) < _LEAST_DISTINCT * len(cells)
        return is_empty, is_alike, -sum(map(count_han, cells)), -sum(map(len, cells)), column

    return tuple(sorted(sorted(columns, key=rank)[:count]))


def _guess(sample: Sequence[Sequence[str]], num_texts: int, with_label: bool) -> tuple[int | None, ...] | None:
    """Return the columns of a table without known names: texts have the most Chinese, labels come again."""
    width = max(map(len, sample))
    if width < num_texts + with_label:
        return None
    texts = _texts_among(sample, range(width), num_texts)
    left = [column for column in range(width) if column not in texts]
    return (*texts, min(left, key=lambda column: _label_rank(_cells_of(sample, column))) if left else None)


def _label_rank(cells: Sequence[str]) -> tuple[bool, int, int]:
    """Return what is lowest for labels: none is empty; values that come again, but several; few of them."""
    distinct = len(set(cells))
    comes_again = 2 * distinct <= len(cells)
    return not all(cells), 0 if comes_again and distinct > 1 else 1 if comes_again else 2, distinct


def _is_header(sample: Sequence[Sequence[str]], label: int) -> bool:
    """Return whether the first row has no label: all others are numbers, or all others come again and it does not."""
    labels = [row[label].strip() if label < len(row) else "" for row in sample]
    first, *others = labels
    if not first:
        return False
    if all(map(is_number, others)):
        return not is_number(first)
    counts = Counter(others)
    return len(others) >= _LEAST_ROWS and not counts[first] and min(counts.values()) > 1


def read_objects(
    text: DecodedText, wanted: Sequence[str], num_texts: int, *, with_label: bool = True
) -> tuple[Iterator[Record], str]:
    """Return the objects of JSON as (texts, label), and a note on the fields; arguments as in `read_table`."""
    records = enumerate(iter_objects(text), start=1)
    sample = list(islice(records, _SAMPLE_ROWS))
    if not sample:
        raise CorpusError(f"{text.name}: it has no records. Give one JSON object a line.")
    names = list(sample[0][1])
    cells = [[_text_of(record.get(name)) or "" for name in names] for _, record in sample]
    known = _known_columns([names, *cells], num_texts, with_label)
    fields = []
    for place, name in enumerate([*wanted][: num_texts + with_label]):
        column = known[place] if known else None
        if not name and column is None:
            if not any(isinstance(value, str) for _, record in sample for value in record.values()):
                raise CorpusError(
                    f"{text.name}: the fields {shown_names(names)} hold lists or objects, expected a text and a label"
                    ' such as {"text": "...", "label": "..."}. Convert it.'
                )
            raise _not_found(text.name, "field", names, place, num_texts)
        fields.append(name or names[int(column or 0)])
    note = f"fields {', '.join(fields)}"
    rest = chain(sample, records)
    used = [place for place, name in enumerate(names) if name in fields]
    parts = column_of_parts(cells, used, len(names)) if with_label else None
    if parts is None:
        return (Record(number, _values(text.name, number, record, fields, num_texts)) for number, record in rest), note
    field = names[parts]
    found = (
        Record(
            number,
            _values(text.name, number, record, fields, num_texts),
            part_of(text.name, number, _text_of(record.get(field))),
        )
        for number, record in rest
    )
    return found, f"{note}, parts in {field}"


def _values(name: str, number: int, record: dict[str, Any], fields: Sequence[str], num_texts: int) -> tuple[str, ...]:
    values = []
    for place, field in enumerate(fields):
        is_label = place == num_texts
        # A label that is null is an empty one; a field that is missing may be a mistaken name.
        value = "" if is_label and field in record and record[field] is None else _text_of(record.get(field))
        if is_label and isinstance(record.get(field), list) and len(record[field]) > 1:
            raise CorpusError(f"{name}: record {number} has {len(record[field])} labels in {field}, expected one.")
        if value is None:
            what = "no field" if record.get(field) is None else "neither text nor a number in"
            raise CorpusError(f"{name}: record {number} has {what} {field}. Correct it.")
        values.append(value)
    return tuple(values)


def _text_of(value: Any) -> str | None:
    """Return a string, a number or the strings of a list, separated by spaces, as text; None for anything else."""
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return " ".join(value)
    return plain_text(value)


def plain_text(value: Any) -> str | None:
    """Return a string or a number of JSON as text; None for anything else."""
    return str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else None
