"""Labelled data of every form, and wrong data of every kind, each with its one line."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from messages import Heard, message_of
from tasks.labelled import CLASSIFY, PAIRS, TAG, lines, load, table, written

from elmo_zh.config.task_settings import DataFiles, Reading
from elmo_zh.corpus.read_labelled import read_labelled
from elmo_zh.errors import CorpusError

PARTS = ("train", "dev", "test")


def test_regression_needs_numbers(tmp_path: Path) -> None:
    reading = Reading(kind="classify", regression=True)
    path = written(tmp_path, "a.csv", "text,score\n好,0.5\n坏,-1e3\n")
    assert [example.labels for example in read_labelled(path, reading).examples] == [("0.5",), ("-1e3",)]
    for wrong in ("nan", "inf", "many", "1_0"):
        path = written(tmp_path, "b.csv", f"text,score\n好,{wrong}\n")
        told = message_of(CorpusError, lambda path=path: read_labelled(path, reading))
        assert told.startswith(f"{path}: row 2: the label {wrong!r} is not a finite number.")


def test_characters_in_conll(tmp_path: Path) -> None:
    path = written(tmp_path, "a.conll", "李 B-PER\n白 I-PER\n  O\n来 O\n\n好 O\n", "utf-8-sig")
    labelled = read_labelled(path, TAG)
    assert (labelled.scheme, labelled.by_words) == ("BIO", False)
    first, second = labelled.examples
    assert first.texts == ("李白 来",)
    assert first.labels == ("B-PER", "E-PER", "O", "O")
    assert first.units.tolist() == [[0, 1], [1, 2], [2, 3], [3, 4]]
    assert second.texts == ("好",)


def test_characters_with_their_places(tmp_path: Path) -> None:
    path = written(tmp_path, "a.conll", "李0\tB-PER\n白1\tI-PER\n20\tO\n01\tO\n\n人0\tO\n")
    assert [example.texts[0] for example in read_labelled(path, TAG).examples] == ["李白20", "人"]


def test_words_in_conll_u(tmp_path: Path) -> None:
    """Comments, words that stand for several, and columns of the format's own."""
    rows = ["# text = 我爱New York", "1\t我\t_\tPRON" + "\t_" * 6, "2-3\t爱NY\t_\t_" + "\t_" * 6]
    rows += ["2\t爱\t_\tVERB" + "\t_" * 6, "3\tNew\t_\tPROPN" + "\t_" * 6, "4\tYork\t_\tPROPN" + "\t_" * 6, ""]
    labelled = read_labelled(written(tmp_path, "a.conllu", "\n".join(rows)), TAG)
    [example] = labelled.examples
    assert (labelled.scheme, labelled.by_words) == ("", True)
    assert example.words == ("我", "爱", "New", "York")
    assert example.labels == ("PRON", "VERB", "PROPN", "PROPN")
    assert example.texts == ("我爱New York",)
    assert [example.texts[0][start:end] for start, end in example.units] == list(example.words)


INCLUSIVE = {"text": "浙商银行的叶老桂", "label": {"company": {"浙商银行": [[0, 3]]}, "name": {"叶老桂": [[5, 7]]}}}
LISTS = {"text": "浙商银行的叶老桂", "entities": [[0, 4, "company"], [5, 8, "name"]]}
OBJECTS = {
    "text": "浙商银行的叶老桂",
    "spans": [
        {"start": 5, "end": 8, "label": "name", "text": "叶老桂"},
        {"start": 0, "end": 4, "label": "company", "text": "浙商银行"},
        {"start": 0, "end": 2, "label": "place", "text": "浙商"},
    ],
}


@pytest.mark.parametrize("record", [INCLUSIVE, LISTS, OBJECTS])
def test_spans_in_json_lines(tmp_path: Path, record: object) -> None:
    labelled = read_labelled(written(tmp_path, "a.json", json.dumps(record) + "\n"), TAG)
    tags = ["B-company", "I-company", "I-company", "E-company", "O", "B-name", "I-name", "E-name"]
    assert list(labelled.examples[0].labels) == tags
    assert any("1 span left out" in note for note in labelled.notes) == (record is OBJECTS)


SPAN_PROBLEMS = [
    ([[0, 9, "name"]], '[0, 9, "name"] is empty or reaches outside the text'),
    ([[0, 3, " "]], "has no label, type"),
    ([{"start": 0, "end": 2, "label": "x", "text": "李黑"}], "covers '李白', not '李黑'"),
    ([[0, 2, ["a", "b"]]], "has 2 labels"),
    ([[0, 1e300, "x"]], "has no end, end_idx"),
    ([{"start": 0, "end": 2, "label": "x", "text": ["李"]}], "has no text, entity"),
    (["12x"], "spans are written as [[start, end, type], ...]"),
]


