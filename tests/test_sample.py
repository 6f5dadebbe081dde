"""The sample text and its marks are what data/README.md says."""

import csv
import re
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from contract.command_line import run_python

from elmo_zh.config import TextConfig
from elmo_zh.text.preparation import TextPreparation
from elmo_zh.text.sentences import split_sentences

ROOT = Path(__file__).parent.parent
SAMPLE = {path.name: path.read_text(encoding="utf-8").split("\n")[:-1] for path in (ROOT / "data" / "sample").iterdir()}


@pytest.fixture(scope="module")
def marks() -> list[dict[str, str]]:
    with (ROOT / "data" / "senses.tsv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def place(mark: dict[str, str]) -> tuple[str, int, int]:
    return SAMPLE[mark["file"]][int(mark["line"])], int(mark["start"]), int(mark["end"])


def test_the_sample_is_prose_in_paragraphs_and_no_sentence_stands_twice() -> None:
    sentences = [sentence for lines in SAMPLE.values() for line in lines for sentence in split_sentences(line)]
    assert len(sentences) >= 1500
    long_ones = [sentence for sentence in sentences if len(sentence) > 8]
    assert len(set(long_ones)) == len(long_ones)
    assert all(re.search(r"[。！？…][”’」』）》]*$", line) for lines in SAMPLE.values() for line in lines)


def test_every_mark_stands_on_its_word(marks: list[dict[str, str]]) -> None:
    for mark in marks:
        paragraph, start, end = place(mark)
        assert paragraph[start:end] == mark["word"], mark


def test_words_stand_in_twenty_sentences_or_more_with_their_senses_mixed(marks: list[dict[str, str]]) -> None:
    sentences, senses, files = defaultdict(set), defaultdict(Counter), defaultdict(set)
    for mark in marks:
        paragraph, start, _ = place(mark)
        ends = len(list(split_sentences(paragraph[: start + 1])))
        sentences[mark["word"]].add((mark["file"], mark["line"], ends))
        senses[mark["word"]][mark["sense"]] += 1
        files[mark["word"], mark["sense"]].add(mark["file"])
    assert f"{len(sentences)} words" in (ROOT / "data" / "README.md").read_text(encoding="utf-8")
    assert f"{len(marks)} occurrences" in (ROOT / "data" / "README.md").read_text(encoding="utf-8")
    assert len(sentences) >= 12
    for word, places in sentences.items():
        assert len(places) >= 20, word
        assert len(senses[word]) >= 2
        assert min(senses[word].values()) >= 8
        assert all(len(files[word, sense]) >= 3 for sense in senses[word])


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


def test_the_benchmark_of_senses_says_what_it_needs() -> None:
    answer = run_python(ROOT / "benchmarks" / "senses.py", cwd=ROOT)
    assert answer.status == 2
    assert answer.stderr.startswith("usage: senses.py [-h] BUNDLE")
    assert "Traceback" not in answer.stderr
