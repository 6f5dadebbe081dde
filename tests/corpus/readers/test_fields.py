"""Which field of a record is taken as the text."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from corpus.readers.reading import documents_of
from messages import message_of

from elmo_zh.corpus.counts import Tally
from elmo_zh.corpus.readers.row_texts import CSV, JSON, JSON_LINES
from elmo_zh.errors import CorpusError

LONG = "今天天气很好，我们去公园散步，然后回家吃饭。"


def json_lines(records: list[Any]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


SQUAD = {"title": "公园", "context": LONG, "qas": [{"question": "去哪里？", "answers": [{"text": "公园"}]}]}


@pytest.mark.parametrize(
    ("records", "field", "others"),
    [
        ([{"text": LONG}] * 7 + [{"TEXT": "短的。"}], "text", {"TEXT"}),
        ([{"TEXT": LONG}] * 7 + [{"text": "短"}], "TEXT", {"text"}),
        ([{"TEXT": LONG, "text": LONG}], "text", {"TEXT"}),
        ([{"body": LONG, "picture": {"text": "公园"}}], "body", {"picture.text"}),
        ([{"text": "id-17", "content": LONG}], "content", set()),
        ([{"text": LONG, "content": LONG}], "text", {"content"}),
        ([SQUAD], "context", {"title", "qas.question", "qas.answers.text"}),
        ([{"text": LONG, "html": LONG * 3}], "text", {"html"}),
    ],
)
def test_the_field_with_the_text(records: list[Any], field: str, others: set[str]) -> None:
    for read, text in ((JSON_LINES.read, json_lines(records)), (JSON.read, json.dumps(records))):
        tally = Tally()
        documents = documents_of(read, text, tally)
        assert (tally.read_field, set(tally.other_fields)) == (field, others)
        assert LONG in documents[0]


@pytest.mark.parametrize("read", [JSON_LINES.read, JSON.read])
def test_a_known_name_beside_far_more_text_is_not_certain(read: Callable[..., Any]) -> None:
    record = {"text": "公园", "story": LONG}
    text = json_lines([record]) if read is JSON_LINES.read else json.dumps([record])
    told = message_of(CorpusError, lambda: documents_of(read, text))
    assert told == "a.txt: cannot tell which column holds the text (story, text). Choose one or more: --field NAME"


def test_a_key_that_stands_twice_loses_nothing() -> None:
    text = '{"text": "一", "text": ["二", "三"], "id": 1, "text": "四"}'
    for read, content in ((JSON_LINES.read, f"{text}\n"), (JSON.read, f"[{text}]")):
        assert documents_of(read, content) == [["一", "二", "三", "四"]]


def test_columns_are_weighed_too() -> None:
    tally = Tally()
    text = f"text,content,title\nid-17,{LONG},公园\n"
    assert documents_of(CSV.read, text, tally) == [[LONG]]
    assert (tally.read_field, set(tally.other_fields)) == ("column 2 (content)", {"column 3 (title)"})
    assert documents_of(CSV.read, f"text,story\n公园,{LONG}\n") == [[LONG]]


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (JSON_LINES.read, json_lines([{"text": LONG}, {"note": "甲乙", "tags": ["丙", "丁戊"]}, {"text": LONG}])),
        (JSON.read, json.dumps([{"text": LONG}, {"note": "甲乙", "tags": ["丙", "丁戊"]}, {"text": LONG}])),
        (CSV.read, f"id,text\n1,{LONG}\n甲乙丙丁戊\n2,{LONG}\n"),
    ],
)
def test_records_that_were_not_read_are_counted_with_their_characters(read: Callable[..., Any], text: str) -> None:
    tally = Tally()
    assert documents_of(read, text, tally) == [[LONG], [LONG]]
    assert [(tally.dropped[reason], items) for reason, items in tally.dropped_items.items()] == [(5, 1)]
    assert tally.characters == 5


def test_the_tally_survives_a_record() -> None:
    tally = Tally()
    documents_of(CSV.read, f"text,title\n{LONG},公园\n", tally)
    assert Tally.restored(json.loads(json.dumps(tally.described()))).other_fields == tally.other_fields
    assert "other_fields" not in Tally().described()
