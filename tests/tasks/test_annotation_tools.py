"""Exports of annotation tools: what people rejected, texts without spans, positions of browsers, and other formats."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from messages import Heard, message_of
from tasks.labelled import CLASSIFY, TAG, lines, load, read, written

from elmo_zh.config.task_settings import DataFiles, Reading
from elmo_zh.corpus.read_labelled import read_labelled
from elmo_zh.errors import CorpusError
from elmo_zh.run.reporter import SilentReporter
from elmo_zh.tasks.datasets import find_files

NAMES = ("王小明", "李婷", "赵敏")


def records(start: str = "今天", **keys: Any) -> list[dict[str, Any]]:
    """Texts with a name after `start`, whose span has its text."""
    texts = [f"{start}{name}去北京开会" for name in NAMES * 4]
    place = len(start)
    spans = [[{"start": place, "end": place + len(name), "label": "PER", "text": name}] for name in NAMES * 4]
    return [{"text": text, "label": own, **keys} for text, own in zip(texts, spans, strict=True)]


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
    objects = [record | answer for record, answer in zip(records(id=3), answers, strict=True)]
    marked, notes = spans_read(tmp_path, *objects)
    assert marked == list(NAMES * 2)
    assert notes == (
        "span ends are exclusive",
        "fields that are not read: id",
        "left out because of answer: reject: 4",
        "left out because of answer: ignore: 1",
        "left out because of was_cancelled: 1",
    )
    classes = [{"text": f"好{n}", "label": n % 2, "answer": ("accept", "reject")[n % 3 == 0]} for n in range(9)]
    labelled = read_labelled(written(tmp_path, "b.jsonl", lines(*classes)), CLASSIFY)
    assert len(labelled.examples) == 6
    assert labelled.notes[1] == "left out because of answer: reject: 3"


def test_texts_without_spans_have_no_field(tmp_path: Path) -> None:
    marked, notes = spans_read(tmp_path, {"text": "没有人", "id": 1}, *records())
    assert marked == ["", *NAMES * 4]
    assert notes[1] == "texts without a field of spans, taken to have none: 1"


@pytest.mark.parametrize("has_surface", [True, False])
def test_positions_of_browsers(tmp_path: Path, has_surface: bool) -> None:
    """An emoji counts twice there. Only the text of the span proves it; without it, the positions are doubted."""
    objects = records("今天😀")
    for record in objects:
        [span] = record["label"]
        span |= {"start": span["start"] + 1, "end": span["end"] + 1}
        if not has_surface:
            del span["text"]
    marked, notes = spans_read(tmp_path, *objects)
    assert (marked == list(NAMES * 4)) == has_surface
    assert ("positions count UTF-16 units" in notes) == has_surface
    assert any("doubtful for 12 spans" in note for note in notes) == (not has_surface)


@pytest.mark.parametrize("past_end", [0, 1])
def test_ends_inside_words_are_doubted(tmp_path: Path, past_end: int) -> None:
    """Without the text of the spans, ends are read as exclusive; 上海 ends inside a word if they are inclusive."""
    texts = [f"我在{place}工作" for place in ("上海", "广州", "重庆", "天津") * 3]
    marked, notes = spans_read(tmp_path, *({"text": text, "label": [[2, 4 - past_end, "LOC"]]} for text in texts))
    assert marked[0] == "上海"[: 2 - past_end]
    assert notes[0] == "span ends are exclusive"
    assert any("12 of 12 spans end inside words, but only 0" in note for note in notes) == bool(past_end)


def test_other_keys_of_spans(tmp_path: Path) -> None:
    span = {"label_type": "药物", "overlap": 0, "start_pos": 3, "end_pos": 7}
    marked, notes = spans_read(tmp_path, *[{"originalText": "患者予阿莫西林治疗", "entities": [span]}] * 3)
    assert marked == ["阿莫西林"] * 3
    assert "fields that are not read: overlap" in notes
    assert read_labelled(tmp_path / "a.jsonl", TAG).columns == ("originalText", "entities")
    path = written(tmp_path, "b.jsonl", lines({"text": "患者", "entities": [{"von": 0, "bis": 1, "label": "x"}]}))
    told = message_of(CorpusError, lambda: read_labelled(path, TAG))
    assert 'the span {"von": 0, "bis": 1' in told
    assert "start_offset" in told


def test_biluo_tags(tmp_path: Path) -> None:
    rows = [("王", "B-PER"), ("小", "I-PER"), ("明", "L-PER"), ("在", "O"), ("沪", "U-LOC")]
    path = written(tmp_path, "a.conll", "".join("\t".join(row) + "\n" for row in rows))
    labelled = read_labelled(path, TAG)
    assert labelled.scheme == "BIOES"
    assert labelled.examples[0].labels == ("B-PER", "I-PER", "E-PER", "O", "S-LOC")


def test_labels_of_fasttext(tmp_path: Path) -> None:
    path = written(tmp_path, "a.txt", "__label__教育 学校 今天 用 New York 的 书\n\n__label__体育 球队 赢 了\n" * 3)
    assert read(path, CLASSIFY) == [("学校今天用New York的书", "教育"), ("球队赢了", "体育")] * 3


def in_cell(value: object) -> str:
    """Return JSON as Label Studio writes it in a cell of CSV."""
    return '"' + json.dumps(value, ensure_ascii=False).replace('"', '""') + '"'


ONE, TWO = {"choices": ["售前"]}, {"choices": ["售前", "售后"]}
TABLE = f"sentiment,text\n{in_cell(ONE)},好\n{in_cell(TWO)},坏\n售后,差\n"
SEVERAL = [
    ("a.csv", TABLE, "row 3"),
    ("a.txt", "__label__售前 好\n__label__a __label__b 坏\n__label__售后 差\n", "line 2"),
]
for own in ((ONE, TWO, "售后"), ("售前", ["a", "b"], ["售后"])):
    choices = ({"text": text, "sentiment": label} for text, label in zip("好坏差", own, strict=True))
    SEVERAL.append(("a.json", lines(*choices), "record 2"))


@pytest.mark.parametrize(("name", "content", "where"), SEVERAL)
def test_several_labels_are_refused_or_left_out(tmp_path: Path, name: str, content: str, where: str) -> None:
    path = written(tmp_path, name, content)
    told = message_of(CorpusError, lambda: read_labelled(path, CLASSIFY))
    assert f"several labels: 1, the first in {where}" in told
    assert "--skip-unlabelled" in told
    labelled = read_labelled(path, replace(CLASSIFY, skips_unlabelled=True))
    assert [(*example.texts, *example.labels) for example in labelled.examples] == [("好", "售前"), ("差", "售后")]
    assert "left out because of several labels: 1" in labelled.notes


def test_of_overlapping_spans_the_longest_then_the_first_stays(tmp_path: Path) -> None:
    spans = [[3, 5, "地点"], [3, 5, "住址"], [2, 4, "住址"], [4, 5, "x"]]
    labelled = read_labelled(written(tmp_path, "a.jsonl", lines({"text": "他住在北京", "entities": spans[:2]})), TAG)
    assert labelled.examples[0].labels == ("O", "O", "O", "B-地点", "E-地点")
    labelled = read_labelled(written(tmp_path, "a.jsonl", lines({"text": "他住在北京", "entities": spans})), TAG)
    assert labelled.examples[0].labels == ("O", "O", "B-住址", "E-住址", "S-x")
    assert any(note.startswith("2 spans left out") and note.endswith("(地点 1, 住址 1)") for note in labelled.notes)


STUDIO = [{"start": 0, "end": 3, "text": "王小明", "labels": ["PER"]}]
SPANS_IN_CSV = f"id,label,text\n1,{in_cell(STUDIO)},王小明来\n2,{in_cell(STUDIO)},王小明走\n"
FULL = [{"id": 1, "data": {"text": "好"}, "annotations": [{"id": 1, "result": []}]}]
SENTENCE = "这家酒店的房间很干净服务员也非常热情下次还会再来住" * 2
BRAT, YEDDA = "T1\tPER 0 3\t王小明\nT2\tPER 4 5;7 8\t李 明\n", "我 在 [@北京#LOC*] 。\n"
NAMED: list[tuple[Reading, str, str, str]] = [
    (TAG, "a.csv", SPANS_IN_CSV, "JSON-MIN"),
    (CLASSIFY, "a.csv", SPANS_IN_CSV, "row 2 has spans in label. Use task fit tag"),
    (CLASSIFY, "a.json", lines({"text": "王小明来", "label": STUDIO}), "record 1 has spans in label. Use task fit tag"),
    (TAG, "a.json", json.dumps(FULL), "record 1 is a full export of Label Studio. Export as JSON-MIN"),
    (TAG, "a.conll", f"{SENTENCE}\t1\n{SENTENCE}\t0\n", "has tokens that are no words"),
    (TAG, "a.ann", BRAT, "brat"),
    (TAG, "a.ann", YEDDA, "YEDDA"),
    (
        TAG,
        "a.jsonl",
        lines({"text": "北京", "entities": [{"start": 0, "end": 2, "labels": ["a", "b"]}]}),
        "has 2 labels",
    ),
]


@pytest.mark.parametrize(("reading", "name", "content", "problem"), NAMED)
def test_other_formats_are_named(tmp_path: Path, reading: Reading, name: str, content: str, problem: str) -> None:
    path = written(tmp_path, name, content)
    told = message_of(CorpusError, lambda: read_labelled(path, reading))
    assert problem in told
    assert "task fit classify" not in told


@pytest.mark.parametrize(("content", "tool"), [(BRAT, "brat"), (YEDDA, "YEDDA")])
def test_a_folder_of_annotations_is_named(tmp_path: Path, content: str, tool: str) -> None:
    for name, of_file in (("0.ann", ""), ("1.ann", content), ("1.txt", "王小明来了")):
        written(tmp_path, name, of_file)
    assert tool in message_of(CorpusError, lambda: find_files(DataFiles(data=tmp_path), SilentReporter()))


def test_spans_and_labels_are_counted_and_named_as_in_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, "a.jsonl", lines(*records()))
    other = written(tmp_path, "b.jsonl", lines({"text": "王在沪", "label": [[0, 1, "PER"], [2, 3, "LOC"]]}))
    told = Heard()
    load(DataFiles(data=path, dev=path, test=other), TAG, told)
    assert "12 spans, 1 label" in told.notes[0]
    assert any(warning.endswith(": LOC.") and "1 of 2 test labels" in warning for warning in told.warnings)
