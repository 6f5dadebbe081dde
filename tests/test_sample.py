"""The sample text and its marks are what data/README.md says."""

import csv
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SAMPLE = {path.name: path.read_text(encoding="utf-8").split("\n")[:-1] for path in (ROOT / "data" / "sample").iterdir()}


@pytest.fixture(scope="module")
def marks() -> list[dict[str, str]]:
    with (ROOT / "data" / "senses.tsv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def place(mark: dict[str, str]) -> tuple[str, int, int]:
    return SAMPLE[mark["file"]][int(mark["line"])], int(mark["start"]), int(mark["end"])


def test_every_mark_stands_on_its_word(marks: list[dict[str, str]]) -> None:
    for mark in marks:
        paragraph, start, end = place(mark)
        assert paragraph[start:end] == mark["word"], mark
