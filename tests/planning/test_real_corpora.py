"""Plans of other people's text beside the truth: a sample of 2 MB, and all of it."""

from pathlib import Path

import pytest
from corpus.readers.reading import TEST_DATA, needs_data
from planning.corpora import CHARACTERS

from elmo_zh.config import TextConfig, VocabConfig
from elmo_zh.corpus.sources import find_sources
from elmo_zh.planning.coverage import merged
from elmo_zh.planning.pieces import take_pieces
from elmo_zh.planning.plan import _totals
from elmo_zh.planning.portions import find_portions
from elmo_zh.planning.sampling import Sample, segment_pieces
from elmo_zh.planning.words import WordForecast, forecast_words
from elmo_zh.run.reporter import SilentReporter

pytestmark = [pytest.mark.interop, needs_data, pytest.mark.slow]

RAW = Path(TEST_DATA or ".") / "data" / "raw"
FILES = ("dialogue.txt.xz", "law_cn.txt.xz", "poetry_trad.txt.xz", "reviews.txt.xz", "wiki.txt.xz")


def segmenter() -> TextConfig:
    pytest.importorskip("rjieba")
    return TextConfig(segmenter="rjieba")


def read(path: Path, config: TextConfig, num_bytes: int) -> Sample:
    portions = find_portions(find_sources([str(path)]).sources)
    pieces = take_pieces(portions, num_bytes, 600, 1)
    return segment_pieces(pieces, len(portions), config, None, 600, 1, SilentReporter())


def forecast(sample: Sample, num_tokens: float) -> WordForecast:
    blocks = [block.words() for block in sample.blocks]
    return forecast_words(blocks, num_tokens, 1.0, VocabConfig(size=20_000, min_count=2), is_all=sample.is_all)


@pytest.mark.parametrize("name", FILES)
def test_the_truth_lies_in_the_intervals(name: str) -> None:
    config = segmenter()
    truth, sample = read(RAW / name, config, 10**9), read(RAW / name, config, 2**21)
    assert truth.is_all
    assert not sample.is_all
    totals, exact = _totals(sample), _totals(truth)
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
def test_characters_of_a_folder_of_everything(seed: int) -> None:
    """Eleven files, packed: text of eleven fields in which an interval from one field would be far off."""
    portions = find_portions(find_sources([str(RAW)]).sources)
    pieces = take_pieces(portions, 2**21, 600, seed)
    sample = segment_pieces(pieces, len(portions), CHARACTERS, None, 600, seed, SilentReporter())
    found = _totals(sample)["characters"]
    # data/README.md of that folder, in millions, by file.
    truth = 1e6 * (10.26 + 4.56 + 4.92 + 3.67 + 3.11 + 2.51 + 1.44 + 1.41 + 1.17 + 1.01 + 0.86)
    assert found.holds(truth, rounding=1e5), found
    assert found.value == pytest.approx(truth, rel=0.05)
