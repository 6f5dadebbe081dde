"""The warning that far more words are unknown than in the model's training, and the reason that it gives."""

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from drawn_bundles import SHAPES, TOKENS, write_model

from elmo_zh import ElmoEmbedder, UnknownWordsWarning
from elmo_zh.bundle.read import Bundle, load_bundle
from elmo_zh.embed.unknown_rate import describe_unknown_rate, is_far_above, training_unknown_rate

WORDS = ("我们", "说", "这", "会", "国", "对", "学", "还", "过", "经", "问", "样", "今天", "天气", "很", "好")
KNOWN = ["我们", "说", "今天", "天气", "很", "好"]


@pytest.fixture(scope="module")
def bundle(by_character: Path) -> Bundle:
    return with_rate(load_bundle(by_character))


def with_rate(bundle: Bundle, rate: Any = 0.03) -> Bundle:
    return replace(bundle, info={**bundle.info, "training": {"heldout": {"oov_rate": rate}}})


@pytest.fixture
def embedder(bundle: Bundle) -> ElmoEmbedder:
    return ElmoEmbedder(bundle, "cpu")


def describe(bundle: Bundle, words: Sequence[str], *, segmented: bool = True) -> str | None:
    assert bundle.vocabulary is not None
    unknown = [word for word in words if word not in bundle.vocabulary]
    return describe_unknown_rate(bundle, len(words), len(unknown), Counter(unknown), segmented=segmented)


# The judgement


@pytest.mark.parametrize(
    ("num_tokens", "num_unknown", "training_rate", "expected"),
    [
        (1000, 90, 0.03, False),  # three times as many, but few
        (1000, 200, 0.03, True),
        (1000, 200, 0.2, False),
        (1000, 600, 0.2, True),
        (1000, 200, None, False),
        (1000, 400, None, True),
        (9, 9, 0.03, False),  # too few to tell
        (12, 12, 0.03, True),
        (14, 6, 0.0461, True),  # a Cantonese sentence and the starter
        (0, 0, 0.03, False),
        (1000, 0, 0.0, False),
        (1000, 1000, 1.0, False),
    ],
)
def test_what_is_far_above(num_tokens: int, num_unknown: int, training_rate: float | None, expected: bool) -> None:
    assert is_far_above(num_tokens, num_unknown, training_rate) is expected


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        ({"training": {"heldout": {"oov_rate": 0.25}}}, 0.25),
        ({"training": {"heldout": None}}, None),
        ({"training": {"heldout": {"oov_rate": "high"}}}, None),
        ({"training": {"heldout": {"oov_rate": 7}}}, None),
        ({}, None),
    ],
)
def test_the_rate_of_the_training(info: dict[str, Any], expected: float | None) -> None:
    assert training_unknown_rate(info) == expected


# The line


def test_the_line_names_both_rates(bundle: Bundle) -> None:
    words = KNOWN * 10 + ["激子", "超导"] * 20
    assert describe(bundle, words, segmented=False) == (
        "40.0% of the 100 tokens are outside the model's vocabulary; the share in the model's held-out text is 3.0%."
        " Most unknown tokens consist of characters that the model's vocabulary lacks (激子, 超导): the text is"
        " probably in another language or script."
    )
    assert "the share in the training text is not known" in str(describe(with_rate(bundle, None), words))
    assert describe(with_rate(bundle, 0.3), words) is None
    assert describe(bundle, KNOWN * 10) is None


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (
            ["今天天气很好我们说这", "这样说我们还过得好好的呢"],
            "Most unknown tokens are too long to be words (今天天气很好我们说这, 这样说我们还过得好好的呢). Give raw"
            " text, or segment it with character.",
        ),
        (
            ["我們", "說"],
            "The text is in traditional characters (我們, 說), but the model was trained on simplified ones. Convert"
            " the text first, for example with OpenCC, or train a model with text.script=simplified.",
        ),
        (["船舶", "應", "記載", "條約"], "The text is in traditional characters (應, 記載, 條約), but the model"),
        (["Hello", "2024"], "Almost no unknown token is Chinese (Hello, 2024), but the model was trained on Chinese."),
        (
            ["今天天气", "我们说"],
            "Most unknown tokens consist of words that the model knows (今天天气, 我们说). Segment the text as"
            " in training, with character.",
        ),
        (
            ["天说", "很国"],
            "The text is probably from a different domain than the model's training text (unknown words: 天说, 很国).",
        ),
    ],
)
def test_the_likely_reason(bundle: Bundle, words: list[str], reason: str) -> None:
    line = describe(bundle, [*KNOWN, *words * 10])
    assert line is not None
    assert f"is 3.0%. {reason}" in line


def test_the_models_own_segmenter_is_no_reason(bundle: Bundle) -> None:
    for words in (["今天天气", "我们说"], ["今天天气很好我们说这"]):
        assert "a different domain" in str(describe(bundle, words * 10, segmented=False))


def test_simplified_text_for_a_model_of_traditional_text(tmp_path: Path) -> None:
    words = ("我們", "說", "這", "會", "國", "對", "學", "還", "過", "經", "問", "樣")
    traditional = with_rate(load_bundle(write_model(tmp_path / "model", TOKENS, words=words)))
    assert "The text is in simplified characters (我们, 说)" in str(describe(traditional, ["我们", "说"] * 10))


# The warning

UNKNOWN = [["今天天气", "我们说"]] * 10


def warnings_of(attempt: Any) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        attempt()
    return caught


@pytest.mark.parametrize(
    "attempt",
    [
        lambda embedder: embedder.embed_tokens(UNKNOWN),
        lambda embedder: embedder.embed(["齉龘" * 10]),
        lambda embedder: list(embedder.embed_iter(UNKNOWN)),
        lambda embedder: embedder.embed_torch(["齉龘" * 10]),
        lambda embedder: embedder.outputs(["Hello world"] * 10),
    ],
)
def test_the_first_call_with_unknown_words_warns_at_its_line(embedder: ElmoEmbedder, attempt: Any) -> None:
    """A loop over batches would warn in each call, with other figures each time."""
    embedder = ElmoEmbedder(embedder.bundle, "cpu")
    assert warnings_of(lambda: embedder.embed_tokens([KNOWN] * 100)) == []
    [warning] = warnings_of(lambda: attempt(embedder))
    assert warning.category is UnknownWordsWarning
    assert "100.0% of the 20 tokens are outside the model's vocabulary" in str(warning.message)
    assert warning.filename == __file__
    assert warnings_of(lambda: attempt(embedder)) == []
    assert warnings_of(lambda: embedder.embed_tokens(UNKNOWN)) == []


def test_a_stream_warns_once(embedder: ElmoEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elmo_zh.text.windows.WINDOW_ITEMS", 3)
    [warning] = warnings_of(lambda: list(ElmoEmbedder(embedder.bundle, "cpu").embed_iter(UNKNOWN)))
    assert "of the 12 tokens" in str(warning.message)


def test_no_warning_where_words_are_known_or_spelled(embedder: ElmoEmbedder, tmp_path: Path) -> None:
    assert warnings_of(lambda: embedder.embed_tokens([KNOWN] * 10)) == []
    spelling = ElmoEmbedder.load(write_model(tmp_path / "model", SHAPES["character"], words=WORDS), "cpu")
    assert warnings_of(lambda: spelling.embed_tokens(UNKNOWN)) == []
