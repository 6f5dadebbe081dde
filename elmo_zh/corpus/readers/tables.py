"""CSV and TSV: the text is in one or several columns."""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from elmo_zh.config import TextConfig
from elmo_zh.corpus.content import UnsuitableError
from elmo_zh.corpus.decoding import DecodedText
from elmo_zh.corpus.lines import lines_of
from elmo_zh.corpus.readers.fields import BLANK_LINES, SHORT_ROWS, joined_line, known_field, parse_fields
from elmo_zh.corpus.readers.formats import CorpusFormat, Documents
from elmo_zh.corpus.tally import PassedOver, Tally
from elmo_zh.errors import CorpusError
from elmo_zh.text.han import HAN

LONGEST_CELL = 2**24
_SAMPLE_ROWS = 50
# Least fraction of a sample's Han characters in the column that is taken as the text.
_LEAST_FRACTION = 0.8

Row = list[str]


@dataclass(frozen=True)
class _Columns:
    numbers: tuple[int, ...]
    has_header: bool


def read_csv(text: DecodedText, config: TextConfig, tally: Tally, _passed_over: PassedOver) -> Documents:
    """Yield the text of each row as a document; quoted cells may hold line ends."""
    return _documents(_cells(text, config, tally, csv_rows(text)), tally)


def read_csv_records(text: DecodedText, config: TextConfig, tally: Tally, _passed_over: PassedOver) -> Iterator[str]:
    """Yield the text of each row as one line."""
    return _records(_cells(text, config, tally, csv_rows(text)), tally)


def read_tsv(text: DecodedText, config: TextConfig, tally: Tally, _passed_over: PassedOver) -> Documents:
    """Yield the text of each row as a document; cells end at tabs, rows at line ends, and quotes have no meaning."""
    return _documents(_cells(text, config, tally, filter(None, tsv_rows(text))), tally)


def read_tsv_records(text: DecodedText, config: TextConfig, tally: Tally, _passed_over: PassedOver) -> Iterator[str]:
    """Yield the text of each row as one line."""
    return _records(_cells(text, config, tally, tsv_rows(text)), tally)


def csv_rows(text: DecodedText) -> Iterator[Row]:
    """Return the rows of a CSV file, separated as its first line is; a blank line is a row without cells."""
    lines = _RowLines(text)
    csv.field_size_limit(LONGEST_CELL)
    return lines.rows(csv.reader(lines, delimiter=_delimiter(text)))


def tsv_rows(text: DecodedText) -> Iterator[Row]:
    """Return the rows; a blank line is a row without cells, as it is in CSV."""
    return (line.split("\t") if line else [] for line in text.whole_lines(LONGEST_CELL))


def _delimiter(text: DecodedText) -> str:
    first = text.head(2**16).partition("\n")[0]
    return max(",\t;|", key=lambda sign: (first.count(sign), sign == ","))


class _RowLines:
    """The lines that csv parses into rows, with a limit on the characters of one row."""

    def __init__(self, text: DecodedText) -> None:
        self._lines = text.whole_lines(LONGEST_CELL)
        self._num_characters = 0

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            self._num_characters += len(line) + 1
            if self._num_characters > LONGEST_CELL:
                raise csv.Error(f"a row is longer than {LONGEST_CELL:,} characters")
            yield line + "\n"
        # The last row is unfinished: everything after its open quote, perhaps all other rows, would be one cell.
        if self._num_characters:
            raise csv.Error("the file ends within a cell in quotes")

    def rows(self, rows: Iterator[Row]) -> Iterator[Row]:
        """Yield the rows and reset the limit for each."""
        for row in rows:
            self._num_characters = 0
            yield row


def _cells(text: DecodedText, config: TextConfig, tally: Tally, rows: Iterator[Row]) -> Iterator[tuple[Row, Row]]:
    """Yield each row with its cells that are text."""
    rows = checked_rows(text, rows)
    sample = list(islice(rows, _SAMPLE_ROWS))
    if not sample:
        return
    columns = _columns(text, config, sample)
    tally.read_field = _describe(columns, sample[0])
    if not config.field:
        tally.other_fields.update(_others(columns, sample))
    for row in chain(sample[1:] if columns.has_header else sample, rows):
        yield row, [row[number] for number in columns.numbers if number < len(row)]


def _documents(rows: Iterator[tuple[Row, Row]], tally: Tally) -> Documents:
    for row, cells in rows:
        if cells:
            yield lines_of(cells[0]) if len(cells) == 1 else chain.from_iterable(map(lines_of, cells))
        else:
            tally.drop(SHORT_ROWS, sum(map(len, row)))


