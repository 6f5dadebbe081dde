"""Counts add up in the order of the corpus, however it was cut."""

import ast
import json
import pickle
from collections.abc import Sequence
from itertools import pairwise

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from elmo_zh.config import TextConfig
from elmo_zh.corpus.counts import Found, Tally, reasons_line, visible
from elmo_zh.segmenting.segment_corpus import CorpusPreparation

PREPARATION = CorpusPreparation.build(TextConfig(segmenter="character", min_han_share=0.3, max_line_characters=31))
PIECES = [
    "今天", "好。", " ", "\u3000", "\u200b", "Ａ", "e\u0301", "<b>", "</b>", "&nbsp;", "abc", "[[甲|乙]]", "\x00",
    "\xe4\xb8\xad",
]  # fmt: skip
LINES = st.lists(st.lists(st.sampled_from(PIECES), max_size=9).map("".join), max_size=23)


def counts_of(lines: Sequence[str]) -> Tally:
    counts = Tally()
    for line in lines:
        PREPARATION.sentences(line, counts)
    return counts


def test_by_hand() -> None:
    counts = Tally()
    counts.notice("odd")
    counts.keep("<b>今</b><i>天</i>好")
    counts.keep("好")
    counts.notice("odd")
    counts.drop_line("empty", "<b></b>")
    counts.drop_line("empty", "")
    assert counts == Tally(
        lines=4,
        kept_characters=18,
        dropped={"empty": Found(2, 7, ["<b></b>"])},
        noticed={"odd": Found(1, 17, ["<b>今</b><i>天</i>好"])},
    )


@settings(deadline=None, max_examples=53)
@given(LINES, st.lists(st.integers(0, 23), max_size=5))
def test_parts_merged_in_order_are_the_whole(lines: list[str], cuts: list[int]) -> None:
    whole = counts_of(lines)
    merged = Tally()
    places = [0, *sorted(cuts), len(lines)]
    for start, end in pairwise(places):
        # As they come from a worker process or from a file.
        part = pickle.loads(pickle.dumps(counts_of(lines[start:end])))
        merged.add(msgspec.convert(json.loads(json.dumps(msgspec.to_builtins(part))), Tally))
    assert merged == whole
    assert list(merged.noticed) == list(whole.noticed)


# Examples that can be shown to people


@settings(deadline=None, max_examples=101)
@given(st.text(st.characters(), max_size=43))
def test_what_is_shown_can_be_seen_and_read_back(text: str) -> None:
    shown = visible(text)
    assert shown.isprintable()
    shown.encode("utf-8")
    assert ast.literal_eval('"' + shown.replace('"', r"\"") + '"') == text


def test_the_reasons_of_one_format_are_shown_as_one() -> None:
    numbers = {"html: comment": 1200, "lines too long": 7, "html: script": 34}
    assert reasons_line(numbers) == "html: 1,234, lines too long: 7"
    assert reasons_line({}) == ""
