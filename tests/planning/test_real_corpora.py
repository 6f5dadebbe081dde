"""Plans of other people's text beside the truth: a sample of 2 MB, and all of it."""

from pathlib import Path

import pytest
from corpus.readers.reading import TEST_DATA, needs_data
from planning.corpora import CHARACTERS, figures_of, sample_of

from elmo_zh.config import TextConfig

pytestmark = [pytest.mark.interop, needs_data, pytest.mark.slow]

RAW = Path(TEST_DATA or ".") / "data" / "raw"
KINDS = (
    "history_modern", "wiki", "news", "novels", "tech", "law_cn", "classical", "dialogue", "law_tw_trad", "reviews",
    "poetry_trad",
)  # fmt: skip
FILES = ("dialogue.txt.xz", "law_cn.txt.xz", "poetry_trad.txt.xz", "reviews.txt.xz", "wiki.txt.xz")


def segmenter() -> TextConfig:
    pytest.importorskip("rjieba")
    return TextConfig(segmenter="rjieba")


@pytest.mark.parametrize("name", FILES)
def test_a_corpus_of_one_kind(name: str) -> None:
    found, truth = (figures_of(RAW / name, text=segmenter(), megabytes=size) for size in (2, 1000))
    for figure, error in (("characters", 0), ("tokens", 0.02), ("sentences", 0.03), ("distinct_words", 0.1)):
        assert found[figure] == pytest.approx(truth[figure], rel=error), figure
    assert found["coverage"] == pytest.approx(truth["coverage"], abs=0.012)
    assert found["bytes.segmented"] == pytest.approx(truth["bytes.segmented"], rel=0.08)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_folder_of_everything(seed: int) -> None:
    """Eleven files, packed: text of eleven kinds."""
    found = sample_of(*(RAW / f"{name}.txt.xz" for name in KINDS), megabytes=2, seconds=600, seed=seed)
    # data/README.md of that folder, in millions, from the largest file to the smallest.
    truth = 1e6 * (10.26 + 4.56 + 4.92 + 3.67 + 3.11 + 2.51 + 1.44 + 1.41 + 1.17 + 1.01 + 0.86)
    assert found.totals["characters"] == pytest.approx(truth, rel=0.005)


def test_a_small_folder_of_all_formats() -> None:
    """18 files, among them the same text packed in two ways."""
    pytest.importorskip("lxml")
    pytest.importorskip("mwparserfromhell")
    folder = Path(TEST_DATA or ".") / "data" / "formats"
    found, truth = (figures_of(folder, text=CHARACTERS, megabytes=size) for size in (2, 1000))
    assert (found["documents"], found["characters"]) == (truth["documents"], truth["characters"])
    for name in ("kept_characters", "sentences", "tokens"):
        assert found[name] == pytest.approx(truth[name], rel=0.05), name
