"""Write the figures of the records into the pages that quote them, so that nobody copies a number by hand.

Usage: python benchmarks/figures.py [--check]

The records are RECORDS below, in benchmarks/records. There `## NAME` starts a section. Its lines that start with # or $
are remarks and commands; the others are a table, whose first row names the columns. Cells are separated by tabs, by |
or by two or more spaces. Pages mark the places of figures:

- in a sentence: <!--SECTION/ROW/COLUMN-->76.4<!---->
- a table: <!--table SECTION: COLUMN, COLUMN--> and an empty line before it, and in the first cell of each row
  <!--ROW-->. The rows keep their first cell; SECTION by COLUMN sorts them in falling order of that column

A column may be written as SECTION.COLUMN, if it is from another section with the same rows. `COLUMN%` adds a percent
sign, and `COLUMN*100` multiplies. --check writes nothing: it lists the pages that differ, and exits with 1.
"""

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RECORDS = [ROOT / "benchmarks" / "records" / name for name in ("2026-11-28-starter.txt", "2026-11-28-results.txt")]
STARTER = ROOT / "data" / "starter"
PAGES = [ROOT / "README.md", ROOT / "README.zh.md", STARTER / "about.md", *STARTER.glob("*/model/model_card.md")]
PAGES += sorted((ROOT / "docs").glob("**/*.md"))
_FIGURE = re.compile(r"<!--([^/<>]+)/([^/<>]+)/([^/<>]+)-->[^<]*<!---->")
_TABLE = re.compile(r"<!--table ([^:<>]+?)(?: by ([^:<>]+))?: ([^<>]+)-->\n\n\|.*\n\|.*\n((?:\|.*\n)+)")
_ROW = re.compile(r"\| ([^|]*<!--([^<>]+)-->) \|")
_GAP = re.compile(r"\t| {2,}|\s*\|\s*")


class Figures:
    """The cells of all sections: figures["zhoblimp"]["all pairs"]["probability"]."""

    def __init__(self, records: list[Path]) -> None:
        self._sections: dict[str, dict[str, dict[str, str]]] = {}
        for path in records:
            for section in path.read_text(encoding="utf-8").split("\n## ")[1:]:
                name, *lines = section.split("\n")
                self._sections[name] = dict(_rows(lines))

    def cell(self, section: str, row: str, column: str) -> str:
        """Return a figure as a page shows it; the column may name another section and a form."""
        name, suffix = (column[:-1], "%") if column.endswith("%") else (column, "")
        name, is_share = name.removesuffix("*100"), name.endswith("*100")
        if "." in name:
            section, name = name.split(".")
        value = self._sections[section][row][name]
        return f"{100 * float(value):.1f}{suffix}" if is_share else value + suffix

    def rows(self, section: str, by: str | None, columns: list[str], old: str) -> Iterator[str]:
        """Yield the lines of a table anew."""
        labels = [(row, label) for label, row in _ROW.findall(old)]
        if by:
            labels.sort(key=lambda pair: -float(self.cell(section, pair[0], by)))
        for row, label in labels:
            yield f"| {' | '.join((label, *(self.cell(section, row, column) for column in columns)))} |\n"

    def written(self, page: str) -> str:
        """Return a page with the records' figures."""

        def table(match: re.Match[str]) -> str:
            section, by, columns, old = match.groups()
            lines = self.rows(section, by, columns.split(", "), old)
            return match[0].removesuffix(old) + "".join(lines)

        def figure(match: re.Match[str]) -> str:
            section, row, column = match.groups()
            return f"<!--{section}/{row}/{column}-->{self.cell(section, row, column)}<!---->"

        return _FIGURE.sub(figure, _TABLE.sub(table, page))


def _rows(lines: list[str]) -> Iterator[tuple[str, dict[str, str]]]:
    shown = [line for line in lines if line.strip() and line[0] not in "#$" and "---" not in line]
    header, *cells = [_GAP.split(line.strip("| ")) for line in shown] or [[]]
    for row in cells:
        yield row[0], dict(zip(header[1:], row[1:], strict=False))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    is_check = parser.parse_args().check
    figures = Figures(RECORDS)
    pages = {path: path.read_text(encoding="utf-8") for path in PAGES}
    changed = {path: new for path, old in pages.items() if (new := figures.written(old)) != old}
    for path, new in changed.items():
        print(path.relative_to(ROOT))
        if not is_check:
            path.write_text(new, encoding="utf-8")
    sys.exit(1 if is_check and changed else 0)


if __name__ == "__main__":
    main()
