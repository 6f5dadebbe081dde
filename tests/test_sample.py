"""The sample text and its marks are what data/README.md says."""

import csv
from pathlib import Path

import pytest

from elmo_zh.config import TextConfig
from elmo_zh.text.preparation import TextPreparation

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


def test_marked_words_are_tokens_under_jieba(marks: list[dict[str, str]]) -> None:
    preparation = TextPreparation.build(TextConfig())
    for mark in marks:
        paragraph, start, _ = place(mark)
        starts, position = set(), 0
        for token in (token for sentence in preparation.sentences(paragraph) for token in sentence):
            if token == mark["word"]:
                starts.add(position)
            position += len(token)
        assert len(paragraph[:start].replace(" ", "")) in starts, mark
