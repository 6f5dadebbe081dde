"""Plans of other people's text beside the truth: a sample of 2 MB, and all of it."""

from pathlib import Path

import pytest
from corpus.readers.reading import TEST_DATA, needs_data
from planning.corpora import CHARACTERS

from elmo_zh.config import TextConfig, VocabConfig
from elmo_zh.corpus.sources import find_sources
from elmo_zh.planning.coverage_curve import merged
from elmo_zh.planning.reading import SampleSize
from elmo_zh.planning.sampling import Sample, take_sample
from elmo_zh.planning.words import WordForecast, forecast_words
from elmo_zh.run.reporter import SilentReporter

pytestmark = [pytest.mark.interop, needs_data, pytest.mark.slow]

RAW = Path(TEST_DATA or ".") / "data" / "raw"
FILES = ("dialogue.txt.xz", "law_cn.txt.xz", "poetry_trad.txt.xz", "reviews.txt.xz", "wiki.txt.xz")


def segmenter() -> TextConfig:
    pytest.importorskip("rjieba")
    return TextConfig(segmenter="rjieba")


def read(path: Path, config: TextConfig, num_bytes: int, seed: int = 1) -> Sample:
    sources = find_sources([str(path)]).sources
    return take_sample(sources, config, None, SampleSize(num_bytes=num_bytes, seconds=600, seed=seed), SilentReporter())


def forecast(sample: Sample, num_tokens: float) -> WordForecast:
    blocks = [block.words() for block in sample.blocks]
    return forecast_words(blocks, num_tokens, 1.0, VocabConfig(size=20_000, min_count=2), is_all=sample.is_all)


@pytest.mark.parametrize("name", FILES)
def test_the_truth_lies_in_the_intervals(name: str) -> None:
    config = segmenter()
    truth, sample = read(RAW / name, config, 10**9), read(RAW / name, config, 2**21)
    assert truth.is_all
    assert not sample.is_all
    totals, exact = sample.totals(), truth.totals()
    assert totals["tokens"].value == pytest.approx(exact["tokens"].value, rel=0.01)
    found = forecast(sample, totals["tokens"].value)
    counts = merged(block.words() for block in truth.blocks)
    assert found.distinct.holds(len(counts)), found.distinct
    assert found.distinct.value == pytest.approx(len(counts), rel=0.08)
    known = forecast(truth, exact["tokens"].value)
    assert abs(found.coverage.value - known.coverage.value) < 0.012
    for size in (1_000, 5_000, 10_000):
        value, low, high = found.curve.at(size)
        expected = known.curve.at(size)[0]
        assert low <= expected <= high, size
        assert abs(value - expected) < 0.012


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_a_folder_of_everything(seed: int) -> None:
    """Eleven files, packed: text of eleven fields in which an interval from one field would be far off."""
    totals = read(RAW, CHARACTERS, 2**21, seed).totals()
    # data/README.md of that folder, in millions, by file.
    truth = 1e6 * (10.26 + 4.56 + 4.92 + 3.67 + 3.11 + 2.51 + 1.44 + 1.41 + 1.17 + 1.01 + 0.86)
    assert totals["characters"].holds(truth, rounding=1e5)
    assert totals["characters"].value == pytest.approx(truth, rel=0.005)
    assert totals["tokens"].value == pytest.approx(truth, rel=0.02)


def test_a_small_folder_of_all_formats() -> None:
    """18 files, among them the same text packed in two ways."""
    pytest.importorskip("lxml")
    pytest.importorskip("mwparserfromhell")
    folder = Path(TEST_DATA or ".") / "data" / "formats"
    sample, truth = read(folder, segmenter(), 2**21), read(folder, segmenter(), 10**9)
    assert not sample.is_all
    totals, exact = sample.totals(), truth.totals()
    assert totals["documents"] == exact["documents"]
    assert totals["characters"] == exact["characters"]
    for name in ("kept_characters", "sentences", "tokens"):
        assert totals[name].holds(exact[name].value), name
        assert totals[name].value == pytest.approx(exact[name].value, rel=0.03), name
