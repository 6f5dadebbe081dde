"""Words that the vocabulary refuses, by `vocab.refuse`."""

from pathlib import Path

import pytest
from vocabulary.test_vocabulary import build, segmented

from elmo_zh.config import VocabConfig
from elmo_zh.vocabulary.vocabulary import SPECIALS, UNKNOWN_ID

PRIVATE = ["13812345678", "1234567", "a1234567b", "１２３４５６７", "me@mail.example"]
FREE = ["123456", "2024", "@", "163.com", "好@", "苹果"]


@pytest.mark.parametrize(("refuse", "refused"), [(VocabConfig.refuse, PRIVATE), ("", []), ("果", ["苹果"])])
def test_refused_words_become_unknown_and_are_counted(tmp_path: Path, refuse: str, refused: list[str]) -> None:
    lines = [" ".join([*PRIVATE, *FREE])] * 3
    built = build(segmented(tmp_path, lines), min_count=2, refuse=refuse)
    assert set(built.vocabulary.tokens) == {*SPECIALS, *PRIVATE, *FREE} - set(refused)
    assert built.num_refused == len(refused)
    assert built.counts[UNKNOWN_ID] == 3 * len(refused)


def test_words_that_are_given_are_not_refused(tmp_path: Path) -> None:
    built = build(segmented(tmp_path, ["1234567 7654321 好"] * 2), ["1234567"])
    assert set(built.vocabulary.tokens) == {*SPECIALS, "1234567", "好"}
    assert (built.num_refused, built.num_left_out) == (1, 0)


def test_rare_words_are_not_counted_as_refused(tmp_path: Path) -> None:
    assert build(segmented(tmp_path, ["1234567 好 好"]), min_count=2).num_refused == 0


def test_a_wrong_expression_is_named() -> None:
    (told,) = VocabConfig(refuse="(").problems()
    assert told.startswith("vocab.refuse = '(' is not a regular expression (")
