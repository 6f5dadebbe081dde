"""The softmax's bias is fitted to the words of a text: compared with a plain version in NumPy, and its effect."""

import numpy as np
import pytest
import torch
from small_trainings import ROWS, SENTENCES, SHAPE, build_store

from elmo_zh.model import softmax
from elmo_zh.model.language_model import LanguageModel
from elmo_zh.scoring.exact import sentence_costs
from elmo_zh.training import initial_weights as calibration
from elmo_zh.training.initial_weights import calibrate_bias, expected_shares

BEGIN, END = 0, 1


def drawn_model() -> LanguageModel:
    model = LanguageModel.build(SHAPE, tie_softmax=True)
    model.initialise(5)
    with torch.no_grad():
        model.softmax.bias.normal_(0.0, 1.5, generator=torch.Generator().manual_seed(4))
    return model


def counts_of_the_text() -> np.ndarray:
    counts = np.bincount(np.concatenate(SENTENCES), minlength=ROWS).astype(np.float64)
    counts[[BEGIN, END]] = len(SENTENCES)
    return counts


@torch.no_grad()
def shares_one_by_one(model: LanguageModel) -> np.ndarray:
    """Return the mean probability of each row, from the costs of sentences in which it stands at each place."""
    store = build_store()
    total, number = np.zeros(ROWS), 0
    for sentence in SENTENCES:
        for place in range(len(sentence)):
            changed = [np.array([*sentence[:place], row, *sentence[place + 1 :]]) for row in range(ROWS)]
            costs = sentence_costs(model.bilm, model.softmax, store.lexicon, changed)
            total += sum(np.exp(-np.array([cost[direction, place] for cost in costs])) for direction in range(2))
            number += 2
    return total / number


def test_expected_shares_are_the_mean_of_all_predictions(monkeypatch: pytest.MonkeyPatch) -> None:
    model = drawn_model()
    shares = expected_shares(model, build_store()).numpy()
    assert shares.sum() == pytest.approx(1)
    # The predictions of the marks at the ends are missing in the plain version: seven of 42, in each direction.
    words = shares_one_by_one(model)
    ends = (42 * shares - 35 * words) / 7
    assert ends.sum() == pytest.approx(1)
    assert (ends > 0).all()
    monkeypatch.setattr(softmax, "MAX_EVALUATION_SCORES", 1)
    monkeypatch.setattr(softmax, "MIN_EVALUATION_ROWS", 3)
    np.testing.assert_allclose(expected_shares(model, build_store()).numpy(), shares, rtol=1e-6)


def test_the_bias_moves_by_the_log_of_what_is_over_what_is_expected() -> None:
    model, counts = drawn_model(), counts_of_the_text()
    before, expected = model.softmax.bias.detach().numpy().copy(), expected_shares(model, build_store()).numpy()
    is_new = np.zeros(ROWS, bool)
    is_new[[10, 24, 31]] = True  # seen once, seen in each sentence, never seen
    counts[31] = 0
    calibrate_bias(model, build_store(), torch.from_numpy(counts), torch.from_numpy(is_new))
    found = model.softmax.bias.detach().numpy()
    halved = counts.copy()
    halved[[BEGIN, END]] /= 2
    kinds = np.count_nonzero(halved)
    for row in range(ROWS):
        own = max(halved[row], 0.5) if is_new[row] else halved[row] + kinds * expected[row]
        share = own / (halved.sum() + kinds)
        assert found[row] - before[row] == pytest.approx(np.log(share / expected[row]), abs=1e-5), row


def test_calibrated_the_model_expects_the_words_as_often_as_they_occur() -> None:
    model, counts = drawn_model(), counts_of_the_text()
    true = counts / (counts.sum() - len(SENTENCES))
    true[[BEGIN, END]] /= 2

    def distance() -> float:
        return float(np.abs(expected_shares(model, build_store()).numpy() - true).sum())

    before = distance()
    calibrate_bias(model, build_store(), torch.from_numpy(counts), torch.ones(ROWS, dtype=torch.bool))
    assert distance() < 0.05 < before


def test_the_sample_is_of_bounded_size_and_always_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "_SAMPLE_PREDICTIONS", 13)
    model = drawn_model()
    shares = expected_shares(model, build_store())
    assert torch.equal(shares, expected_shares(model, build_store()))
    monkeypatch.setattr(calibration, "_SAMPLE_PREDICTIONS", 1000)
    assert not torch.allclose(shares, expected_shares(model, build_store()))


def test_a_row_that_the_model_never_expects_gets_a_finite_bias() -> None:
    model, counts = drawn_model(), counts_of_the_text()
    with torch.no_grad():
        model.softmax.bias[24] = -5000
    calibrate_bias(model, build_store(), torch.from_numpy(counts), torch.zeros(ROWS, dtype=torch.bool))
    assert torch.isfinite(model.softmax.bias).all()