@pytest.mark.parametrize(("spans", "problem"), SPAN_PROBLEMS)
def test_spans_that_cannot_be(tmp_path: Path, spans: Any, problem: str) -> None:
    path = written(tmp_path, "a.jsonl", json.dumps({"text": "李白，e\u0301", "spans": spans}) + "\n")
    told = message_of(CorpusError, lambda: read_labelled(path, TAG))
    assert told.startswith(f"{path}: record 1: ")
    assert problem in told


LABEL_STUDIO = '[{"id": 1, "data": {"text": "好"}, "annotations": [{"id": 1, "result": []}]}]'
SPANS_ONLY = '{"text": "李白来了", "entities": [{"start": 0, "end": 2, "label": "人"}]}\n' * 3
NESTED = lines({"id": 1, "data": {"text": "好"}})
UNEQUAL = lines({"tokens": ["北"], "tags": ["O"]}, {"tokens": ["北", "京"], "tags": ["O"]})
MOOD, FORM = (replace(CLASSIFY, label_column="mood"), replace(TAG, text_columns=("form",)))
SKIPPING = replace(CLASSIFY, skips_unlabelled=True)
# How the data is read, the file, and what is told: the place, what was found, or the next step.
PROBLEMS = [
    (CLASSIFY, "a.csv", "text,label\n好,1\n坏,\n", "empty labels: 1, the first in row 3"),
    (SKIPPING, "a.csv", "text,label\n好,\n坏,\n", "has no labelled examples"),
    (CLASSIFY, "a.csv", "text,label\n好,1\n坏\n", "row 3 has neither text"),
    (CLASSIFY, "a.csv", "text,label\n", "a.csv has no labelled examples"),
    (CLASSIFY, "a.jsonl", '{"a": "好", "b": 1}\n', "cannot tell which of these holds the text: a, b"),
    (CLASSIFY, "a.jsonl", '{"text": "好", "label": [1, 2]}\n', "several labels: 1, the first in record 1"),
    (CLASSIFY, "a.jsonl", '{"text": "好", "label": 1}\n{"text"\n', "line 2 is not JSON"),
    (CLASSIFY, "a.json", '{"version": 1,\n"data": []}', "one JSON object per line"),
    (MOOD, "a.csv", "text,label\n好,1\n", "has no column 'mood'"),
    (PAIRS, "a.csv", "text,label\n好,1\n", "cannot tell which of these holds the text: text, label"),
    (CLASSIFY, "a.csv", "label,text\n1,这家店,很好\n", "row 2 has 3 columns"),
    (CLASSIFY, "a.txt", "今天,很好\n下雨\n刮风\n", "a.txt has no labelled examples"),
    (CLASSIFY, "a.tsv", "李\tB-PER\n白\tI-PER\n\n说\tO\n", "a.tsv looks like CoNLL. Use task fit tag"),
    (CLASSIFY, "a.jsonl", SPANS_ONLY, "For labelled spans, use task fit tag"),
    (TAG, "a.conll", "李\tB-PER\n白\n", "line 2 has 1 column"),
    (TAG, "a.conll", "\n\n", "has no labelled examples"),
    (TAG, "a.csv", "李,B-PER\n", "use task fit classify"),
    (FORM, "a.conll", "李 O\n", "'form'; expected a whole number (x>=1)."),
    (TAG, "a.json", LABEL_STUDIO, "a full export of Label Studio"),
    (TAG, "a.txt", "北 B-LOC\n京 I-LOC\n" * 501, "has all 1,002 tokens in one sentence"),
    (TAG, "a.txt", "我们/r  在/p  北京/ns  。/w\n", "line 1 has several words with their tags"),
    (TAG, "a.txt", "我们 在 北京\n我 来\n你 走 了 吗\n", "has lines of 2 to 4 columns"),
    (TAG, "a.jsonl", lines({"tokens": ["北"], "ner_tags": [3]}), "has the token or tag 3"),
    (TAG, "a.jsonl", UNEQUAL, "record 2 has 2 tokens and 1 tag"),
    (TAG, "a.jsonl", NESTED, "record 1: cannot find the text or the spans in the fields id, data"),
]


