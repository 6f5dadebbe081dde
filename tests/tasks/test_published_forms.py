"""Labelled data as it is published: the columns, separators, lists and names of files that people meet."""

import gzip
import json
from pathlib import Path

import pytest
from messages import Heard, message_of
from tasks.labelled import CLASSIFY, PAIRS, TAG, lines, load, read, table, written

from elmo_zh.config.task_settings import DataFiles, Reading
from elmo_zh.corpus.read_labelled import iter_pairs, read_labelled
from elmo_zh.corpus.readers.examples import UnlabelledError
from elmo_zh.corpus.sources import find_sources
from elmo_zh.errors import CorpusError
from elmo_zh.tasks.datasets import find_files

ROOMS = [("房间很干净", "1"), ("早餐难吃", "0")]
CLASSES = [
    ("a.csv", "label,review\n1,房间很干净\n0,早餐难吃\n"),
    ("a.csv", '"review","label"\n"房间很干净",1\n"早餐难吃",0\n'),
    ("a.txt", "1\t房间很干净\n\n0\t早餐难吃\n"),
    ("a.csv", "id;text;label\n7;房间很干净;1\n8;早餐难吃;0\n"),
    ("a.data", lines({"id": 3, "评论": "房间很干净", "情感": "1"}, {"id": 4, "评论": "早餐难吃", "情感": "0"})),
    ("a.tsv", "qid\tlabel\ttext_a\n0\t1\t房间很干净\n1\t0\t早餐难吃\n"),
    ("a.csv", "cat,label,review\n酒店,1,房间很干净\n酒店,0,早餐难吃\n"),
    ("a.csv", "userId,rating,timestamp,title,comment\n7,1,1300000000,好,房间很干净\n8,0,1300000001,差,早餐难吃\n"),
    ("a.csv", "no,文案,label\n70000001,房间很干净,1\n70000002,早餐难吃,0\n"),
    ("a.json", json.dumps([{"text": "房间很干净", "label": 1}, {"text": "早餐难吃", "label": "0"}], indent=2)),
    ("a.txt", '\n[ {"content": "房间很干净", "label": "1"}, {"content": "早餐难吃", "label": "0"}]'),
    ("a.jsonl", lines({"id": "a1", "文案": "房间很干净", "label": 1}, {"id": "a2", "文案": "早餐难吃", "label": 0})),
]


@pytest.mark.parametrize(("name", "content"), CLASSES)
def test_classes_as_they_are_published(tmp_path: Path, name: str, content: str) -> None:
    assert read(written(tmp_path, name, content), CLASSIFY) == ROOMS


def test_columns_between_several_signs(tmp_path: Path) -> None:
    """The keywords are longer than the titles, but some are empty; ids are longer than the sentences."""
    titles = [f"{n}_!_{100 + n % 2}_!_新闻_!_第{n}条标题_!_{'很长的关键词，' * 5}" for n in range(11)]
    titles += ["11_!_101_!_新闻_!_最后一条，a_!_", "12_!_100_!_新闻_!_末尾_!_", "13_!_101_!_新闻_!_尾_!_"]
    path = written(tmp_path, "titles.txt", "\n".join(titles))
    assert read(path, CLASSIFY)[10:] == [("第10条标题", "100"), ("最后一条，a", "101"), ("末尾", "100"), ("尾", "101")]
    rows = [f"1-train-of-a-long-name-{n:09d}||句子{n}||另一句||{n % 5}" for n in range(11)]
    assert read(written(tmp_path, "pairs.txt", "\n".join(rows)), PAIRS)[7] == ("句子7", "另一句", "2")


def test_a_first_row_that_names_unknown_columns(tmp_path: Path) -> None:
    """It is no example if its label never comes again, where all others do; one class more would be wrong."""
    rows = "".join(f"第{n}个句子,{'好' if n % 2 else '坏'}\n" for n in range(20))
    assert read(written(tmp_path, "a.csv", "文案,类型\n" + rows), CLASSIFY)[0] == ("第0个句子", "坏")
    rows += "最后一个,别的\n"
    assert read(written(tmp_path, "b.csv", "首先,类型\n" + rows), CLASSIFY)[0] == ("首先", "类型")


