"""The registry of precisions: what settings offer, and what each computes."""

import pytest
import torch

from elmo_zh.choices import EMBED_PRECISIONS
from elmo_zh.config import TrainConfig
from elmo_zh.model import precision as module
from elmo_zh.model.precision import BFLOAT16, FLOAT32, INT8, PRECISIONS

CPU, GPU = torch.device("cpu"), torch.device("cuda")


def test_settings_offer_every_precision_and_no_other() -> None:
    assert tuple(PRECISIONS) == EMBED_PRECISIONS
    assert all(name == precision.name for name, precision in PRECISIONS.items())
    for name, precision in PRECISIONS.items():
        assert precision.can_train is not any(TrainConfig(precision=name).problems())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_products_have_the_dtype_of_weights_or_of_autocast_or_the_rounded_one(dtype: torch.dtype) -> None:
    weight = torch.zeros(1, dtype=dtype)
    assert [each.product_dtype(weight) for each in (FLOAT32, BFLOAT16, INT8)] == [dtype, torch.bfloat16, dtype]
    with torch.autocast("cpu", torch.bfloat16):
        assert {each.product_dtype(weight) for each in PRECISIONS.values()} == {torch.bfloat16}


@pytest.mark.parametrize(("has_instructions", "expected"), [(True, 2), (False, 4)])
def test_bytes_are_those_that_the_processor_computes_with(
    monkeypatch: pytest.MonkeyPatch, has_instructions: bool, expected: int
) -> None:
    monkeypatch.setattr(module, "_processor_multiplies_bfloat16", lambda: has_instructions)
    assert [each.bytes_per_number(CPU) for each in (FLOAT32, BFLOAT16)] == [4, expected]
    assert BFLOAT16.bytes_per_number(GPU) == 2


def test_int8_is_for_processors() -> None:
    assert [each.name for each in PRECISIONS.values() if not each.runs_on(GPU)] == ["int8"]
    assert all(each.runs_on(CPU) for each in PRECISIONS.values())
