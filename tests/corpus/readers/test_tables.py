"""CSV and TSV."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from corpus.readers.reading import documents_of, text_of
from messages import message_of

from elmo_zh.config import TextConfig
from elmo_zh.corpus.counts import PassedOver, Tally
from elmo_zh.corpus.readers import rows as module
from elmo_zh.corpus.readers.row_texts import CSV, TSV
from elmo_zh.errors import CorpusError


def test_quotes_line_ends_and_delimiters_in_cells() -> None:
    text = 'label,review\n1,"他说：""好,真好。""\n第二行"\n0,一般\n'
    tally = Tally()
    assert documents_of(CSV.read, text, tally) == [['他说："好,真好。"', "第二行"], ["一般"]]
    assert tally.read_field == "column 2 (review)"


@pytest.mark.parametrize(
    ("read", "text", "expected"),
    [
        *((CSV.read, f"id{sign}text\n1{sign}苹果\n", [["苹果"]]) for sign in ",\t;|"),
        (TSV.read, "id\ttitle_zh\n1\t苹果\n2\t香蕉\n", [["苹果"], ["香蕉"]]),  # a header in English is no text
        (TSV.read, '"苹果\t1\n香"蕉"\t2\n', [['"苹果'], ['香"蕉"']]),
        (CSV.read, 'id,text\n1,"苹果\n香蕉"', [["苹果", "香蕉"]]),
        (CSV.read, "id,text\r1,苹果\r2,香蕉\r", [["苹果"], ["香蕉"]]),
        (TSV.read, "id\ttext\r1\t苹果\r2\t香蕉\r", [["苹果"], ["香蕉"]]),
        (CSV.read, "id,text\n1,苹\0果\n", [["苹\0果"]]),
        (CSV.read, "", []),
    ],
)
def test_delimiters_quotes_and_line_ends(read: Callable[..., Any], text: str, expected: list[list[str]]) -> None:
    assert documents_of(read, text) == expected


@pytest.mark.parametrize(("name", "rate"), [("评论内容", "5"), ("说的话", "4.5")])
def test_a_header_in_chinese_is_no_text(name: str, rate: str) -> None:
    """It is known by its name, or by numbers below another name."""
    tally = Tally()
    text = f"编号,评分,{name}\n1,{rate},房间很干净，下次还会来。\n2,3,一般，早饭不错。\n"
    assert documents_of(CSV.read, text, tally) == [["房间很干净，下次还会来。"], ["一般，早饭不错。"]]
    assert tally.read_field == f"column 3 ({name})"


@pytest.mark.parametrize("text", ["\n\n", "\r\r", "\r\n\r\n\r\n"])
@pytest.mark.parametrize("read", [CSV.read, TSV.read, CSV.read_records, TSV.read_records])
def test_blank_lines_alone_hold_no_text(read: Callable[..., Iterator[Any]], text: str) -> None:
    assert list(read(text_of(text), TextConfig(), Tally(), PassedOver())) == []


def test_columns_that_cannot_be_told_apart() -> None:
    told = message_of(CorpusError, lambda: documents_of(CSV.read, "sentence1,sentence2\n今天下雨,明天刮风\n"))
    assert "sentence1, sentence2" in told
    assert "--field NAME" in told


@pytest.mark.parametrize("field", ["body", "3", "0"])
def test_a_column_that_is_not_there(field: str) -> None:
    told = message_of(CorpusError, lambda: documents_of(CSV.read, "id,text\n1,苹果\n", field=field))
    assert told.startswith(f"a.txt has no column {field!r}. Its first row is: id, text. ")


def test_quotes_that_never_close_take_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST_CELL", 101)
    for text in ("id,text\n1,苹果\n" + '2,"' + "香蕉\n" * 61, "id,text\n1,苹果\n" + '2,"' + '香","\n' * 61):
        told = message_of(CorpusError, lambda text=text: documents_of(CSV.read, text))
        assert told.startswith("a.txt is not CSV (")
        assert "perhaps a quote is not closed" in told
