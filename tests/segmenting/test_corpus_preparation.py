"""All that is read of a corpus is accounted for, and what is kept is prepared as embedding prepares it."""

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elmo_zh.config import TextConfig
from elmo_zh.corpus.cleaning import CLEANED, LineCleaner
from elmo_zh.corpus.counts import Found, Tally
from elmo_zh.segmenting.segment_corpus import CorpusPreparation
from elmo_zh.text.sentences import split_between_tokens, split_sentences

PIECES = ["今天", "很好。", "！", " ", "\u3000", "\u200b", "\u202e", "\x00", "Ａ１", "e\u0301", "ﬁ", "abc", "<b>"]
PIECES += ["</b>", "<p>", "&nbsp;", "&lt;", "[[甲|乙]]", "{{模板}}", "臺灣", "\xe4\xb8\xad", "\n", "'''", "软件"]
PIECES += ["\ud800"]
LINE = st.lists(st.one_of(st.sampled_from(PIECES), st.text(st.characters(), max_size=3)), max_size=13).map("".join)
CONFIGS = [
    TextConfig(segmenter="character"),
    TextConfig(segmenter="jieba", unicode_form="NFKC", min_han_share=0.4, max_line_characters=29),
    TextConfig(segmenter="character", script="simplified", split_sentences=False),
    TextConfig(segmenter="jieba", script="traditional", unicode_form="NFD", remove_markup=False),
    TextConfig(segmenter="whitespace", collapse_whitespace=False, remove_control=False, unicode_form="none"),
]


@cache
def preparation(number: int) -> CorpusPreparation:
    return CorpusPreparation.build(CONFIGS[number])


@pytest.mark.parametrize("number", range(len(CONFIGS)))
@settings(deadline=None, max_examples=101)
@given(lines=st.lists(LINE, max_size=7))
def test_every_character_is_accounted_for(number: int, lines: list[str]) -> None:
    counts = Tally()
    for line in lines:
        preparation(number).sentences(line, counts)
    assert counts.lines == len(lines)
    dropped = sum(found.characters for found in counts.dropped.values())
    assert counts.kept_characters + dropped == sum(map(len, lines))


@pytest.mark.parametrize("number", range(len(CONFIGS)))
@settings(deadline=None, max_examples=101)
@given(line=LINE)
def test_what_is_kept_is_prepared_as_embedding_does(number: int, line: str) -> None:
    found = preparation(number).sentences(line, Tally())
    cleaned = LineCleaner.build(CONFIGS[number]).clean(line, Tally())
    plain = preparation(number).preparation
    split = split_between_tokens if plain.keeps_tokens else split_sentences
    raw = [] if cleaned is None else split(cleaned) if plain.split_at_sentence_ends else [cleaned]
    assert found == [tokens for sentence in raw if (tokens := plain.tokens(sentence))]
    # Nothing is lost in segmenting but spaces.
    normalised = [plain.normalise(sentence) for sentence in raw]
    assert "".join("".join(tokens) for tokens in found) == "".join(normalised).replace(" ", "")


def test_by_hand() -> None:
    counts = Tally()
    prepare = preparation(0)
    assert prepare.sentences("<b>Ａ好</b>。　雨", counts) == [["A", "好", "。"], ["雨"]]
    assert prepare.sentences("\u200b", counts) == []
    assert prepare.sentences("山水。", counts) == [["山", "水", "。"]]
    assert counts.noticed[CLEANED] == Found(1, 12, ["<b>Ａ好</b>。\\u3000雨"])
    assert (counts.lines, counts.kept_characters) == (3, 15)
    assert counts.dropped["lines without a word"].characters == 1