QUESTIONS = [("怎么还款", "如何还款", "1"), ("怎么借", "天气", "0")]
TWO_TEXTS = [
    ("a.csv", "sentence1,sentence2,label\n怎么还款,如何还款,1\n怎么借,天气,0\n"),
    ("a.tsv", "怎么还款\t如何还款\t1\n怎么借\t天气\t0\n"),
    ("a.jsonl", lines(*({"q1": own, "q2": other, "label": int(label)} for own, other, label in QUESTIONS))),
    ("a.csv", "question,utterance,label\n怎么还款,如何还款,1\n怎么借,天气,0\n"),
    (
        "a.jsonl",
        lines(*({"abst": own, "keyword": [other], "label": label} for own, other, label in QUESTIONS)),
    ),
]


@pytest.mark.parametrize(("name", "content"), TWO_TEXTS)
def test_pairs_as_they_are_published(tmp_path: Path, name: str, content: str) -> None:
    path = written(tmp_path, name, content)
    assert read(path, PAIRS) == QUESTIONS
    [source] = find_sources([str(path)]).sources
    assert list(iter_pairs(source, PAIRS)) == [each[:2] for each in QUESTIONS]


def test_no_agreement_is_no_label(tmp_path: Path) -> None:
    rows = [("是", "entailment"), ("否", "-"), ("也许", "neutral")]
    path = written(tmp_path, "a.tsv", "".join(f"{text}\t{text}吗\t{label}\n" for text, label in rows))
    labelled = read_labelled(path, PAIRS)
    assert [example.labels for example in labelled.examples] == [("entailment",), ("neutral",)]
    path = written(tmp_path, "b.tsv", "好评\t+\n差评\t-\n一般\t0\n")
    assert read(path, CLASSIFY) == [("好评", "+"), ("差评", "-"), ("一般", "0")]


LI_BAI = ("李白 来", ("B-PER", "E-PER", "O", "O"))
TAGS = ["B-PER", "I-PER", "O", "O"]
ENTITY = {"start_idx": 0, "end_idx": 1, "type": "PER", "entity": "李白"}
MINIMAL = {"start": 0, "end": 2, "text": "李白", "labels": ["PER"]}
OFFSETS = {"id": 3, "label": "PER", "start_offset": 0, "end_offset": 2}
TAGGED = [
    ("a.txt", "李\tNR\tB_PER\r\n白\tNR\tI_PER\r\n \tPU\tO\r\n来\tVV\tO \r\n"),
    ("a.tsv", "text_a\tlabel\n李\x02白\x02 \x02来\tB-PER\x02I-PER\x02O\x02O\n"),
    ("a.jsonl", lines({"id": "0", "tokens": ["李", "白", " ", "来"], "ner_tags": TAGS})),
    ("a.json", json.dumps([{"text": "李白 来", "labels": TAGS}], indent=2)),
    ("a.json", json.dumps([{"text": "李白 来", "entities": [ENTITY]}])),
    ("a.json", json.dumps([{"id": 1, "text": "李白 来", "label": [MINIMAL]}])),
    ("a.jsonl", lines({"text": "李白 来", "entities": [OFFSETS], "relations": []})),
    ("a.jsonl", lines({"text": "李白 来", "entities": [[0, 2, "PER"]], "tags": ["诗人"]})),
]


@pytest.mark.parametrize(("name", "content"), TAGGED)
def test_tags_as_they_are_published(tmp_path: Path, name: str, content: str) -> None:
    [example] = read_labelled(written(tmp_path, name, content), TAG).examples
    assert (example.texts[0], example.labels) == LI_BAI


def test_a_table_of_sentences_and_tags(tmp_path: Path) -> None:
    path = written(tmp_path, "a.txt", "李 白 来\tB-PER I-PER O\n好\tO\n你 好\tO O\n")
    labelled = read_labelled(path, TAG)
    assert [example.texts[0] for example in labelled.examples] == ["李白来", "好", "你好"]
    assert labelled.examples[0].labels == ("B-PER", "E-PER", "O")
    path = written(tmp_path, "b.txt", "李 白 来\tB-PER I-PER O\n你 好\tO O\n" * 30 + "不 对\tO\n")
    assert "record 61 has 2 tokens and 1 tag" in message_of(CorpusError, lambda: read_labelled(path, TAG))


COMMENTS = "# sent_id = 1\n# text = # O\n# newpar\n# O\n话 O\n# O\n李 B-PER\n\n# B-TOPIC\n题 I-TOPIC\n"
SIGNS = [(COMMENTS, ["#话#李", "#题"])]  # a number sign is a token or starts a comment
SIGNS += [(f"{space} O\n李 B-PER\n{space} O\n\n好 O\n", [f"{space}李{space}", "好"]) for space in "\u3000\xa0\u2003"]


