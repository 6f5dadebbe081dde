"""Vectors of tokens joined with the characters of their line."""

from typing import Any

import numpy as np
import pytest
from messages import refusal_of

from elmo_zh import pool_spans

# Three tokens in a line of 7 characters: the first and the second meet in character 2; nothing is in 4 and 6.
OFFSETS = np.array([(0, 3), (2, 4), (5, 6)], np.int32)
VECTORS = np.array([(1, 10), (3, -30), (5, 50)], np.float32)
LAYERS = np.stack([VECTORS, 2 * VECTORS, -VECTORS])
SPANS = [(0, 2), (2, 3), (3, 6), (4, 5), (0, 7), (5, 5), (6, 99)]


def test_spans_pool_the_tokens_that_share_characters() -> None:
    expected = [[1, 10], [2, -10], [4, 10], [0, 0], [3, 10], [0, 0], [0, 0]]
    found = pool_spans(VECTORS.astype(np.float16), OFFSETS, SPANS)
    assert found.tolist() == expected
    assert found.dtype == np.float32
    in_layers = pool_spans(LAYERS, OFFSETS, np.array(SPANS))
    assert in_layers.shape == (3, len(SPANS), 2)
    assert in_layers[0].tolist() == expected
    assert in_layers[2].tolist() == pool_spans(-VECTORS, OFFSETS, SPANS).tolist()


def test_a_span_of_one_character_has_the_vector_of_its_token() -> None:
    characters = [(place, place + 1) for place in range(7)]
    found = pool_spans(VECTORS, OFFSETS, characters)
    assert found.tolist() == [[1, 10], [1, 10], [2, -10], [3, -30], [0, 0], [5, 50], [0, 0]]


def test_no_spans_and_no_tokens() -> None:
    assert pool_spans(LAYERS, OFFSETS, []).shape == (3, 0, 2)
    assert pool_spans(np.zeros((0, 2)), [], [(0, 3)]).tolist() == [[0, 0]]
    # A token without characters is in no span, wherever it stands.
    assert pool_spans(VECTORS, [(0, 0), (0, 4), (2, 2)], [(0, 4)]).tolist() == [[3, -30]]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vectors": VECTORS[0]}, "vectors have shape (2,) and offsets"),
        ({"offsets": OFFSETS[:1]}, "vectors have shape (3, 2) and offsets (1, 2)"),
        ({"offsets": [(0, 1), (3, 2), (4, 5)]}, "offsets hold (3, 2); expected 0 <= start <= end"),
        ({"spans": [(0.5, 2.0)]}, "spans are float64 of shape (1, 2); expected integers"),
    ],
)
def test_what_does_not_fit_is_told(changes: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"vectors": VECTORS, "offsets": OFFSETS, "spans": SPANS, **changes}
    assert refusal_of(ValueError, lambda: pool_spans(**arguments)).startswith(message)