def _records(rows: Iterator[tuple[Row, Row]], tally: Tally) -> Iterator[str]:
    for row, cells in rows:
        if not row:
            tally.drop(BLANK_LINES, 0)
            continue
        if not cells:
            tally.drop(SHORT_ROWS, sum(map(len, row)))
        yield joined_line(cells)


def _describe(columns: _Columns, first: Row) -> str:
    numbers = ", ".join(str(number + 1) for number in columns.numbers)
    names = ", ".join(first[number] for number in columns.numbers) if columns.has_header else ""
    return f"column {numbers}" + (f" ({names})" if names else ", no header")


def _others(columns: _Columns, sample: Sequence[Row]) -> Iterator[str]:
    """Yield the other columns with Han characters."""
    rows = sample[1:] if columns.has_header else sample
    for number in range(max(map(len, sample))):
        if number not in columns.numbers and any(_num_han(row, number) for row in rows):
            has_name = columns.has_header and number < len(sample[0])
            yield _describe(_Columns((number,), has_name), sample[0]).removesuffix(", no header")


def checked_rows(text: DecodedText, rows: Iterator[Row]) -> Iterator[Row]:
    """Yield the rows; raise CorpusError if the file is not CSV."""
    try:
        yield from rows
    except csv.Error as error:
        raise CorpusError(
            f"{text.name} is not CSV ({error}); perhaps a quote is not closed. Correct it, or give --input-format tsv,"
            " which knows no quotes."
        ) from None


def _columns(text: DecodedText, config: TextConfig, sample: Sequence[Row]) -> _Columns:
    """Return the columns that the user named, or the one that certainly holds the text."""
    if config.field:
        return _named_columns(text, parse_fields(config.field), sample[0])
    header = [cell.strip() for cell in sample[0]]
    num_han = {name: sum(_num_han(row, header.index(name)) for row in sample[1:]) for name in header}
    if name := known_field(num_han):
        return _Columns((header.index(name),), has_header=True)
    number = _main_column(sample)
    if number is None:
        raise UnsuitableError(
            text.name,
            f"no column is text for sure among {_listed(sample[0])}",
            "Name one or several: --field NAME, or by number from 1: --field 1",
        )
    return _Columns((number,), _has_header(sample, number))


def _has_header(sample: Sequence[Row], number: int) -> bool:
    """Return whether the first row certainly names the columns.

    That is so if its cell in the text column has no Han characters and all others have, or if another column has only
    numbers below a cell that is none.
    """
    first, rest = sample[0], sample[1:]
    texts = [row for row in rest if number < len(row)]
    if number >= len(first) or not texts:
        return False
    if not _num_han(first, number) and all(_num_han(row, number) for row in texts):
        return True
    others = [place for place in range(len(first)) if place != number and first[place].strip()]
    return any(
        not is_number(first[place]) and all(place < len(row) and is_number(row[place]) for row in rest)
        for place in others
    )


def is_number(cell: str) -> bool:
    """Return whether a cell is a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _named_columns(text: DecodedText, names: Sequence[str], first: Row) -> _Columns:
    header = [cell.strip() for cell in first]
    if all(name in header for name in names):
        return _Columns(tuple(header.index(name) for name in names), has_header=True)
    if all(name.isdecimal() and 1 <= int(name) <= len(first) for name in names):
        return _Columns(tuple(int(name) - 1 for name in names), has_header=False)
    missing = next(name for name in names if name not in header)
    raise CorpusError(
        f"{text.name} has no column {missing}. Its first row is: {_listed(first)}. Give --field one of these names, or"
        " a number from 1 where the first row is text."
    )


def _main_column(sample: Sequence[Row]) -> int | None:
    """Return the number of the column with nearly all Han characters, or of the only column.

    A table of blank lines has no columns, and gets 0. If no column has nearly all of them, the result is None.
    """
    width = max(map(len, sample))
    if width < 2:
        return 0
    counts = [sum(_num_han(row, number) for row in sample) for number in range(width)]
    most = max(counts)
    return counts.index(most) if most and most >= _LEAST_FRACTION * sum(counts) else None


def _num_han(row: Row, number: int) -> int:
    return len(HAN.findall(row[number])) if number < len(row) else 0


def _listed(row: Row) -> str:
    shown = ", ".join(" ".join(cell.split())[:20] or "(empty)" for cell in row[:8])
    return shown + (f", ... ({len(row)} columns)" if len(row) > 8 else "")


CSV = CorpusFormat(read=read_csv, suffixes=(".csv",), read_records=read_csv_records)
TSV = CorpusFormat(read=read_tsv, suffixes=(".tsv",), read_records=read_tsv_records)
