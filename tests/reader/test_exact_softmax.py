"""Exact costs against plain formulas in float64."""

import numpy as np
import pytest

from elmo_zh.reader import softmax
from elmo_zh.reader.softmax import log_sums, target_scores

WORDS, WIDTH, ROWS = 29, 5, 13


@pytest.mark.parametrize("scores", [1, 3 * WORDS, 10**9])
def test_exact_costs_in_any_blocks(scores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(softmax, "BLOCK_SCORES", scores)
    monkeypatch.setattr(softmax, "MIN_BLOCK_ROWS", 1)
    draw = np.random.default_rng(3)
    # Scores of several hundred, whose exponentials no float32 holds.
    hidden, weight, bias = (
        draw.normal(0, 9, shape).astype(np.float32) for shape in ((ROWS, WIDTH), (WORDS, WIDTH), WORDS)
    )
    targets = draw.integers(0, WORDS, ROWS)
    logits = hidden.astype(np.float64) @ weight.T + bias
    sums = np.log(np.exp(logits - logits.max(axis=1, keepdims=True)).sum(axis=1)) + logits.max(axis=1)
    np.testing.assert_allclose(log_sums(hidden, weight, bias), sums, rtol=1e-6)
    np.testing.assert_allclose(
        target_scores(hidden, weight, bias, targets), logits[np.arange(ROWS), targets], rtol=1e-6
    )
    assert log_sums(hidden[:0], weight, bias).shape == (0,)
