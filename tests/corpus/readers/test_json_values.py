"""JSON of any shape, as a stream."""

import json
from itertools import pairwise
from pathlib import Path

import pytest
from corpus.readers.reading import documents_of, read
from hypothesis import given
from hypothesis import strategies as st
from messages import message_of

from elmo_zh.corpus.counts import Tally
from elmo_zh.corpus.readers import rows as module
from elmo_zh.corpus.readers.row_texts import JSON
from elmo_zh.corpus.readers.rows import mark_surrogates, restore_surrogates
from elmo_zh.errors import CorpusError


@pytest.mark.parametrize(
    ("value", "field", "expected"),
    [
        ([{"title": "雎", "content": ["关关", "在河"]}, {"content": "a\nb"}], "", [["关关", "在河"], ["a", "b"]]),
        (["一", "二"], "", [["一"], ["二"]]),
        ({"data": [{"paragraphs": [{"context": "甲"}, {"context": "乙"}]}]}, "data.paragraphs.context", [["甲", "乙"]]),
        ([{"a": "一", "b": "二"}, {"b": "三"}], "a,b", [["一", "二"], ["三"]]),
        ([[["一"], "二"], ["三"]], "", [["一", "二"], ["三"]]),
        ("一", "", [["一"]]),
    ],
)  # fmt: skip
def test_shapes(value: object, field: str, expected: list[list[str]]) -> None:
    for indent in (None, 2):
        assert documents_of(JSON.read, json.dumps(value, indent=indent), field=field) == expected


@pytest.mark.parametrize("text", ['[{"text": "一"', "[1, 2", "nothing", '["一" "二"]', ""])
def test_files_that_are_no_json_or_cut_off(text: str) -> None:
    assert message_of(CorpusError, lambda: documents_of(JSON.read, text)).startswith("a.txt: ")


def test_nesting_and_single_values_have_their_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    told = message_of(CorpusError, lambda: documents_of(JSON.read, "[" * 100_000))
    assert told.startswith("a.txt contains JSON nested more than 1000 levels deep")
    monkeypatch.setattr(module, "LONGEST_VALUE_BYTES", 2**18)
    text = f'["{"天" * 2**18}"]'
    assert "a value or a record is larger than" in message_of(CorpusError, lambda: documents_of(JSON.read, text))


def test_memory_does_not_hold_the_array(monkeypatch: pytest.MonkeyPatch) -> None:
    """Far more bytes than one value may have pass through when no single value has so many."""
    monkeypatch.setattr(module, "LONGEST_VALUE_BYTES", 2**20)
    count = 2**17
    assert sum(1 for _ in documents_of(JSON.read, "[" + '"今天下雨。",' * count + '"完"]')) == count + 1


def test_halves_of_characters_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    texts = (r"苹\ud800果\n好", r"\ud83d\ude00", r"a\\ud800", r"\udc00")
    path.write_text("[" + ",".join(f'{{"text": "{text}"}}' for text in texts) + "]", encoding="utf-8")
    tally = Tally()
    assert read(path, tally) == ["好", "😀", r"a\ud800"]
    assert tally.dropped == {"lines with undecodable bytes": 4}


TEXTS = st.text(
    st.sampled_from(["a", "天", "\\", '"', "\n", "😀", "\ud83d", "\ude00", "u", "d", "8", "0"]), max_size=30
)


@given(TEXTS, st.lists(st.integers(0, 200), max_size=5))
def test_every_half_is_marked_and_nothing_else_is(text: str, cuts: list[int]) -> None:
    # A half that stands before the other one is no half, however it was meant.
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    spelt = json.dumps(text)
    places = [0, *sorted(cuts), len(spelt)]
    marked = "".join(mark_surrogates(spelt[start:end] for start, end in pairwise(places)))
    assert not any("\ud800" <= sign <= "\udfff" for sign in json.loads(marked))
    found = restore_surrogates(json.loads(marked))
    assert found == "".join("\ud800" if "\ud800" <= sign <= "\udfff" else sign for sign in text)
