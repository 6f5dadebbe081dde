"""The column of the label is never guessed among several, and a date, a number or an id is never the text."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from messages import message_of
from tasks.labelled import CLASSIFY, written

from elmo_zh.corpus.read_labelled import read_labelled
from elmo_zh.errors import CorpusError

DEPARTMENTS = ("骨科", "儿科", "眼科")


def clinic(names: Sequence[str], count: int = 60) -> str:
    """Notes with a number, a date, whether they were answered, a department and a price; sorted by department."""
    rows = [
        f"CN-{n:05d},2024-03-{n % 28 + 1:02d},{'是' if n % 2 else '否'},{DEPARTMENTS[3 * n // count]},疼{n}天,{n * 7}.5"
        for n in range(count)
    ]
    return "\n".join([*([",".join(names)] if names else []), *rows]) + "\n"


NAMED = ("病历号", "就诊日期", "是否回复", "科室", "病情", "费用")


@pytest.mark.parametrize("count", [60, 600])
def test_a_name_that_says_label_wins(tmp_path: Path, count: int) -> None:
    labelled = read_labelled(written(tmp_path, "a.csv", clinic(NAMED, count)), CLASSIFY)
    assert labelled.notes == ("csv format, columns 病情, 科室",)
    assert {example.labels[0] for example in labelled.examples} == set(DEPARTMENTS)
    both = written(tmp_path, "b.csv", clinic((*NAMED[:2], "类别", *NAMED[3:]), count))
    assert read_labelled(both, CLASSIFY).notes[0] == "csv format, columns 病情, 类别"
    prices = read_labelled(written(tmp_path, "c.csv", clinic((*NAMED[:5], "评分"))), replace(CLASSIFY, regression=True))
    assert prices.notes == ("csv format, columns 病情, 评分",)


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
    assert told.startswith(f"{path}: cannot tell which of these holds the label: {first} (")
    assert f": {first} (否, 是); {second} (骨科, 儿科, 眼科). Choose one, by name" in told
    chosen = read_labelled(path, replace(CLASSIFY, label_column=second))
    assert {example.labels[0] for example in chosen.examples} == set(DEPARTMENTS)


def test_dates_numbers_and_ids_are_no_texts(tmp_path: Path) -> None:
    rows = "".join(f"2024年3月{n % 28 + 1}日,1390000{n:04d},A-{n:030d},{'好' if n % 2 else '坏'}\n" for n in range(40))
    told = message_of(
        CorpusError, lambda: read_labelled(written(tmp_path, "a.csv", "日期,手机,单,label\n" + rows), CLASSIFY)
    )
    assert "cannot tell which of these holds the text: 日期, 手机, 单, label" in told


def test_half_a_character_in_a_label_is_one_line(tmp_path: Path) -> None:
    path = written(tmp_path, "a.jsonl", '{"text": "好", "label": "A\\ud83d"}\n')
    told = message_of(CorpusError, lambda: read_labelled(path, CLASSIFY))
    assert "is half of a surrogate pair" in told
