"""Labelled files of every form that people bring, and what is refused, each with its one line."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from messages import message_of
from tasks.labelled import CLASSIFY, PAIRS, TAG, lines, read, written

from elmo_zh.config.task_settings import Reading
from elmo_zh.corpus.read_labelled import iter_pairs, read_labelled
from elmo_zh.corpus.readers.examples import UnlabelledError
from elmo_zh.corpus.sources import find_sources
from elmo_zh.errors import CorpusError

SKIPPING, NUMBERS = replace(CLASSIFY, skips_unlabelled=True), replace(CLASSIFY, regression=True)


# What is read


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
    ("a.txt", "__label__1 房间 很 干净\n\n__label__0 早餐 难吃\n"),
]


@pytest.mark.parametrize(("name", "content"), CLASSES)
def test_classes(tmp_path: Path, name: str, content: str) -> None:
    assert read(written(tmp_path, name, content), CLASSIFY) == ROOMS


QUESTIONS = [("怎么还款", "如何还款", "1"), ("怎么借", "天气", "0")]
TWO_TEXTS = [
    ("a.csv", "sentence1,sentence2,label\n怎么还款,如何还款,1\n怎么借,天气,0\n"),
    ("a.tsv", "怎么还款\t如何还款\t1\n怎么借\t天气\t0\n"),
    ("a.jsonl", lines(*({"q1": own, "q2": other, "label": int(label)} for own, other, label in QUESTIONS))),
    ("a.csv", "question,utterance,label\n怎么还款,如何还款,1\n怎么借,天气,0\n"),
    ("a.jsonl", lines(*({"abst": own, "keyword": [other], "label": label} for own, other, label in QUESTIONS))),
]


@pytest.mark.parametrize(("name", "content"), TWO_TEXTS)
def test_pairs(tmp_path: Path, name: str, content: str) -> None:
    path = written(tmp_path, name, content)
    assert read(path, PAIRS) == QUESTIONS
    [source] = find_sources([str(path)]).sources
    assert list(iter_pairs(source, PAIRS)) == [each[:2] for each in QUESTIONS]


LI_BAI = ("李白 来", ("B-PER", "E-PER", "O", "O"))
TAGS = ["B-PER", "I-PER", "O", "O"]
TEXT = {"text": "李白 来"}
TAGGED = [
    ("a.conll", "李 B-PER\n白 I-PER\n  O\n来 O\n"),
    ("a.txt", "李\tNR\tB_PER\r\n白\tNR\tI_PER\r\n \tPU\tO\r\n来\tVV\tO \r\n"),
    ("a.conll", "李\tB-PER\n白\tL-PER\n \tO\n来\tO\n\n沪\tU-LOC\n"),  # BILUO
    ("a.conll", "李0\tB-PER\n白1\tI-PER\n 0\tO\n来0\tO\n\n人0\tO\n"),  # with their places in words
    ("a.jsonl", lines({"id": "0", "tokens": ["李", "白", " ", "来"], "ner_tags": TAGS})),
    ("a.json", json.dumps([TEXT | {"labels": TAGS}], indent=2)),
    ("a.json", json.dumps([TEXT | {"entities": [{"start_idx": 0, "end_idx": 1, "type": "PER", "entity": "李白"}]}])),
    ("a.json", json.dumps([TEXT | {"id": 1, "label": [{"start": 0, "end": 2, "text": "李白", "labels": ["PER"]}]}])),
    ("a.json", lines(TEXT | {"label": {"PER": {"李白": [[0, 1]]}}})),
    ("a.jsonl", lines(TEXT | {"entities": [{"id": 3, "label": "PER", "start_offset": 0, "end_offset": 2}]})),
    ("a.jsonl", lines(TEXT | {"entities": [["0", 2.0, "PER"]], "tags": ["诗人"]})),
]


@pytest.mark.parametrize(("name", "content"), TAGGED)
def test_tags(tmp_path: Path, name: str, content: str) -> None:
    labelled = read_labelled(written(tmp_path, name, content, "utf-8-sig"), TAG)
    example = labelled.examples[0]
    assert (example.texts[0], example.labels) == LI_BAI
    assert example.units is not None
    assert (example.units.tolist(), labelled.by_words) == ([[0, 1], [1, 2], [2, 3], [3, 4]], False)


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


COMMENTS = "# sent_id = 1\n# text = # O\n# newpar\n# O\n话 O\n# O\n李 B-PER\n\n# B-TOPIC\n题 I-TOPIC\n"
TOKENS = [(COMMENTS, ["#话#李", "#题"])]  # a number sign is a token or starts a comment
TOKENS += [(f"{space} O\n李 B-PER\n{space} O\n\n好 O\n", [f"{space}李{space}", "好"]) for space in "\u3000\xa0\u2003"]


@pytest.mark.parametrize(("content", "expected"), TOKENS)
def test_other_spaces_and_signs_are_tokens(tmp_path: Path, content: str, expected: list[str]) -> None:
    path = written(tmp_path, "a.txt", content)
    assert [example.texts[0] for example in read_labelled(path, TAG).examples] == expected


# Which columns


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


DEPARTMENTS = ("骨科", "儿科", "眼科")


def clinic(names: Sequence[str], count: int = 60) -> str:
    """Notes with a number, a date, whether they were answered, a department and a price; sorted by department."""
    rows = [
        f"CN-{n:05d},2024-03-{n % 28 + 1:02d},{'是' if n % 2 else '否'},{DEPARTMENTS[3 * n // count]},疼{n}天,{n * 7}.5"
        for n in range(count)
    ]
    return "\n".join([*([",".join(names)] if names else []), *rows]) + "\n"


NAMED = ("病历号", "就诊日期", "是否回复", "科室", "病情", "费用")
BY_NAME = [
    (CLASSIFY, NAMED, "病情, 科室"),
    (CLASSIFY, (*NAMED[:2], "类别", *NAMED[3:]), "病情, 类别"),
    (NUMBERS, (*NAMED[:5], "评分"), "病情, 评分"),
]


@pytest.mark.parametrize(("reading", "names", "columns"), BY_NAME)
def test_a_name_that_says_label_wins(tmp_path: Path, reading: Reading, names: Sequence[str], columns: str) -> None:
    for count in (60, 600):
        labelled = read_labelled(written(tmp_path, "a.csv", clinic(names, count)), reading)
        assert labelled.notes == (f"csv: columns {columns}",)


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        ((*NAMED[:3], "去向", "text", "费用"), ("是否回复", "去向")),
        ((), ("3", "4")),
        (("编号", "日期", "部门", "科室", "text", "评分"), ("部门", "科室")),
    ],
)
def test_several_columns_that_could_be_the_label_are_listed(
    tmp_path: Path, names: Sequence[str], shown: tuple[str, str]
) -> None:
    """600 rows sorted by department: the first 200 have one."""
    path = written(tmp_path, "a.csv", clinic(names, 600))
    told = message_of(CorpusError, lambda: read_labelled(path, CLASSIFY))
    first, second = shown
    assert told.startswith(
        f"{path}: cannot tell which of these to use for --label-column: {first} (否, 是); {second} (骨科, 儿科"
    )
    chosen = read_labelled(path, replace(CLASSIFY, label_column=second))
    assert {example.labels[0] for example in chosen.examples} == set(DEPARTMENTS)


# Which records


def test_no_agreement_is_no_label(tmp_path: Path) -> None:
    rows = [("是", "entailment"), ("否", "-"), ("也许", "neutral")]
    path = written(tmp_path, "a.tsv", "".join(f"{text}\t{text}吗\t{label}\n" for text, label in rows))
    assert [labels for *_texts, labels in read(path, PAIRS)] == ["entailment", "neutral"]
    path = written(tmp_path, "b.tsv", "好评\t+\n差评\t-\n一般\t0\n")
    assert read(path, CLASSIFY) == [("好评", "+"), ("差评", "-"), ("一般", "0")]


def in_cell(value: object) -> str:
    """Return JSON as Label Studio writes it in a cell of CSV."""
    return '"' + json.dumps(value, ensure_ascii=False).replace('"', '""') + '"'


def records(labels: Sequence[object]) -> str:
    return lines(*({"text": text, "sentiment": label} for text, label in zip("好坏差", labels, strict=True)))


ONE, TWO = {"choices": ["售前"]}, {"choices": ["售前", "售后"]}
LEFT_OUT = [
    ("a.csv", f"sentiment,text\n{in_cell(ONE)},好\n{in_cell(TWO)},坏\n售后,差\n", "several labels: 1", "row 3"),
    ("a.txt", "__label__售前 好\n__label__a __label__b 坏\n__label__售后 差\n", "several labels: 1", "line 2"),
    ("a.json", records((ONE, TWO, "售后")), "several labels: 1", "record 2"),
    ("a.json", records(("售前", ["a", "b"], ["售后"])), "several labels: 1", "record 2"),
    ("a.json", records(("售前", None, "售后")), "empty labels: 1", "record 2"),
    ("a.csv", "text,label\n好,售前\n坏, \n差,售后\n", "empty labels: 1", "row 3"),
]


@pytest.mark.parametrize(("name", "content", "problem", "place"), LEFT_OUT)
def test_rows_without_one_label_are_refused_or_left_out(
    tmp_path: Path, name: str, content: str, problem: str, place: str
) -> None:
    path = written(tmp_path, name, content)
    told = message_of(CorpusError, lambda: read_labelled(path, CLASSIFY))
    assert f"{problem}, the first in {place}" in told
    assert "--skip-unlabelled" in told
    assert read(path, SKIPPING) == [("好", "售前"), ("差", "售后")]
    assert f"left out because of {problem}" in read_labelled(path, SKIPPING).notes


NAMES = ("王小明", "李婷", "赵敏")


def name_records(start: str = "今天", shift: int = 0, **keys: Any) -> list[dict[str, Any]]:
    """Texts with a name after `start`, whose span has its text; all positions are `shift` too large."""
    found = []
    for name in NAMES * 4:
        place = len(start) + shift
        span = {"start": place, "end": place + len(name), "label": "PER", "text": name}
        found.append({"text": f"{start}{name}去北京开会", "label": [span], **keys})
    return found


def spans_read(tmp_path: Path, *objects: object) -> tuple[list[str], tuple[str, ...]]:
    """Return the text of the span in each example, "" if it has none, and the notes."""
    labelled = read_labelled(written(tmp_path, "a.jsonl", lines(*objects)), TAG)
    marked = [
        "".join(character for character, tag in zip(example.texts[0], example.labels, strict=True) if tag != "O")
        for example in labelled.examples
    ]
    return marked, labelled.notes[1:]


def test_rejected_and_skipped_records_are_left_out_and_counted(tmp_path: Path) -> None:
    answers = [{"answer": "accept"}] * 6 + [{"answer": "reject"}] * 4 + [{"answer": "ignore"}, {"was_cancelled": True}]
    objects = [record | answer for record, answer in zip(name_records(id=3), answers, strict=True)]
    marked, notes = spans_read(tmp_path, *objects)
    assert marked == list(NAMES * 2)
    left_out = [f"left out because of {reason}" for reason in ("answer: reject: 4", "answer: ignore: 1")]
    left_out.append("left out because of was_cancelled: 1")
    assert notes == ("fields that are not read: id", *left_out)
    classes = [{"text": f"好{n}", "label": n % 2, "answer": ("accept", "reject")[n % 3 == 0]} for n in range(9)]
    labelled = read_labelled(written(tmp_path, "b.jsonl", lines(*classes)), CLASSIFY)
    assert (len(labelled.examples), labelled.notes[1]) == (6, "left out because of answer: reject: 3")


# How spans are read


def test_texts_without_spans_have_no_field(tmp_path: Path) -> None:
    marked, notes = spans_read(tmp_path, {"text": "没有人", "id": 1}, *name_records())
    assert marked == ["", *NAMES * 4]
    assert notes[0] == "texts without a spans field, treated as having no spans: 1"


@pytest.mark.parametrize("has_surface", [True, False])
def test_positions_of_browsers(tmp_path: Path, has_surface: bool) -> None:
    """An emoji counts twice there. Only the text of the span proves it; without it, the positions are doubted."""
    objects = name_records("今天😀", shift=1)
    for record in objects if not has_surface else ():
        del record["label"][0]["text"]
    marked, notes = spans_read(tmp_path, *objects)
    assert (marked == list(NAMES * 4)) == has_surface
    assert ("positions are counted in UTF-16 code units" in notes) == has_surface
    assert any("wrong for 12 spans" in note for note in notes) == (not has_surface)


@pytest.mark.parametrize("past_end", [0, 1])
def test_ends_inside_words_are_doubted(tmp_path: Path, past_end: int) -> None:
    """Without the text of the spans, ends are read as exclusive; 上海 ends inside a word if they are inclusive."""
    texts = [f"我在{place}工作" for place in ("上海", "广州", "重庆", "天津") * 3]
    marked, notes = spans_read(tmp_path, *({"text": text, "label": [[2, 4 - past_end, "LOC"]]} for text in texts))
    assert marked[0] == "上海"[: 2 - past_end]
    assert "span ends are inclusive" not in notes
    assert any("12 of 12 spans end inside words, but only 0" in note for note in notes) == bool(past_end)


def test_other_keys_of_spans(tmp_path: Path) -> None:
    span = {"label_type": "药物", "overlap": 0, "start_pos": 3, "end_pos": 7}
    marked, notes = spans_read(tmp_path, *[{"originalText": "患者予阿莫西林治疗", "entities": [span]}] * 3)
    assert marked == ["阿莫西林"] * 3
    assert "fields that are not read: overlap" in notes
    assert read_labelled(tmp_path / "a.jsonl", TAG).columns == ("originalText", "entities")


def test_of_overlapping_spans_the_longest_then_the_first_stays(tmp_path: Path) -> None:
    spans = [[3, 5, "地点"], [3, 5, "住址"], [2, 4, "住址"], [4, 5, "x"], [1, 4, "话"]]
    kept = [("O", "O", "O", "B-地点", "E-地点"), ("O", "B-话", "I-话", "E-话", "S-x")]
    kept.insert(1, ("O", "O", "B-住址", "E-住址", "S-x"))
    for count, labels in zip((2, 4, 5), kept, strict=True):
        path = written(tmp_path, "a.jsonl", lines({"text": "他住在北京", "entities": spans[:count]}))
        labelled = read_labelled(path, TAG)
        assert labelled.examples[0].labels == labels
    assert any(note.startswith("spans left out") and note.endswith(": 住址 2, 地点 1") for note in labelled.notes)


# What is refused: the place, what was found, or the next step


def spans_of(*spans: Any) -> str:
    return lines({"text": "李白，e\u0301", "spans": spans})


LABEL_STUDIO = [{"id": 1, "data": {"text": "好"}, "annotations": [{"id": 1, "result": []}]}]
SPANS_ONLY = '{"text": "李白来了", "entities": [{"start": 0, "end": 2, "label": "人"}]}\n' * 3
UNEQUAL = lines({"tokens": ["北"], "tags": ["O"]}, {"tokens": ["北", "京"], "tags": ["O"]})
STUDIO = [{"start": 0, "end": 3, "text": "王小明", "labels": ["PER"]}]
SPANS_IN_CSV = f"id,label,text\n1,{in_cell(STUDIO)},王小明来\n2,{in_cell(STUDIO)},王小明走\n"
SENTENCE = "这家酒店的房间很干净服务员也非常热情下次还会再来住" * 2
BRAT, YEDDA = "T1\tPER 0 3\t王小明\nT2\tPER 4 5;7 8\t李 明\n", "我 在 [@北京#LOC*] 。\n"
NO_TEXTS = "".join(f"2024年3月{n % 28 + 1}日,1390000{n:04d},A-{n:030d},{'好' if n % 2 else '坏'}\n" for n in range(40))
PROBLEMS = [
    (SKIPPING, "a.csv", "text,label\n好,\n坏,\n", "has no labelled examples"),
    (CLASSIFY, "a.csv", "text,label\n好,1\n坏\n", "row 3 has neither text"),
    (CLASSIFY, "a.jsonl", '{"a": "好", "b": 1}\n', "cannot tell which of these to use for --text-column: a, b"),
    (CLASSIFY, "a.jsonl", '{"text": "好", "label": 1}\n{"text"\n', "line 2 is not JSON"),
    (CLASSIFY, "a.json", '{"version": 1,\n"data": []}', "one JSON object per line"),
    (replace(CLASSIFY, label_column="mood"), "a.csv", "text,label\n好,1\n", "has no column or field 'mood'"),
    (PAIRS, "a.csv", "text,label\n好,1\n", "cannot tell which of these to use for --text-column: text, label"),
    (CLASSIFY, "a.csv", "label,text\n1,这家店,很好\n", "row 2 has 3 columns; expected 2"),
    (CLASSIFY, "a.csv", "日期,手机,单,label\n" + NO_TEXTS, "to use for --text-column: 日期, 手机, 单, label"),
    (CLASSIFY, "a.tsv", "李\tB-PER\n白\tI-PER\n\n说\tO\n", "a.tsv looks like CoNLL. Use KIND tag"),
    (CLASSIFY, "a.jsonl", SPANS_ONLY, "cannot tell which of these to use for --label-column: text, entities"),
    (CLASSIFY, "a.jsonl", '["好", 1]\n', 'record 1: "[\'好\', 1]"; expected {"text": "...", ...}.'),
    (CLASSIFY, "a.csv", SPANS_IN_CSV, "row 2 has spans in label. Use KIND tag"),
    (CLASSIFY, "a.json", lines({"text": "王小明来", "label": STUDIO}), "record 1 has spans in label. Use KIND tag"),
    (CLASSIFY, "a.jsonl", '{"text": "好", "label": "A\\ud83d"}\n', "is half of a surrogate pair"),
    (replace(CLASSIFY, text_columns=("q",), label_column="q"), "a.csv", "q,a\n好,1\n", "'q' was chosen twice"),
    *(
        (NUMBERS, "a.csv", f"text,score\n好,{wrong}\n", f"row 2: {wrong!r} (--regression); expected a number.")
        for wrong in ("nan", "inf", "many", "1_0")
    ),
    (TAG, "a.conll", "李\tB-PER\n白\n", "line 2: not one token and its tag ('白')"),
    (TAG, "a.conll", "\n\n", "has no labelled examples"),
    (TAG, "a.csv", SPANS_IN_CSV, "cannot read tags from this format (csv). From Label Studio, export as JSON-MIN"),
    (replace(TAG, text_columns=("form",)), "a.conll", "李 O\n", "'form'; expected a whole number"),
    (TAG, "a.json", json.dumps(LABEL_STUDIO), "record 1 is in Label Studio's full JSON format. Export as JSON-MIN"),
    (TAG, "a.conll", f"{SENTENCE}\t1\n{SENTENCE}\t0\n", "a.conll: not one token and its tag ('这家"),
    (TAG, "a.ann", BRAT, "brat"),
    (TAG, "a.ann", YEDDA, "YEDDA"),
    (TAG, "a.txt", "北 B-LOC\n京 I-LOC\n" * 501, "all 1,002 tokens are in one sentence"),
    (TAG, "a.txt", "我们/r  在/p  北京/ns  。/w\n", "line 1: not one token and its tag"),
    (TAG, "a.txt", "我们 在 北京\n我 来\n你 走 了 吗\n", "lines have 2 to 4 columns"),
    (TAG, "a.txt", "李 白 来\tB-PER I-PER O\n好\tO\n", "line 1: not one token and its tag"),
    (TAG, "a.tsv", "text_a\tlabel\n李\x02来\tB-PER\x02O\n", "line 2: not one token and its tag"),
    (TAG, "a.jsonl", lines({"tokens": ["北"], "ner_tags": [3]}), "record 1: 3; expected B-PER"),
    (TAG, "{a}.jsonl", UNEQUAL, "record 2 has 2 tokens and 1 tag"),
    (TAG, "a.jsonl", lines({"id": 1, "data": {}}), "cannot find the text or the spans in the fields id, data"),
    (TAG, "a.jsonl", spans_of([0, 9, "name"]), 'record 1: [0, 9, "name"]; expected 0 <= start < end <= 5.'),
    (TAG, "a.jsonl", spans_of([0, 3, " "]), 'record 1: [0, 3, " "]; expected [[start, end, type]'),
    (TAG, "a.jsonl", spans_of({"start": 0, "end": 2, "label": "x", "text": "李黑"}), "'李白'; expected '李黑'."),
    (TAG, "a.jsonl", spans_of([0, 2, ["a", "b"]]), '[0, 2, ["a", "b"]]; expected '),
    (TAG, "a.jsonl", spans_of([0, 1e300, "x"]), '[0, 1e+300, "x"]; expected '),
    (
        TAG,
        "a.jsonl",
        spans_of({"start": 0, "end": 2, "label": "x", "text": ["李"]}),
        "expected [[start, end, type], ...], [{start, end, label}, ...], ",
    ),
    (TAG, "a.jsonl", spans_of({"von": 0, "bis": 1, "label": "x"}), 'record 1: {"von": 0, "bis": 1'),
    (TAG, "a.jsonl", spans_of("12x"), '"12x"; expected [[start, end, type], ...]'),
]


@pytest.mark.parametrize(("reading", "name", "content", "problem"), PROBLEMS)
def test_wrong_data_is_one_line(tmp_path: Path, reading: Reading, name: str, content: str, problem: str) -> None:
    path = written(tmp_path, name, content)
    told = message_of(CorpusError, lambda: read_labelled(path, reading))
    assert problem in told
    assert told.startswith(str(path)) or reading.text_columns == ("form",)


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
