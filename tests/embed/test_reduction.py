"""Layers and pooling against sums worked by hand."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from messages import message_of

from elmo_zh.choices import POOL_METHODS
from elmo_zh.config import Layers
from elmo_zh.embed.reduction import Reduction, load_mix_weights
from elmo_zh.errors import ElmoZhError

# Two layers, three tokens, two numbers forward and two backward.
ACTIVATIONS = np.array(
    [
        [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]],
        [[3, 2, 1, 0], [-1, -2, -3, -4], [-5, -6, -7, 40]],
    ],
    np.float32,
)


@pytest.mark.parametrize(
    ("layers", "pool", "expected"),
    [
        ("average", "none", [[2, 2, 2, 2], [2, 2, 2, 2], [2, 2, 2, 26]]),
        ("top", "mean", [-1, -2, -3, 12]),
        ("1", "max", [3, 2, 1, 40]),
        ("0", "first-last", [9, 10, 3, 4]),
        ("all", "first-last", [[9, 10, 3, 4], [-5, -6, 1, 0]]),
        ("1,0", "first-last", [[-5, -6, 1, 0], [9, 10, 3, 4]]),
        ("mix", "max", [7, 6, 5, 40 - 4]),
    ],
)
def test_worked_by_hand(layers: str, pool: str, expected: Any) -> None:
    found = Reduction(layers=Layers(layers), pool=pool, mix_weights=(-0.5, 0.5)).apply(ACTIVATIONS)
    if layers == "mix":
        expected = (0.5 * (ACTIVATIONS[1] - ACTIVATIONS[0])).max(axis=0)
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == np.float32


@pytest.mark.parametrize("pool", POOL_METHODS)
def test_a_line_without_tokens_is_zeros(pool: str) -> None:
    nothing = np.zeros((2, 0, 4), np.float32)
    np.testing.assert_array_equal(Reduction(layers=Layers("all"), pool=pool).apply(nothing), np.zeros((2, 4)))
    np.testing.assert_array_equal(Reduction(layers=Layers("top"), pool=pool).apply(nothing), np.zeros(4))


@pytest.mark.parametrize(
    "content",
    ["[1, 2]", "{", '{"scalar_parameters": [1, 2, 3]}', "[" * 200_000, '{"scalar_parameters": [1, NaN]}', "\xff"],
)
def test_mistakes_in_the_file_of_weights(tmp_path: Path, content: str) -> None:
    path = tmp_path / "mix.json"
    path.write_bytes(content.encode("latin-1"))
    message = message_of(ElmoZhError, lambda: load_mix_weights(path, 2))
    assert message.startswith(f'--mix-weights {path}; expected {{"scalar_parameters": [0.0, 0.0]')
