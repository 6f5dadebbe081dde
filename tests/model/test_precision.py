"""The registry of precisions: what settings offer, and what each computes."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from elmo_zh.model import precision
from elmo_zh.model.kernels import products
from elmo_zh.model.precision import BFLOAT16, FLOAT32, choose_precision

CPU, GPU = torch.device("cpu"), torch.device("cuda")


# The faster one, by pretended rates of products; nothing here depends on this machine's


Rates = Callable[[float], list[Any]]


@pytest.fixture
def pretend(monkeypatch: pytest.MonkeyPatch) -> Rates:
    """Let bfloat16 take a time, in units of float32's; returns the list of what was measured."""

    def set_rate(seconds: float) -> list[Any]:
        measured: list[Any] = []

        def measure(work: dict[Any, Callable[[], object]]) -> dict[Any, float]:
            for compute in work.values():
                compute()  # it can be computed
            measured.append(list(work))
            return {FLOAT32: 1.0, BFLOAT16: seconds}

        monkeypatch.setattr(products, "_processor_multiplies_bfloat16", lambda: True)
        monkeypatch.setattr(precision, "can_pack", lambda *_: False)
        monkeypatch.setattr(precision, "_shortest_seconds", measure)
        choose_precision.cache_clear()
        return measured

    yield set_rate  # type: ignore[misc]
    choose_precision.cache_clear()


@pytest.mark.parametrize(
    ("seconds", "expected", "told"),
    [
        (0.5, BFLOAT16, "bfloat16: 2.0 times as fast as float32 here"),
        (0.86, BFLOAT16, "bfloat16: 1.2 times as fast as float32 here"),
        (0.88, FLOAT32, "float32: bfloat16 is only 1.1 times as fast here"),
        (2.0, FLOAT32, "float32: bfloat16 is only 0.5 times as fast here"),
    ],
)
def test_bfloat16_is_chosen_where_it_is_clearly_faster(
    pretend: Rates, seconds: float, expected: precision.Precision, told: str
) -> None:
    measured = pretend(seconds)
    for _ in range(2):
        choice = choose_precision(CPU, 3, 10, 52)
        assert (choice.precision, choice.describe()) == (expected, told)
    assert measured == [[FLOAT32, BFLOAT16]]  # once for each shape
