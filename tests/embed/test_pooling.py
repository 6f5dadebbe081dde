"""One vector of a sentence from those of its tokens, worked out by hand."""

import numpy as np
import pytest

from elmo_zh.choices import POOL_METHODS
from elmo_zh.embed.reduction import pool_tokens

# Three tokens, P = 2.
VECTORS = np.array([[1, 2, 3, 4], [-5, 6, 7, -8], [1, -11, 2, 13]], np.float32)
BY_HAND = {"mean": [-1, -1, 4, 3], "max": [1, 6, 7, 13], "first-last": [1, -11, 3, 4]}


@pytest.mark.parametrize("how", POOL_METHODS)
def test_by_hand(how: str) -> None:
    found = pool_tokens(VECTORS, how)
    assert found.dtype == np.float32
    assert found.tolist() == BY_HAND[how]
    layers = np.stack([VECTORS, VECTORS * 2, VECTORS - 1, VECTORS * 0, VECTORS * 4])
    assert pool_tokens(layers, how).tolist() == [pool_tokens(layer, how).tolist() for layer in layers]
    assert pool_tokens(layers[:, :0], how).tolist() == np.zeros((5, 4)).tolist()
    assert pool_tokens(VECTORS[:1], how).tolist() == VECTORS[0].tolist()


@pytest.mark.parametrize("how", POOL_METHODS)
def test_what_is_given_keeps_no_memory_of_the_tokens(how: str) -> None:
    vectors = VECTORS[:1].copy()
    found = pool_tokens(vectors, how)
    vectors += 1
    assert found.tolist() == VECTORS[0].tolist()