@pytest.mark.parametrize(("content", "expected"), SIGNS)
def test_other_spaces_and_signs_are_tokens(tmp_path: Path, content: str, expected: list[str]) -> None:
    path = written(tmp_path, "a.txt", content)
    assert [example.texts[0] for example in read_labelled(path, TAG).examples] == expected


UNLABELLED = [
    (CLASSIFY, "a.tsv", "qid\ttext_a\n0\t房间很干净\n1\t早餐难吃\n"),
    (CLASSIFY, "a.csv", "text,label\n房间很干净,\n早餐难吃,\n"),
    (CLASSIFY, "a.txt", "房间很干净\n早餐难吃\n"),
    (CLASSIFY, "a.json", lines(*({"id": n, "sentence": f"第{n}条", "keywords": f"词{n}"} for n in range(30)))),
    (PAIRS, "a.json", lines({"id": 0, "sentence1": "甲", "sentence2": "乙"})),
    (TAG, "a.json", json.dumps([{"text": "李白"}])),
    (TAG, "a.txt", "李\n白\n"),
]


@pytest.mark.parametrize(("reading", "name", "content"), UNLABELLED)
def test_texts_without_labels_are_told_from_labelled_ones(
    tmp_path: Path, reading: Reading, name: str, content: str
) -> None:
    path = written(tmp_path, name, content)
    assert message_of(UnlabelledError, lambda: read_labelled(path, reading))


NAMES = [
    ("train.csv", "dev.csv", "test.csv"),
    ("train_data.txt", "validation.csv", "testset.txt"),
    ("news.train.txt", "news.val.txt", "news.test.txt"),
    ("zh_x-ud-train.csv", "zh_x-ud-dev.csv", "zh_x-ud-test.csv"),
    ("train.txt", "testa.txt", "testb.txt"),
    ("train.csv.gz", "valid.csv.gz", "test.csv.gz"),
]


@pytest.mark.parametrize("names", NAMES)
def test_names_of_parts(tmp_path: Path, names: tuple[str, str, str]) -> None:
    for number, name in enumerate(names):
        path = written(tmp_path, name, table(range(10 * number, 10 * number + 4 + number)))
        if name.endswith(".gz"):
            path.write_bytes(gzip.compress(path.read_bytes()))
    for other in (".DS_Store", "README.md", "labels.txt", "testing/dev.csv"):
        written(tmp_path, other, "好\n")
    notes = Heard()
    dataset = load(DataFiles(data=tmp_path), CLASSIFY, notes)
    assert [len(rows) for rows in dataset.split.parts().values()] == [4, 5, 6]
    assert "labels.txt" in notes.notes[0]


def test_unlabelled_test_examples_of_a_folder_are_left_out(tmp_path: Path) -> None:
    written(tmp_path, "train.csv", table(range(60)))
    test = written(tmp_path, "test.csv", "id,text\n0,第100个句子\n")
    notes = Heard()
    dataset = load(DataFiles(data=tmp_path), CLASSIFY, notes)
    assert any(str(test) in note for note in notes.notes)
    assert sum(map(len, dataset.split.parts().values())) == 60
    assert len(dataset.split.test)
    told = message_of(CorpusError, lambda: load(DataFiles(data=tmp_path, test=test)))
    assert "cannot tell which of these holds the label: id, text" in told


def test_which_of_several_files(tmp_path: Path) -> None:
    only = written(tmp_path, "one/reviews.csv", table(range(60)))
    assert find_files(DataFiles(data=only.parent), Heard()).data == only
    (tmp_path / "none").mkdir()
    told = message_of(CorpusError, lambda: find_files(DataFiles(data=tmp_path / "none"), Heard()))
    assert "has no file with train in its name" in told
    written(tmp_path, "many/train.csv", table(range(60)))
    for name in ("a.test.csv", "b.test.csv"):
        written(tmp_path, f"many/{name}", table(range(100, 102)))
    told = message_of(CorpusError, lambda: find_files(DataFiles(data=tmp_path / "many"), Heard()))
    assert "(a.test.csv, b.test.csv)" in told
    given = DataFiles(data=tmp_path / "many", test=tmp_path / "many" / "b.test.csv")
    assert find_files(given, Heard()).data.name == "train.csv"
