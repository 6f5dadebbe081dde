"""Write tables as TSV, CSV for Excel, JSON lines and Markdown."""

import csv
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from elmo_zh.errors import ConfigError
from elmo_zh.run.files import TSV_ESCAPES, atomic_path

# Excel takes a CSV file for UTF-8 only with a byte order mark.
_ENCODINGS = {".csv": "utf-8-sig"}
Rows = Iterable[Mapping[str, Any]]


def require_suffix(output: Path, known: Collection[str], option: str = "--output") -> None:
    """Raise ConfigError if the name of an output does not end in a known suffix."""
    if output.suffix not in known:
        raise ConfigError(f"{option} {output}: the suffix is no known format. Use one of: {', '.join(known)}")


def chosen_format(given: str | None, output: Path | None, known: Sequence[str]) -> str:
    """Return the format that was given, or named by an output's suffix, or otherwise the first known one."""
    if given or output is None or not output.suffix:
        return given or known[0]
    require_suffix(output, [f".{each}" for each in known])
    return output.suffix[1:]


def save_rows(rows: Rows, output: Path, suffix: str = "") -> None:
    """Write rows, whose keys form the header, in the format of a suffix, by default the file's own."""
    kind = suffix or output.suffix
    encoding = _ENCODINGS.get(kind, "utf-8")
    with atomic_path(output) as unfinished, unfinished.open("w", encoding=encoding, newline="") as file:
        _WRITERS[kind](rows, file)


def _write_tsv(rows: Rows, file: TextIO) -> None:
    for number, row in enumerate(rows):
        if number == 0:
            file.write("\t".join(row) + "\n")
        file.write("\t".join(str(cell(value)).translate(TSV_ESCAPES) for value in row.values()) + "\n")


def _write_csv(rows: Rows, file: TextIO) -> None:
    writer = csv.writer(file)
    for number, row in enumerate(rows):
        if number == 0:
            writer.writerow(row)
        writer.writerow(map(cell, row.values()))


def _write_jsonl(rows: Rows, file: TextIO) -> None:
    for row in rows:
        cells = {name: cell(value) for name, value in row.items()}
        file.write(json.dumps(cells, ensure_ascii=False) + "\n")


_WRITERS: dict[str, Callable[[Rows, TextIO], None]] = {
    ".tsv": _write_tsv, ".csv": _write_csv, ".jsonl": _write_jsonl,
}  # fmt: skip
TABLE_SUFFIXES = tuple(_WRITERS)


def cell(value: Any) -> Any:
    """Return a value with at most six significant digits; NaN and None become empty cells."""
    if isinstance(value, float):
        return float(f"{value:.6g}") if value == value else ""
    return "" if value is None else value


def table(head: Sequence[str], rows: Iterable[Sequence[str | int]]) -> str:
    """Return a Markdown table; integers get thousands separators."""
    lines = [head, ["---"] * len(head), *([_cell(value) for value in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(value: str | int) -> str:
    # A bar would end the cell, even inside a code span.
    return f"{value:,}" if isinstance(value, int) else value.replace("|", "\\|")


def code_span(text: str) -> str:
    """Return a code span that shows a text exactly; its fence is longer than any run of backticks in the text."""
    if not text:
        return "(nothing)"
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    needs_room = text[0] == "`" or text[-1] == "`" or (text[0] == " " == text[-1] and text.strip())
    return f"{fence} {text} {fence}" if needs_room else f"{fence}{text}{fence}"


def spelled(value: object) -> str:
    """Return the value of a setting as written in TOML."""
    return str(value).lower() if isinstance(value, bool) else str(value)
