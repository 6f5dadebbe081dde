"""The occurrences of a word with their usages, as a table."""

from collections.abc import Iterator
from pathlib import Path

from elmo_zh.contexts.index import ContextIndex
from elmo_zh.contexts.senses import Senses
from elmo_zh.run.files import atomic_path

_COLUMNS = ("occurrence", "usage", "cosine", "repeated", "source", "line", "start", "end", "text_start", "text")
_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


def write_usage_rows(index: ContextIndex, senses: Senses, output: Path) -> None:
    """Write a TSV file with a row for each occurrence, in the order of the texts; docs/contexts.md describes it."""
    with atomic_path(output) as unfinished:
        unfinished.write_text("".join(f"{row}\n" for row in usage_rows(index, senses)), encoding="utf-8", newline="\n")


def usage_rows(index: ContextIndex, senses: Senses) -> Iterator[str]:
    """Yield the header and a row for each occurrence. Tabs, line ends and backslashes are escaped."""
    yield "\t".join(_COLUMNS)
    columns = (senses.occurrences, senses.labels, senses.cosines, senses.is_repeated)
    for number, label, cosine, is_repeated in zip(*(column.tolist() for column in columns), strict=True):
        occurrence = index.occurrence(number)
        line = index.line(occurrence.line)
        values = (
            number, label, f"{cosine:.4f}", int(is_repeated), line.source, line.number,
            line.start + occurrence.start, line.start + occurrence.end, line.start, line.text,
        )  # fmt: skip
        yield "\t".join(str(value).translate(_ESCAPES) for value in values)
