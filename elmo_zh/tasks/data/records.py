"""Records with named fields: the rows of CSV and TSV, the objects of JSON lines."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from elmo_zh.config import TextConfig
from elmo_zh.corpus.decoding import DecodedText
from elmo_zh.corpus.readers.fields import KNOWN_NAMES
from elmo_zh.corpus.readers.json_lines import json_records
from elmo_zh.corpus.readers.tables import checked_rows, csv_rows, tsv_rows
from elmo_zh.corpus.tally import Tally
from elmo_zh.errors import CorpusError

# In order of preference, in lower case.
LABEL_NAMES = (
    "label", "labels", "class", "category", "target", "sentiment", "score", "rating", "stars", "similarity", "tag",
    "label_desc", "标签", "標籤", "类别", "類別", "分类", "分類", "情感", "情感倾向", "评分", "得分", "分数", "相似度",
)  # fmt: skip
TEXT_NAMES = (*KNOWN_NAMES, "title", "query", "question", "comment", "标题", "標題", "问题", "問題")
PAIR_NAMES = (
    ("sentence1", "sentence2"), ("text1", "text2"), ("text_a", "text_b"), ("sentence_a", "sentence_b"),
    ("question1", "question2"), ("query1", "query2"), ("q1", "q2"), ("s1", "s2"), ("premise", "hypothesis"),
    ("question", "answer"), ("query", "title"), ("query", "doc"), ("句子1", "句子2"), ("问题", "答案"),
)  # fmt: skip
_SAMPLE_ROWS = 200


@dataclass(frozen=True)
class Record:
    """One row or object: its number in the file from 1, and the text of each wanted field."""

    number: int
    cells: tuple[str, ...]


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
    rows = checked_rows(text, csv_rows(text) if kind == "csv" else tsv_rows(text))
    numbered = ((number, row) for number, row in enumerate(rows, start=1) if any(cell.strip() for cell in row))
    sample = list(islice(numbered, _SAMPLE_ROWS))
    if not sample:
        raise CorpusError(f"{text.name}: it has no rows. Give a table with a text and a label in each row.")
    columns, has_header = _find_columns(text.name, [row for _, row in sample], wanted, num_texts, with_label)
    first = sample[0][1]
    shown = ", ".join(f"{column + 1}{f' ({first[column].strip()})' if has_header else ''}" for column in columns)
    body = chain(sample[1:] if has_header else sample, numbered)
    note = f"columns {shown}{'' if has_header else ', no header'}"
    return (Record(number, _cells(text.name, number, row, columns)) for number, row in body), note


def _cells(name: str, number: int, row: Sequence[str], columns: Sequence[int]) -> tuple[str, ...]:
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
    lower = [cell.lower() for cell in header]
    told = [column for column in wanted if column]
    missing = [
        column
        for column in told
        if (not 1 <= int(column) <= len(header) if column.isdecimal() else column not in header)
    ]
    if missing:
        raise CorpusError(
            f"{name} has no column {missing[0]!r}. Its first row is: {', '.join(cell[:20] for cell in header[:8])}."
            " Give one of these names, or a number from 1."
        )
    known = _known_names(lower, num_texts)
    guess = known or _guess(sample[1:] or sample, num_texts, with_label)
    found: list[int] = []
    for place, column in enumerate([*wanted][: num_texts + with_label]):
        if column:
            found.append(int(column) - 1 if column.isdecimal() else header.index(column))
        elif guess is not None and place < len(guess) and guess[place] is not None:
            found.append(int(guess[place] or 0))
        else:
            what = "label" if place == num_texts else "text"
            raise CorpusError(
                f"{name}: the column of the {what} was not found among {', '.join(cell[:20] for cell in header[:8])}."
                f" Name it: --{what}-column NAME, or by number from 1: --{what}-column {place + 1}"
            )
    has_header = known is not None or any(not column.isdecimal() for column in told)
    if not has_header and with_label and len(sample) > 2:
        label = found[-1]
        is_number = [label < len(row) and _is_number(row[label]) for row in sample]
        has_header = label < len(header) and not is_number[0] and all(is_number[1:])
    return tuple(found), has_header


def _known_names(header: Sequence[str], num_texts: int) -> tuple[int | None, ...] | None:
    """Return the columns whose names are known; None if none of them is."""
    label = next((header.index(name) for name in LABEL_NAMES if name in header), None)
    if num_texts == 2:
        pair = next((pair for pair in PAIR_NAMES if set(pair) <= set(header)), None)
        texts: tuple[int | None, ...] = tuple(map(header.index, pair)) if pair else (None, None)
    else:
        texts = (next((header.index(name) for name in TEXT_NAMES if name in header), None),)
    found = (*texts, label)
    if all(column is None for column in found):
        return None
    left = [column for column in range(len(header)) if column not in found]
    # With one column left for one that has no known name, it is that one.
    if found.count(None) == 1 and len(left) == 1:
        found = tuple(left[0] if column is None else column for column in found)
    return found


def _guess(sample: Sequence[Sequence[str]], num_texts: int, with_label: bool) -> tuple[int | None, ...] | None:
    """Return the columns of a table without known names: texts are the longest, the label has the fewest values."""
    width = max(map(len, sample))
    if width < num_texts + with_label:
        return None
    lengths = [sum(len(row[column]) for row in sample if column < len(row)) for column in range(width)]
    by_length = sorted(range(width), key=lambda column: (-lengths[column], column))
    texts = sorted(by_length[:num_texts])
    left = [column for column in range(width) if column not in texts]
    distinct = {column: len({row[column] for row in sample if column < len(row)}) for column in left}
    return (*texts, min(left, key=lambda column: (distinct[column], column)) if left else None)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def read_objects(
    text: DecodedText, wanted: Sequence[str], num_texts: int, *, with_label: bool = True
) -> tuple[Iterator[Record], str]:
    """Return the objects of JSON lines as (texts, label), and a note on the fields; arguments as in `read_table`."""
    records = ((number, record) for number, record in enumerate(iter_objects(text), start=1))
    first = next(records, None)
    if first is None:
        raise CorpusError(f"{text.name}: it has no records. Give one JSON object a line.")
    names = list(first[1])
    known = _known_names([name.lower() for name in names], num_texts)
    fields = []
    for place, name in enumerate([*wanted][: num_texts + with_label]):
        column = known[place] if known else None
        if not name and column is None:
            what = "label" if place == num_texts else "text"
            raise CorpusError(
                f"{text.name}: the field of the {what} was not found among {', '.join(names[:8])}."
                f" Name it: --{what}-column NAME"
            )
        fields.append(name or names[int(column or 0)])
    found = (Record(number, _values(text.name, number, record, fields)) for number, record in chain([first], records))
    return found, f"fields {', '.join(fields)}"


def iter_objects(text: DecodedText) -> Iterator[dict[str, Any]]:
    """Yield the objects of JSON lines; anything else is a CorpusError."""
    for number, record in enumerate(json_records(text, TextConfig(), Tally(), keeps_all=True), start=1):
        if not isinstance(record, dict):
            raise CorpusError(f"{text.name}: record {number} is no object. Give one JSON object a line.")
        yield record


def _values(name: str, number: int, record: dict[str, Any], fields: Sequence[str]) -> tuple[str, ...]:
    values = []
    for field in fields:
        value = record.get(field)
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise CorpusError(
                f"{name}: record {number} has {'no field' if value is None else 'neither text nor a number in'}"
                f" {field}. Correct it."
            )
        values.append(str(value))
    return tuple(values)
