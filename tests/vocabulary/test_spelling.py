"""The cost of spelling an unknown word."""

import math
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from messages import message_of

from elmo_zh.errors import BundleError
from elmo_zh.vocabulary.spelling import END_OF_WORD, UNICODE_CHARACTERS, SpellingModel, load_spelling_model

# Without U+FEFF, the byte order mark, of which there is an example.
WORDS = st.dictionaries(
    st.text(st.characters(codec="utf-8", exclude_characters=" \ufeff"), min_size=1, max_size=5),
    st.integers(1, 31),
    max_size=7,
)


def test_counts_and_costs_worked_out_by_hand() -> None:
    model = SpellingModel.build({"苹果": 3, "果果": 2})
    assert model.counts == {"苹": 3, "果": 7, END_OF_WORD: 5}
    # 15 counted symbols, plus one for each of three symbols and one for all unseen ones: 19 slots.
    assert model.nats("苹") == pytest.approx(-math.log(4 / 19) - math.log(6 / 19))
    assert model.nats("果苹果") == pytest.approx(-2 * math.log(8 / 19) - math.log(4 / 19) - math.log(6 / 19))
    assert model.nats("花") == pytest.approx(-math.log(1 / 19 / 1_112_064) - math.log(6 / 19))
    assert model.nats("") == pytest.approx(-math.log(6 / 19))


@settings(deadline=None, max_examples=101)
@given(WORDS)
def test_probabilities_sum_to_one(words: dict[str, int]) -> None:
    model = SpellingModel.build(words)
    end = model.nats("")
    seen = sorted(symbol for symbol in model.counts if symbol != END_OF_WORD)
    unseen = next(chr(code) for code in range(0x4E00, 0xA000) if chr(code) not in model.counts)
    finite = math.exp(-end) + sum(math.exp(end - model.nats(symbol)) for symbol in seen)
    slot = math.exp(end - model.nats(unseen)) * UNICODE_CHARACTERS
    assert finite + slot == pytest.approx(1.0)
    assert slot > 0


@settings(deadline=None, max_examples=101)
@given(WORDS, st.text(st.characters(codec="utf-8"), max_size=7))
@example({"\t\n\r\\": 3, "\\t": 2, "\\\\": 5}, "\t\\")
@example({"\u2028\x85\u3000": 7}, "\u2028")
@example({"\ufeff\ufeff": 3}, "\ufeff")
def test_the_file_comes_back(tmp_path_factory: pytest.TempPathFactory, words: dict[str, int], word: str) -> None:
    path = tmp_path_factory.mktemp("spelling") / "character_counts.tsv"
    model = SpellingModel.build(words)
    model.save(path)
    loaded = load_spelling_model(path)
    assert loaded.counts == dict(model.counts)
    assert loaded.nats(word) == pytest.approx(model.nats(word))


def test_the_file_byte_by_byte(tmp_path: Path) -> None:
    path = tmp_path / "character_counts.tsv"
    SpellingModel.build({"苹果": 3, "果\t": 2, "\\": 1}).save(path)
    assert path.read_bytes() == "</W>\t6\n果\t5\n苹\t3\n\\t\t2\n\\\\\t1\n".encode()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("果\t3\n", "the line for </W> is missing"),
        ("", "the line for </W> is missing"),
        ("</W>\t3\n苹果\t2\n", "line 2)"),
        ("</W>\t3\n果 2\n", "line 2)"),
        ("</W>\t3\n果\t-2\n", "line 2)"),
        ("</W>\t3\n果\t", "line 2)"),
    ],
)
def test_files_that_are_no_spelling_model(tmp_path: Path, content: str, problem: str) -> None:
    path = tmp_path / "character_counts.tsv"
    path.write_text(content, encoding="utf-8")
    assert message_of(BundleError, lambda: load_spelling_model(path)).startswith(f"{path} is damaged ({problem}")
