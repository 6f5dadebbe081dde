"""One pass over segmented text, and what looks odd in it and in the records of a run."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmo_zh.corpus.cleaning.line_counts import shortened
from elmo_zh.info.runs import findings_of_records
from elmo_zh.info.text_survey import KINDS, Finding, TextSurvey, kind_of_character
from elmo_zh.run.reporter import SilentReporter
from elmo_zh.vocabulary.vocabulary import BoundedCounts

LINES = ["我 爱 北京 。", "他 也 爱 北京 。", "hello 12 。", ""]


def survey(tmp_path: Path, lines: list[str], most: int = 1000) -> TextSurvey:
    path = tmp_path / "train-00000.txt"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return TextSurvey.of_files([path], SilentReporter(), most)


def test_by_hand(tmp_path: Path) -> None:
    found = survey(tmp_path, LINES)
    assert (found.num_sentences, found.num_tokens, found.single_han_tokens) == (4, 12, 5)
    assert dict(found.tokens.counts.most_common(3)) == {"。": 3, "北京": 2, "爱": 2}
    assert found.longest_tokens()[:2] == ["hello", "北京"]
    assert found.characters == Counter({"Han": 9, "Latin": 5, "punctuation": 3, "digits": 2})
    assert found.length_quantiles() == {
        "1%": 0, "10%": 0, "25%": 0, "50%": 3, "75%": 4, "90%": 5, "99%": 5, "100%": 5,
    }  # fmt: skip
    assert sum(found.shares().values()) == pytest.approx(1)
    assert survey(tmp_path, []).shares() == dict.fromkeys(KINDS, 0.0)


def test_coverage_by_hand(tmp_path: Path) -> None:
    """1,001 words once each, and the first of them twice as often."""
    words = [f"词{number}" for number in range(1001)]
    described = survey(tmp_path, [" ".join([*words, words[0]])], most=5000).described()
    assert described["coverage"] == {"1,000": round(1001 / 1002, 4)}
    assert described["most_frequent"][words[0]] == 2


def test_bounded_memory_changes_no_share(tmp_path: Path) -> None:
    lines = [f"词{number} 的 {number}" for number in range(200)]
    assert survey(tmp_path, lines, most=5).shares() == survey(tmp_path, lines).shares()
    assert survey(tmp_path, lines, most=10).tokens.counts.most_common(1) == [("的", 200)]


def test_samples_are_chosen_fairly() -> None:
    lines = [f"第 {number} 句" for number in range(20)]
    chosen = Counter[str]()
    for seed in range(400):
        found = TextSurvey(random=Random(seed))
        for line in lines:
            found.add(line.split(" "))
        chosen.update(found.samples)
    assert set(chosen) == set(lines)
    assert max(chosen.values()) < 150  # 100 each, on average


@pytest.mark.parametrize("line", ["花 \ufffd \ufffd 开", "ä¸­ æ–‡", "这 是 锟斤拷 锟斤拷", "图标 \ue001 。"])
def test_signs_of_wrong_decoding(line: str) -> None:
    """Between tokens, as they are after segmenting."""
    found = TextSurvey()
    found.add(line.split(" "))
    assert (found.num_unreadable, found.unreadable) == (1, shortened(line))


@pytest.mark.parametrize("line", ["café naïve Zürich Ångström", "很 烫 。 烫 手", "Müller 先生 说", "汉字 。", "plain"])
def test_sound_text_is_not_odd(line: str) -> None:
    found = TextSurvey()
    found.add(line.split(" "))
    assert not found.num_unreadable


def counts_of(findings: Iterable[Finding]) -> dict[str, float]:
    return {finding.what: finding.count for finding in findings}


def test_what_is_odd_in_text(tmp_path: Path) -> None:
    assert counts_of(survey(tmp_path, ["我们 爱 北京 的 秋天 。"] * 3).findings()) == {}
    copies = ["本站 声明 ： 请 勿 转载 。"] * 25
    found = survey(tmp_path, [*copies, "a" * 30, "词 " * 301 + "。", "山 水 花 鸟 鱼 虫 。"])
    assert counts_of(found.findings()) == {
        "long sentences": 1,
        "sentences that occur again and again": 25,
        "share of single-character tokens is high": pytest.approx(0.715, abs=0.05),
    }
    assert counts_of(survey(tmp_path, ["hello world"]).findings()) == {"share of Han characters is low": 0.0}


def test_what_is_odd_in_records() -> None:
    def source(characters: int, kept: int) -> dict[str, int]:
        return {"characters": characters, "kept_characters": kept}

    records: dict[str, dict[str, Any]] = {
        "segment": {
            "sources": {"a": source(10, 0), "b": source(10, 2), "c": source(10, 9)},
            "counts": {"heldout_tokens": 1, "train_tokens": 99_999},
        },
        "vocab": {"counts": {"coverage": 0.8}},
    }
    assert counts_of(findings_of_records(records)) == {
        "sources with most of their text left out": 2,
        "unusual share of held-out tokens": 0.00001,
        "tokens outside the vocabulary": 0.2,
    }
    sound = {"segment": {"counts": {"heldout_tokens": 1, "train_tokens": 99}}, "vocab": {"counts": {"coverage": 0.95}}}
    assert counts_of(findings_of_records(sound)) == counts_of(findings_of_records({})) == {}


@pytest.mark.parametrize(
    ("characters", "kind"),
    [
        ("山〇㐀豈𠀀", "Han"),
        ("aZéＡ", "Latin"),
        ("09０٣", "digits"),
        ("，。！.-+$·", "punctuation"),
        ("あЖ한\u200b", "other"),
    ],
)
def test_characters(characters: str, kind: str) -> None:
    assert {kind_of_character(character) for character in characters} == {kind}


@given(st.lists(st.text("abcdefgh", min_size=1, max_size=2), max_size=200), st.integers(1, 5))
def test_nothing_is_lost_on_the_whole_and_nothing_counted_too_high(things: list[str], most: int) -> None:
    gone: Counter[str] = Counter()
    counts = BoundedCounts[str](2 * most, lambda thing, count: gone.update({thing: count}))
    for thing in things:
        counts.add([thing])
    kept = dict(counts.counts)
    truth = Counter(things)
    assert len(kept) <= 2 * most
    assert Counter(kept) + gone == truth
    assert all(count <= truth[thing] for thing, count in kept.items())