@pytest.mark.parametrize(("reading", "name", "content", "problem"), PROBLEMS)
def test_wrong_data_is_one_line(tmp_path: Path, reading: Reading, name: str, content: str, problem: str) -> None:
    path = written(tmp_path, name, content)
    assert problem in message_of(CorpusError, lambda: read_labelled(path, reading))


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_examples_without_labels_are_left_out(tmp_path: Path, form: str) -> None:
    rows = [("好", 1), ("坏", None), ("坏", 2), ("差", "")]
    records = lines(*({"text": text, "label": label} for text, label in rows))
    content = "text,label\n" + "".join(f"{text},{label or ' '}\n" for text, label in rows)
    path = written(tmp_path, f"a.{form}", content if form == "csv" else records)
    assert "empty labels: 2, the first in r" in message_of(CorpusError, lambda: read_labelled(path, CLASSIFY))
    found = read_labelled(path, SKIPPING)
    assert [(*each.texts, *each.labels) for each in found.examples] == [("好", "1"), ("坏", "2")]
    assert "left out because of empty labels: 2" in found.notes


def test_a_split_keeps_copies_together(tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", table(range(300), copies=2))
    datasets = [load(DataFiles(data=path, seed=seed)) for seed in (1, 1, 2)]
    texts = [{part: [e.texts[0] for e in each.part(part)] for part in PARTS} for each in datasets]
    assert texts[0] == texts[1] != texts[2]
    for each in texts:
        sets = [set(part) for part in each.values()]
        assert sum(map(len, each.values())) == 600
        assert len(sets[0] | sets[1] | sets[2]) == sum(map(len, sets)) == 300
        assert 20 <= len(sets[1]) <= 40 or 20 <= len(sets[2]) <= 45


def test_limits_are_nested(tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", table(range(300)))
    limits = (None, 10_000, 100, 30)
    whole, same, more, few = ({*load(DataFiles(data=path, limit=limit)).split.train.tolist()} for limit in limits)
    assert whole == same > more > few
    assert (len(more), len(few)) == (100, 30)


def rows_of_parts(form: str, parts: Sequence[str]) -> str:
    """Numbered texts; each text that comes twice has one label."""
    rows = [(f"{number}好", number % 2, part) for number, part in enumerate(parts)]
    if form == "csv":
        return "text,label,Split\n" + "".join(f"{text},{label},{part}\n" for text, label, part in rows)
    return lines(*({"Split": part, "text": text, "label": label} for text, label, part in rows))


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_column_divides_the_examples(tmp_path: Path, form: str) -> None:
    parts = ["train", "Train", "validation", "test", "train", "test ", "dev", "train"]
    dataset = load(DataFiles(data=written(tmp_path, f"a.{form}", rows_of_parts(form, parts))))
    found = {part: [example.texts[0] for example in dataset.part(part)] for part in PARTS}
    assert found == {"train": ["0好", "1好", "4好", "7好"], "dev": ["2好", "6好"], "test": ["3好", "5好"]}


def test_a_part_that_the_column_lacks_is_split_off(tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", rows_of_parts("csv", ["train"] * 60 + ["test"] * 7))
    dataset = load(DataFiles(data=path))
    assert dataset.split.test.tolist() == [*range(60, 67)]
    assert sorted([*dataset.split.train, *dataset.split.dev]) == [*range(60)]
    assert len(dataset.split.dev)


def test_a_row_of_no_part(tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", rows_of_parts("csv", ["train"] * 250 + ["other"]))
    told = message_of(CorpusError, lambda: load(DataFiles(data=path)))
    assert told.startswith(f"{path}: row 252 has 'other' where ")


def test_what_makes_scores_worth_less_is_reported(tmp_path: Path) -> None:
    train = written(tmp_path, "train.csv", "text,label\n好,1\n坏,0\n好,0\n")
    dev = written(tmp_path, "dev.csv", "text,label\n好,1\n新,2\n新的,2\n")
    messages = Heard()
    load(DataFiles(data=train, dev=dev), CLASSIFY, messages)
    assert messages.warnings == [
        "2 of 3 dev labels never occur in training and count as wrong: 2.",
        "1 of 3 dev texts also occur in training, so the scores are too optimistic.",
        "Training texts that occur with different labels: 1.",
    ]


def test_parts_that_do_not_fit(tmp_path: Path) -> None:
    files = DataFiles(data=written(tmp_path, "train.csv", "text,label\n好,1\n"))
    assert "There are no" in message_of(CorpusError, lambda: load(files))
    train = written(tmp_path, "train.conll", "李 B-PER\n白 I-PER\n\n好 O\n")
    dev = written(tmp_path, "dev.conll", "李白 NN\n来 VV\n\n今天 NN\n")
    told = message_of(CorpusError, lambda: load(DataFiles(data=train, dev=dev), TAG))
    assert "has one tag per word, but " in told
