"""Words whose use has changed, as a table for people, and as a TSV file."""

from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path

from elmo_zh.contexts.drift import Drift, WordDrift
from elmo_zh.contexts.keyword_lines import NeighbourLine, keyword_lines
from elmo_zh.run.files import atomic_path
from elmo_zh.run.reporter import aligned

# The name of each measure in the header of the table.
_TITLES = {"excess": "excess", "apd": "APD", "prt": "PRT"}


def save_drift(path: Path, drift: Drift) -> None:
    """Write all compared words as TSV: a header with the attributes of `WordDrift`, then a row for each word."""
    with atomic_path(path) as unfinished, unfinished.open("w", encoding="utf-8", newline="\n") as file:
        file.write("\t".join(field.name for field in fields(WordDrift)) + "\n")
        for word in drift.words:
            file.write("\t".join(map(_cell, asdict(word).values())) + "\n")


def table_lines(words: Sequence[WordDrift]) -> list[str]:
    """Return the lines of a table: word, counts, measures, spreads, p, q, and word2vec's distance if it is known."""
    with_vectors = any(each.procrustes is not None for each in words)
    header = ["word", "old", "new", *_TITLES.values(), "old spread", "new spread", "p", "q"]
    rows = [header + ["word2vec"] * with_vectors]
    for each in words:
        row = [each.word, f"{each.old_count:,}", f"{each.new_count:,}"]
        row += [f"{getattr(each, name):.4f}" for name in (*_TITLES, "old_spread", "new_spread")]
        row += [f"{each.p:.2g}", f"{each.q:.2g}"]
        if with_vectors:
            row.append("-" if each.procrustes is None else f"{each.procrustes:.4f}")
        rows.append(row)
    return list(aligned(rows))


def moved_line_rows(old: Sequence[NeighbourLine], new: Sequence[NeighbourLine]) -> list[str]:
    """Return old and new lines below one another, aligned at the word."""
    names = ["old"] * len(old) + ["new"] * len(new)
    return [f"  {name}  {line}" for name, line in zip(names, keyword_lines([*old, *new]), strict=True)]


def _cell(value: str | float | None) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
