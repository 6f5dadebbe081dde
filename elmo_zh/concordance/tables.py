"""Write concordances and tables of counts: TSV, CSV for Excel, JSON lines, and the vertical format."""

import csv
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TextIO
from xml.sax.saxutils import escape, quoteattr

from elmo_zh.concordance.lines import Concordance, ConcordanceLine
from elmo_zh.errors import ConfigError
from elmo_zh.run.files import TSV_ESCAPES, atomic_path

# Excel takes a CSV file for UTF-8 only with a byte order mark.
_ENCODINGS = {".csv": "utf-8-sig"}
Rows = Iterable[Mapping[str, Any]]


def require_suffix(output: Path, *, is_concordance: bool = False) -> None:
    """Raise ConfigError if the name of an output does not say one of the formats."""
    known = [*_WRITERS, *([".vrt"] if is_concordance else [])]
    if output.suffix not in known:
        raise ConfigError(f"--output {output}: its name says no format. End it with one of: {', '.join(known)}")


def save_rows(rows: Rows, output: Path) -> None:
    """Write rows, whose keys are the header, in the format that the name of the file says."""
    with atomic_path(output) as unfinished, _opened(unfinished, output.suffix) as file:
        _WRITERS[output.suffix](rows, file)


def save_concordance(found: Concordance, output: Path) -> None:
    """Write the lines of a concordance; in the vertical format every token stands on a line of its own."""
    if output.suffix != ".vrt":
        save_rows((line.described() for line in found), output)
        return
    with atomic_path(output) as unfinished, _opened(unfinished, output.suffix) as file:
        for line in found:
            file.write(_vertical(line))


def _opened(path: Path, suffix: str) -> TextIO:
    return path.open("w", encoding=_ENCODINGS.get(suffix, "utf-8"), newline="")


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


def cell(value: Any) -> Any:
    """Return a value with at most six significant digits; none is an empty cell."""
    if isinstance(value, float):
        return float(f"{value:.6g}") if value == value else ""
    return "" if value is None else value


def _vertical(line: ConcordanceLine) -> str:
    """Return the tokens of a line, one on each line, with the match in <node>; the columns are attributes of <s>."""
    named = {"id": line.number, "source": line.line.source, "line": line.line.number, **line.figures, **line.columns}
    attributes = "".join(f" {name}={quoteattr(str(cell(value)))}" for name, value in named.items() if _is_name(name))
    tokens = [escape(token) for token in line.tokens]
    tokens.insert(line.end_token, "</node>")
    tokens.insert(line.first_token, "<node>")
    return "\n".join([f"<s{attributes}>", *tokens, "</s>", ""])


def _is_name(name: str) -> bool:
    """Return whether a column's name can be the name of an attribute."""
    return name.isidentifier()
