"""The warning that far more words are unknown than in the model's training."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from drawn_bundles import SHAPES, write_model

from elmo_zh import ElmoEmbedder, UnknownWordsWarning
from elmo_zh.bundle.read import Bundle, load_bundle
from elmo_zh.embed.unknown_rate import describe_unknown_rate, is_far_above

WORDS = ("我们", "说", "今天", "天气", "很", "好")
UNKNOWN = [["今天天气", "我们说"]] * 10


@pytest.fixture(scope="module")
def bundle(by_character: Path) -> Bundle:
    return with_training(load_bundle(by_character), {"heldout": {"oov_rate": 0.03}})


def with_training(bundle: Bundle, training: object) -> Bundle:
    return replace(bundle, info={**bundle.info, "training": training})


@pytest.mark.parametrize(
    ("num_tokens", "num_unknown", "training_rate", "expected"),
    [
        (1000, 90, 0.03, False),  # three times as many, but few
        (1000, 200, 0.03, True),
        (1000, 200, 0.2, False),
        (1000, 600, 0.2, True),
        (9, 9, 0.03, False),  # too few to tell
        (12, 12, 0.03, True),
        (14, 6, 0.0461, True),  # a Cantonese sentence and the starter
        (0, 0, 0.03, False),
        (1000, 1000, 1.0, False),
    ],
)
def test_what_is_far_above(num_tokens: int, num_unknown: int, training_rate: float, expected: bool) -> None:
    assert is_far_above(num_tokens, num_unknown, training_rate) is expected


def test_the_line_names_both_rates_and_the_most_frequent_words(bundle: Bundle) -> None:
    line = str(describe_unknown_rate(bundle, 100, 40, {"激子": 10, "超导": 20, "磁": 5, "桃": 3, "李" * 99: 2}))
    assert line.startswith("40.0% of the 100 tokens, such as 超导, 激子, 磁, are outside the model's vocabulary; 3.0% ")
    assert "李" not in line
    assert describe_unknown_rate(bundle, 100, 5, {"桃": 5}) is None


def warnings_of(attempt: Callable[[], object]) -> list[warnings.WarningMessage]:
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
    ],
)
def test_the_first_call_with_unknown_words_warns_at_its_line(
    bundle: Bundle, attempt: Callable[[ElmoEmbedder], object]
) -> None:
    embedder = ElmoEmbedder(bundle, "cpu")
    assert warnings_of(lambda: embedder.embed_tokens([WORDS] * 100)) == []
    [warning] = warnings_of(lambda: attempt(embedder))
    assert warning.category is UnknownWordsWarning
    assert str(warning.message).startswith("100.0% of the 20 tokens, such as ")
    assert ", are outside the model's vocabulary; " in str(warning.message)
    assert warning.filename == __file__
    assert warnings_of(lambda: attempt(embedder)) == []


def test_no_warning_from_a_model_that_spells_words(tmp_path: Path) -> None:
    spelling = ElmoEmbedder.load(write_model(tmp_path / "model", SHAPES["character"], words=WORDS), "cpu")
    assert warnings_of(lambda: spelling.embed_tokens(UNKNOWN)) == []
