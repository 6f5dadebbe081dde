"""Halves of characters in JSON."""

import json
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from elmo_zh.corpus.readers.json_values import mark_surrogates, restore_surrogates

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
