"""Write tables as TSV, CSV for Excel, JSON lines and Markdown."""

import csv
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from io import StringIO
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from elmo_zh.errors import ConfigError
from elmo_zh.run.files import atomic_path

# Characters that would end a cell or a row of a TSV file.
TSV_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
# Excel reads a CSV file as UTF-8 only if it starts with a byte order mark.
_MARKS = {"csv": "\ufeff"}
Rows = Iterable[Mapping[str, Any]]


def require_suffix(output: Path, known: Collection[str], option: str = "--output") -> None:
    """Raise ConfigError if the name of an output does not end in a known suffix."""
    if output.suffix not in known:
        raise ConfigError.unexpected(f"{option} {output}", ", ".join(f"*{suffix}" for suffix in known))


def chosen_format(given: str | None, output: Path | None, known: Sequence[str]) -> str:
    """Return the given format, else the output's suffix, which must be a known format, else the first known one."""
    if given or output is None or not output.suffix:
        return given or known[0]
    require_suffix(output, [f".{name}" for name in known])
    return output.suffix[1:]


def cell(value: Any) -> Any:
    """Round a float to six significant digits for a table; NaN and None become empty cells."""
    if isinstance(value, float):
        return float(f"{value:.6g}") if value == value else ""
    return "" if value is None else value


def save_rows(rows: Rows, output: Path, suffix: str = "") -> None:
    """Write rows to a file with `write_rows`; `suffix` names the format, by default the file's own suffix."""
    with atomic_path(output) as unfinished, unfinished.open("wb") as file:
        write_rows(rows, file, (suffix or output.suffix)[1:])


def write_rows(
    rows: Rows, file: BinaryIO, kind: str, columns: Iterable[str] = (), shown: Callable[[Any], Any] = cell
) -> None:
    """Write rows as tsv, csv or jsonl, writing each before reading the next.

    Args:
        rows: The cells of each row, by column.
        file: Where to write.
        kind: The format.
        columns: The header of a table, written even without rows; by default the keys of the first row.
        shown: Converts a value to the form in which it is written.
    """
    rows = iter(rows)
    first = next(rows, None)
    line_of, header = _LINES[kind], [*(columns or first or ())]
    if header and kind != "jsonl":
        file.write((_MARKS.get(kind, "") + line_of(dict(zip(header, header, strict=True)))).encode())
    for row in chain([] if first is None else [first], rows):
        line = line_of({name: shown(value) for name, value in row.items()})
        file.write(line.encode("utf-8", "surrogatepass"))


def _tsv_line(row: Mapping[str, Any]) -> str:
    return "\t".join(str(value).translate(TSV_ESCAPES) for value in row.values()) + "\n"


def _csv_line(row: Mapping[str, Any]) -> str:
    file = StringIO()
    csv.writer(file).writerow(row.values())
    return file.getvalue()


def _json_line(row: Mapping[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False) + "\n"


_LINES: dict[str, Callable[[Mapping[str, Any]], str]] = {"tsv": _tsv_line, "csv": _csv_line, "jsonl": _json_line}
TABLE_SUFFIXES = tuple(f".{kind}" for kind in _LINES)


def table(head: Sequence[str], rows: Iterable[Sequence[str | int]]) -> str:
    """Return a Markdown table; integers get thousands separators."""
    lines = [head, ["---"] * len(head), *([_cell(value) for value in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(value: str | int) -> str:
    # A bar would end the cell, even inside a code span.
    return f"{value:,}" if isinstance(value, int) else value.replace("|", "\\|")
