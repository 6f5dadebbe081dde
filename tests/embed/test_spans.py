"""Vectors of tokens joined with the characters of their line."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from messages import refusal_of

from elmo_zh import align_to_characters, pool_spans

# Three tokens in a line of 7 characters: the first and the second meet in character 2; nothing is in 4 and 6.
OFFSETS = np.array([(0, 3), (2, 4), (5, 6)], np.int32)
VECTORS = np.array([(1, 10), (3, -30), (5, 50)], np.float32)
LAYERS = np.stack([VECTORS, 2 * VECTORS, -VECTORS])


def test_each_character_gets_the_vector_of_its_token() -> None:
    found = align_to_characters(VECTORS, OFFSETS, 7)
    assert found.tolist() == [[1, 10], [1, 10], [2, -10], [3, -30], [0, 0], [5, 50], [0, 0]]
    assert found.dtype == np.float32


def test_only_first_characters_get_vectors() -> None:
    found = align_to_characters(VECTORS, OFFSETS, 7, method="first")
    assert found.tolist() == [[1, 10], [0, 0], [3, -30], [0, 0], [0, 0], [5, 50], [0, 0]]
    # Two characters made of one raw one.
    both = align_to_characters(VECTORS, [(1, 2), (1, 2), (2, 3)], 3, method="first")
    assert both.tolist() == [[0, 0], [2, -10], [5, 50]]


@pytest.mark.parametrize("method", ["spread", "first"])
def test_every_layer_is_aligned_alike(method: str) -> None:
    found = align_to_characters(LAYERS, OFFSETS, 7, method=method)
    assert found.shape == (3, 7, 2)
    assert found.flags.c_contiguous
    for layer, vectors in zip(found, LAYERS, strict=True):
        assert layer.tolist() == align_to_characters(vectors, OFFSETS, 7, method=method).tolist()


@pytest.mark.parametrize("method", ["spread", "first"])
def test_lines_and_tokens_without_characters(method: str) -> None:
    no_tokens = np.zeros((3, 0, 2), np.float32)
    assert not align_to_characters(no_tokens, np.zeros((0, 2), np.int32), 5, method).any()
    assert align_to_characters(no_tokens, [], 0, method).shape == (3, 0, 2)
    # As other tokenisers mark the tokens that they add.
    assert align_to_characters(VECTORS, [(0, 0), (0, 1), (1, 1)], 1, method).tolist() == [[3, -30]]


def test_vectors_of_half_precision() -> None:
    found = align_to_characters(VECTORS.astype(np.float16), OFFSETS, 7)
    assert found.dtype == np.float32
    assert found.tolist() == align_to_characters(VECTORS, OFFSETS, 7).tolist()


SPANS = [(0, 2), (2, 3), (3, 6), (4, 5), (0, 7), (5, 5), (6, 99)]


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("mean", [[1, 10], [2, -10], [4, 10], [0, 0], [3, 10], [0, 0], [0, 0]]),
        ("max", [[1, 10], [3, 10], [5, 50], [0, 0], [5, 50], [0, 0], [0, 0]]),
    ],
)
def test_spans_pool_the_tokens_that_share_characters(method: str, expected: list[list[float]]) -> None:
    found = pool_spans(VECTORS, OFFSETS, SPANS, method=method)
    assert found.tolist() == expected
    assert found.dtype == np.float32
    in_layers = pool_spans(LAYERS, OFFSETS, np.array(SPANS), method=method)
    assert in_layers.shape == (3, len(SPANS), 2)
    assert in_layers[0].tolist() == expected
    assert in_layers[2].tolist() == pool_spans(-VECTORS, OFFSETS, SPANS, method=method).tolist()


def test_the_largest_may_be_negative() -> None:
    assert pool_spans(-VECTORS, OFFSETS, [(0, 4)], "max").tolist() == [[-1, 30]]
    assert pool_spans(-VECTORS[:1], [(0, 1)], [(0, 1)], "max").tolist() == [[-1, -10]]


def test_no_spans_and_no_tokens() -> None:
    assert pool_spans(LAYERS, OFFSETS, []).shape == (3, 0, 2)
    assert pool_spans(np.zeros((0, 2)), [], [(0, 3)], "max").tolist() == [[0, 0]]
    # A token without characters is in no span, wherever it stands.
    assert pool_spans(VECTORS, [(0, 0), (0, 4), (2, 2)], [(0, 4)]).tolist() == [[3, -30]]


GIVEN: dict[Callable[..., object], dict[str, Any]] = {
    align_to_characters: {"num_characters": 7},
    pool_spans: {"spans": SPANS},
}


ALIGN = align_to_characters


@pytest.mark.parametrize(
    ("function", "changes", "message"),
    [
        (ALIGN, {"vectors": VECTORS[0]}, "vectors have shape (2,) and offsets"),
        (ALIGN, {"offsets": OFFSETS[:2]}, "vectors have shape (3, 2) and offsets (2, 2)"),
        (ALIGN, {"offsets": OFFSETS.T}, "offsets are int32 of shape (2, 3); expected integers, (n, 2)"),
        (ALIGN, {"offsets": OFFSETS / 2}, "offsets are float64 of shape (3, 2); expected integers"),
        (ALIGN, {"offsets": [(0, 1), (3, 2), (4, 5)]}, "offsets hold (3, 2); expected 0 <= start <= end"),
        (ALIGN, {"num_characters": 5}, "offsets reach character 6, but the line has 5"),
        (pool_spans, {"vectors": LAYERS[None]}, "vectors have shape (1, 3, 3, 2)"),
        (pool_spans, {"offsets": OFFSETS[:1]}, "vectors have shape (3, 2) and offsets (1, 2)"),
        (pool_spans, {"spans": [(1, 2, 3)]}, "spans are int64 of shape (1, 3); expected integers, (n, 2)"),
        (pool_spans, {"spans": [(1, 2), (5, 4)]}, "spans hold (5, 4); expected 0 <= start <= end"),
        (pool_spans, {"spans": [(0.5, 2.0)]}, "spans are float64 of shape (1, 2); expected integers"),
    ],
)
def test_what_does_not_fit_is_told(function: Callable[..., object], changes: dict[str, Any], message: str) -> None:
    arguments = {"vectors": VECTORS, "offsets": OFFSETS, **GIVEN[function], **changes}
    assert refusal_of(ValueError, lambda: function(**arguments)).startswith(message)
