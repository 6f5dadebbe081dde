"""One pass over segmented text, and what looks odd in it."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmo_zh.corpus.cleaning.line_counts import visible
from elmo_zh.inspection import Shown
from elmo_zh.inspection.inspect_run import find_oddities
from elmo_zh.inspection.segmented_text import (
    KINDS,
    KindCounts,
    OddCounts,
    TextSurvey,
    kind_of,
    kind_of_token,
    survey_segmented,
)
from elmo_zh.run.reporter import SilentReporter
from elmo_zh.vocabulary.vocabulary import BoundedCounts

LINES = ["我 爱 北京 。", "他 也 爱 北京 。", "hello 12 。", ""]


def survey(tmp_path: Path, lines: list[str], *, samples: int = 2, seed: int = 1, most: int = 1000) -> TextSurvey:
    path = tmp_path / "train-00000.txt"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return survey_segmented([path], Shown(num_samples=samples, num_tokens=3, seed=seed), SilentReporter(), most)


def test_by_hand(tmp_path: Path) -> None:
    found = survey(tmp_path, LINES)
    assert (found.num_sentences, found.num_tokens) == (4, 12)
    assert dict(found.tokens.counts.most_common(3)) == {"。": 3, "北京": 2, "爱": 2}
    assert found.longest[:2] == ["hello", "北京"]
    assert found.single_han_tokens == 5
    assert found.kinds.tokens == Counter({"Han": 7, "punctuation": 3, "Latin": 1, "digits": 1})
    assert found.kinds.characters.total() == sum(len(line.replace(" ", "")) for line in LINES)
    assert found.length_quantiles() == {
        "1%": 0, "10%": 0, "25%": 0, "50%": 3, "75%": 4, "90%": 5, "99%": 5, "100%": 5,
    }  # fmt: skip


def test_bounded_memory_changes_no_share(tmp_path: Path) -> None:
    lines = [f"词{number} 的 {number}" for number in range(200)]
    assert survey(tmp_path, lines, most=5).kinds.fractions() == survey(tmp_path, lines).kinds.fractions()
    assert survey(tmp_path, lines, most=10).tokens.counts.most_common(1) == [("的", 200)]


def test_samples_are_chosen_by_the_seed_and_fairly(tmp_path: Path) -> None:
    lines = [f"第 {number} 句" for number in range(20)]
    assert survey(tmp_path, lines).sentences == survey(tmp_path, lines).sentences
    chosen = Counter(line for seed in range(400) for line in survey(tmp_path, lines, seed=seed).sentences)
    assert set(chosen) == set(lines)
    assert max(chosen.values()) < 80  # 40 each, on average
    assert survey(tmp_path, lines, samples=0).sentences == []


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("花 \ufffd \ufffd 开", "sentences with U+FFFD"),
        ("ä¸­ æ–‡", "sentences that look wrongly decoded"),
        ("这 是 锟斤拷 锟斤拷", "sentences that look wrongly decoded"),
        ("烫 烫 烫 烫", "sentences that look wrongly decoded"),
        ("图标 \ue001 。", "sentences with private-use characters"),
    ],
)
def test_signs_of_wrong_decoding(line: str, kind: str) -> None:
    odd = OddCounts()
    odd.check_decoding(line)
    assert dict(odd.counts) == {kind: 1}
    assert odd.examples[kind] in visible(line)


@pytest.mark.parametrize("line", ["café naïve Zürich Ångström", "很 烫 。 烫 手", "Müller 先生 说", "汉字 。", "plain"])
def test_sound_text_is_not_odd(line: str) -> None:
    odd = OddCounts()
    odd.check_decoding(line)
    assert not odd.counts


def oddities(found: TextSurvey | None, **more: object) -> dict[str, object]:
    arguments: dict[str, object] = {"sources": {}, "counts": {}, "coverage": None, **more}
    return {oddity["what"]: oddity["count"] for oddity in find_oddities(found, **arguments)}  # type: ignore[arg-type]


def test_what_is_odd_in_text(tmp_path: Path) -> None:
    sound = survey(tmp_path, ["我们 爱 北京 的 秋天 。"] * 3)
    assert oddities(sound, counts={"heldout_tokens": 1, "train_tokens": 99}, coverage=0.95) == {}
    copies = ["本站 声明 ： 请 勿 转载 。"] * 25
    found = survey(tmp_path, [*copies, "a" * 30, "词 " * 301 + "。", "山 水 花 鸟 鱼 虫 。"])
    assert oddities(found) == {
        "long sentences": 1,
        "long tokens": 1,
        "sentences that occur again and again": 25,
        "share of single-character tokens is high": pytest.approx(0.715, abs=0.05),
    }
    english = survey(tmp_path, ["hello world"])
    assert oddities(english) == {"share of Han characters is low": 0.0}


def test_what_is_odd_of_sources_and_split() -> None:
    def source(characters: int, kept: int) -> dict[str, int]:
        return {"characters": characters, "kept_characters": kept}

    found = oddities(
        None,
        sources={"a": source(10, 0), "b": source(10, 2), "c": source(10, 9)},
        counts={"heldout_tokens": 1, "train_tokens": 99_999},
        coverage=0.8,
    )
    assert found == {
        "sources from which no text was kept": 1,
        "sources with most of their text left out": 1,
        "unusual share of held-out tokens": 0.00001,
        "tokens outside the vocabulary, which is full": 0.2,
    }
    assert oddities(None, coverage=0.8, is_vocabulary_full=False) == {"tokens too rare for the vocabulary": 0.2}


@pytest.mark.parametrize(
    ("characters", "kind"),
    [
        ("山〇㐀豈𠀀", "Han"),
        ("aZéＡ", "Latin"),
        ("09０٣", "digits"),
        ("，。！.-+$·", "punctuation"),
        ("あЖ한\u200b\ufffd"[:4], "other"),
    ],
)
def test_characters(characters: str, kind: str) -> None:
    assert {kind_of(character) for character in characters} == {kind}


@pytest.mark.parametrize(
    ("token", "kind"),
    [("卡拉OK", "Han"), ("3G", "Latin"), ("2021", "digits"), ("3.5", "digits"), ("……", "punctuation"), ("あ", "other")],
)
def test_tokens(token: str, kind: str) -> None:
    assert kind_of_token(token) == kind


def test_shares_by_hand_add_up_to_one() -> None:
    counts = KindCounts()
    counts.add("卡拉OK", 2)
    counts.add("。", 1)
    counts.add("12", 1)
    shares = counts.fractions()
    assert shares["tokens"] == {"Han": 0.5, "Latin": 0, "digits": 0.25, "punctuation": 0.25, "other": 0}
    assert shares["characters"] == pytest.approx(
        {"Han": 4 / 11, "Latin": 4 / 11, "digits": 2 / 11, "punctuation": 1 / 11, "other": 0}
    )
    assert all(sum(each.values()) == pytest.approx(1) for each in shares.values())
    assert KindCounts().fractions() == {what: dict.fromkeys(KINDS, 0.0) for what in ("tokens", "characters")}


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
