"""Products prepared for inference against NumPy; operators that are missing or wrong; where products are packed."""

import functools
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from contract.command_line import ROOT
from numpy.typing import NDArray
from torch import Tensor

from elmo_zh.model import sentence_reader
from elmo_zh.model.kernels import next_token_loss, products, recurrence
from elmo_zh.model.kernels.execution import scripted
from elmo_zh.model.precision import BFLOAT16, FLOAT32, INT8, PRECISIONS, Precision
from elmo_zh.model.sentence_reader import build_inference_product, inference_product

# Rows, width, columns: distinct primes, and what models have.
SIZES = [(1, 1, 3), (3, 5, 7), (67, 127, 509), (19, 128, 512), (11, 512, 128)]
ROUNDING = {FLOAT32: 2.0**-24, BFLOAT16: 2.0**-8}

Array = NDArray[np.float64]


def draw(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def as_read(rows: Tensor, precision: Precision) -> Tensor:
    return rows.to(precision.dtype)


@pytest.fixture(params=[False, True])
def is_packed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the library's own layouts are there."""
    if not request.param:
        monkeypatch.setattr(sentence_reader, "can_pack", lambda *_: False)
        monkeypatch.setattr(sentence_reader, "int8_product_works", lambda: False)
    return bool(request.param)


def quantised_by_hand(values: NDArray[np.float32], axis: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Whole numbers, and what one of them stands for along the axis."""
    scales = np.maximum(np.abs(values).max(axis=axis, keepdims=True), np.float32(1e-30)) / np.float32(127)
    return np.rint(values / scales).astype(np.int64), scales


def int8_by_hand(rows: Tensor, matrix: Tensor, bias: Tensor | None) -> Array:
    """The quantised product: exact sums of whole numbers, times both scales, plus the bias."""
    row_numbers, row_scales = quantised_by_hand(rows.numpy(), axis=1)
    column_numbers, column_scales = quantised_by_hand(matrix.numpy(), axis=0)
    scales = row_scales.astype(np.float64) * column_scales
    return np.asarray((row_numbers @ column_numbers) * scales + (0.0 if bias is None else bias.double().numpy()))


@pytest.mark.usefixtures("is_packed")
@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("precision", ROUNDING, ids=lambda precision: precision.name)
@pytest.mark.parametrize("sizes", SIZES)
def test_a_product_is_that_of_numpy_rounded(sizes: tuple[int, int, int], precision: Precision, with_bias: bool) -> None:
    num_rows, width, num_columns = sizes
    rows, matrix = draw(1, num_rows, width), draw(2, width, num_columns)
    bias = draw(3, num_columns) if with_bias else None
    found = inference_product(as_read(rows, precision), build_inference_product(matrix, bias, precision))
    assert (found.dtype, found.shape) == (torch.float32, (num_rows, num_columns))
    factors = [as_read(each, precision).double().numpy() for each in (rows, matrix)]
    expected = factors[0] @ factors[1] + (0.0 if bias is None else bias.double().numpy())
    step = ROUNDING[precision]
    np.testing.assert_allclose(found.double().numpy(), expected, rtol=2 * step, atol=4 * step + 2e-7 * width)


@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("sizes", SIZES)
def test_an_int8_product_is_the_quantised_one_worked_out_by_hand(
    sizes: tuple[int, int, int], is_packed: bool, with_bias: bool
) -> None:
    num_rows, width, num_columns = sizes
    # Rows and columns of very different size: one scale for all of them would not do.
    rows = draw(1, num_rows, width) * torch.logspace(-3, 3, num_rows)[:, None]
    matrix = draw(2, width, num_columns) * torch.logspace(2, -2, num_columns)
    bias = draw(3, num_columns) if with_bias else None
    product = build_inference_product(matrix, bias, INT8)
    assert product.is_packed is (is_packed and products.int8_product_works())
    found = inference_product(rows, product)
    assert (found.dtype, found.shape) == (torch.float32, (num_rows, num_columns))
    np.testing.assert_allclose(found.double().numpy(), int8_by_hand(rows, matrix, bias), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("precision", PRECISIONS.values(), ids=list(PRECISIONS))
@pytest.mark.parametrize("sizes", [(67, *rest) for _, *rest in SIZES])
def test_a_row_does_not_depend_on_those_beside_it(sizes: tuple[int, int, int], precision: Precision) -> None:
    """Not in one bit in int8 and float32; in bfloat16, a processor may round sums of few rows otherwise."""
    num_rows, width, num_columns = sizes
    tolerance = 2.0**-7 if precision is BFLOAT16 else 0.0
    rows = as_read(draw(1, num_rows, width), precision)
    product = build_inference_product(draw(2, width, num_columns), draw(3, num_columns), precision)
    if not product.is_packed and not precision.is_quantised:
        pytest.skip("matrices cannot be packed here")
    whole = inference_product(rows, product)
    for some in (*(slice(0, n) for n in (1, 2, 3, 5, 16, 17, 32, 33)), slice(66, 67), slice(13, 30)):
        found = inference_product(rows[some], product)
        torch.testing.assert_close(found, whole[some], rtol=tolerance, atol=tolerance)
    others = as_read(draw(4, num_rows, width) * 1e4, precision)
    others[41] = rows[41]
    torch.testing.assert_close(inference_product(others, product)[41], whole[41], rtol=tolerance, atol=tolerance)


class Saturating:
    """The operators as on a processor that adds pairs of products in 16 bits."""

    @staticmethod
    def qlinear_prepack(matrix: Tensor, _: object) -> Tensor:
        return matrix

    @staticmethod
    def qlinear_pointwise(rows: Tensor, _: float, zero_point: int, matrix: Tensor, *__: object) -> Tensor:
        numbers, columns = rows.numpy().astype(np.int64), matrix.numpy().astype(np.int64)
        products = numbers[:, None, :] * columns[None]
        pairs = [products[..., k : k + 2].sum(axis=2).clip(-(2**15), 2**15 - 1) for k in range(0, rows.shape[1], 2)]
        return torch.from_numpy(sum(pairs) - zero_point * columns.sum(axis=1)).float()


@pytest.mark.parametrize(("stand_in", "warns"), [(Saturating, False), (object, True)])
def test_operators_that_are_missing_or_wrong_are_noticed(
    monkeypatch: pytest.MonkeyPatch, stand_in: Any, warns: bool
) -> None:
    monkeypatch.setattr(torch.ops, "onednn", stand_in, raising=False)
    try_it = functools.cache(products.int8_product_works.__wrapped__)
    monkeypatch.setattr(sentence_reader, "int8_product_works", try_it)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert not try_it()
    assert [str(each.message).endswith("slowly. Installing torch 2.13 may help.") for each in caught] == [True] * warns
    rows, matrix = draw(1, 3, 5), draw(2, 5, 7)
    product = build_inference_product(matrix, None, INT8)
    assert product.is_packed is False
    found = inference_product(rows, product).numpy()
    np.testing.assert_allclose(found, int8_by_hand(rows, matrix, None), rtol=1e-6, atol=1e-6)


def missing(*_: object, **__: object) -> Tensor:
    raise AttributeError("'_OpNamespace' 'mkldnn' object has no attribute '_reorder_linear_weight'")


def wrong(rows: Tensor, *_: object, **__: object) -> Tensor:
    return rows.new_ones(3, 7)


@pytest.mark.parametrize(("name", "stand_in"), [("packed", missing), ("packed_product", wrong)])
def test_another_torch_without_the_operators_or_with_others_packs_nothing(
    monkeypatch: pytest.MonkeyPatch, name: str, stand_in: object
) -> None:
    monkeypatch.setattr(products, "packing_works", functools.cache(products.packing_works.__wrapped__))
    monkeypatch.setattr(products, name, stand_in)
    with pytest.warns(RuntimeWarning, match="The packed products of torch") as caught:
        found = [products.can_pack(torch.zeros(1), torch.float32) for _ in range(2)]
    assert (found, len(caught)) == ([False, False], 1)


@pytest.mark.parametrize(
    "function",
    [
        recurrence.loop_forward,
        recurrence.loop_backward,
        sentence_reader.infer_layer,
        next_token_loss.score_row_chunks,
    ],
    ids=lambda function: function.__name__,
)
def test_torchscript_takes_it(function: Callable[..., Any]) -> None:
    """Otherwise nothing would fail: it would run as plain Python, and slower."""
    assert isinstance(scripted(function), torch.jit.ScriptFunction)


def test_private_parts_of_torch_are_measured_again_with_another_one() -> None:
    """With the new torch run `make bench`; keep in products.py what no public call does as fast, and say so."""
    pinned = re.search(r"^torch==(.*)$", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    assert pinned is not None
    assert pinned[1].startswith(f"{products.MEASURED_WITH}.")


@pytest.fixture(params=[False, True])
def has_instructions(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.setattr("elmo_zh.model.kernels.products._processor_multiplies_bfloat16", lambda: request.param)
    return bool(request.param)


def test_without_instructions_bfloat16_is_multiplied_as_float32(has_instructions: bool) -> None:
    rows, matrix, bias = draw(1, 3, 5).bfloat16(), draw(2, 5, 7).bfloat16(), draw(3, 7)
    found = products.multiply(rows, products.pack(matrix, is_packed=False), bias, is_packed=False)
    once = products.multiply_once(rows, matrix)
    assert found.dtype == once.dtype == (torch.bfloat16 if has_instructions else torch.float32)
    exact = rows.double() @ matrix.double()
    tolerance = 0.05 if has_instructions else 1e-6
    torch.testing.assert_close(once.double(), exact, rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(found.double(), exact + bias.double(), rtol=tolerance, atol=tolerance)
