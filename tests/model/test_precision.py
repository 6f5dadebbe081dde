"""The faster precision on a machine, by pretended rates of products."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from elmo_zh.model import precision
from elmo_zh.model.kernels import products
from elmo_zh.model.precision import BFLOAT16, FLOAT32, choose_precision


@pytest.fixture(autouse=True)
def _forget_choices() -> Iterator[None]:
    choose_precision.cache_clear()
    yield
    choose_precision.cache_clear()


@pytest.mark.parametrize(("seconds", "expected"), [(0.5, BFLOAT16), (0.86, BFLOAT16), (0.88, FLOAT32), (2.0, FLOAT32)])
def test_bfloat16_is_chosen_where_it_is_clearly_faster(
    monkeypatch: pytest.MonkeyPatch, seconds: float, expected: precision.Precision
) -> None:
    """bfloat16 takes these seconds, float32 one; measured once for each shape."""
    measured: list[Any] = []

    def measure(work: dict[Any, Callable[[], object]]) -> dict[Any, float]:
        for compute in work.values():
            compute()  # it can be computed
        measured.append(list(work))
        return {FLOAT32: 1.0, BFLOAT16: seconds}

    monkeypatch.setattr(products, "_processor_multiplies_bfloat16", lambda: True)
    monkeypatch.setattr(precision, "can_pack", lambda *_: False)
    monkeypatch.setattr(precision, "_shortest_seconds", measure)
    for _ in range(2):
        assert choose_precision(torch.device("cpu"), 3, 10, 52) is expected
    assert measured == [[FLOAT32, BFLOAT16]]
