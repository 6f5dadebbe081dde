"""JSON lines."""

import json
from typing import Any

import pytest
from corpus.readers.reading import documents_of

from elmo_zh.corpus.counts import Tally
from elmo_zh.corpus.readers.row_texts import JSON_LINES, WITHOUT_FIELD
from elmo_zh.corpus.readers.rows import NOT_JSON


def lines(*records: Any) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("data.parts.body", [["一", "二"], ["三"]]),
        ("title, data.parts.body", [["题", "一", "二"], ["三"]]),
        ("data.tags", [["甲", "乙", "丙"]]),
        ("a.b", [["点"]]),
    ],
)
def test_paths_and_lists(field: str, expected: list[list[str]]) -> None:
    text = lines(
        {"data": {"parts": [{"body": "一"}, {"body": "二"}], "tags": ["甲", ["乙", "丙"]]}, "title": "题", "a.b": "点"},
        {"data": {"parts": {"body": "三"}}},
    )
    assert documents_of(JSON_LINES.read, text, field=field) == expected


def test_a_record_among_others_of_another_kind_does_not_choose_the_field() -> None:
    tally = Tally()
    text = lines("裸", {"text": "一"}, None, {"text": None}, {"text": {"a": "x"}}, [], 12, {"text": ["二", ["三"]]})
    assert documents_of(JSON_LINES.read, text, tally) == [["一"], ["二", "三"]]
    assert tally.dropped_items == {WITHOUT_FIELD: 6}


def test_lines_that_are_no_json_and_records_without_the_field_are_counted() -> None:
    tally = Tally()
    text = lines({"text": "一"}) + "{坏的\n" + "[" * 100_000 + "\n" + lines({"other": "x"})
    assert documents_of(JSON_LINES.read, text, tally) == [["一"]]
    assert tally.dropped_items == {NOT_JSON: 2, WITHOUT_FIELD: 1}
    assert tally.dropped[NOT_JSON] == 3 + 100_000
