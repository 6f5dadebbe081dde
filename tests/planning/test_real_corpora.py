"""Plans of other people's text beside the truth: a sample of 2 MB, and all of it."""

from pathlib import Path

import pytest
from corpus.readers.reading import TEST_DATA, needs_data
from planning.corpora import plan_of

from elmo_zh.config import TextConfig

pytestmark = [pytest.mark.interop, needs_data, pytest.mark.slow]

RAW = Path(TEST_DATA or ".") / "data" / "raw"
FILES = ("dialogue.txt.xz", "law_cn.txt.xz", "poetry_trad.txt.xz", "reviews.txt.xz", "wiki.txt.xz")


def segmenter() -> TextConfig:
    pytest.importorskip("rjieba")
    return TextConfig(segmenter="rjieba")


@pytest.mark.parametrize("name", FILES)
def test_a_corpus_of_one_kind(name: str) -> None:
    plan, truth = (plan_of(RAW / name, text=segmenter(), megabytes=size) for size in (2, 1000))
    for figure, error in (("characters", 0), ("tokens", 0.02), ("sentences", 0.03), ("distinct_words", 0.1)):
        assert plan["figures"][figure] == pytest.approx(truth["figures"][figure], rel=error), figure
    assert plan["coverage"] == pytest.approx(truth["coverage"], abs=0.012)
    assert plan["stages"]["segment"]["bytes"] == pytest.approx(truth["stages"]["segment"]["bytes"], rel=0.08)
