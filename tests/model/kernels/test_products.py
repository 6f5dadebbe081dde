"""Products with a packed matrix against float64, and where they cannot be had."""

import pytest
import torch
from torch import Tensor

from elmo_zh.model import precision
from elmo_zh.model.kernels.products import can_pack, multiply, multiply_once, pack
from elmo_zh.model.precision import computed_dtype

DTYPES = (torch.float32, torch.bfloat16)
CPU = torch.device("cpu")
# Rows, width, columns: distinct primes, and what models have.
SIZES = [(1, 1, 3), (3, 5, 7), (67, 127, 509), (19, 128, 512), (11, 512, 128)]


def draw(seed: int, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def require_packing(dtype: torch.dtype) -> None:
    if not can_pack(torch.zeros(1), dtype):
        pytest.skip("matrices cannot be packed here")


@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("is_packed", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sizes", SIZES)
def test_a_product_is_that_of_float64_rounded(
    sizes: tuple[int, int, int], dtype: torch.dtype, is_packed: bool, with_bias: bool
) -> None:
    if is_packed:
        require_packing(dtype)
    num_rows, width, num_columns = sizes
    rows, matrix = draw(1, num_rows, width, dtype=dtype), draw(2, width, num_columns, dtype=dtype)
    bias = draw(3, num_columns) if with_bias else None
    found = multiply(rows, pack(matrix, is_packed), bias, is_packed)
    assert found.dtype == computed_dtype(dtype, CPU)
    expected = rows.double() @ matrix.double() + (0.0 if bias is None else bias.double())
    # Sums are in float32; what is given out is rounded to the dtype, and without packing so is the bias before.
    step = torch.finfo(dtype).eps
    torch.testing.assert_close(found.double(), expected, rtol=step, atol=step * 2 + 1e-6 * width)


@pytest.fixture(params=[False, True])
def has_instructions(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.setattr(precision, "_processor_multiplies_bfloat16", lambda: request.param)
    return bool(request.param)


def test_without_instructions_bfloat16_is_multiplied_as_float32(has_instructions: bool) -> None:
    rows, matrix, bias = draw(1, 3, 5, dtype=torch.bfloat16), draw(2, 5, 7, dtype=torch.bfloat16), draw(3, 7)
    found = multiply(rows, pack(matrix, is_packed=False), bias, is_packed=False)
    once = multiply_once(rows, matrix)
    assert found.dtype == once.dtype == (torch.bfloat16 if has_instructions else torch.float32)
    exact = rows.double() @ matrix.double()
    tolerance = 0.05 if has_instructions else 1e-6
    torch.testing.assert_close(once.double(), exact, rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(found.double(), exact + bias.double(), rtol=tolerance, atol=tolerance)


def test_the_matrix_is_packed_as_it_is_now() -> None:
    require_packing(torch.float32)
    matrix, rows = draw(2, 5, 7), draw(1, 3, 5)
    packed = pack(matrix, is_packed=True)
    before = multiply(rows, packed, None, is_packed=True)
    matrix.zero_()
    assert torch.equal(multiply(rows, packed, None, is_packed=True), before)
    # A view that is not contiguous, as the transposed matrix on the way back is.
    tall = draw(5, 7, 5)
    torch.testing.assert_close(multiply(rows, pack(tall.T, is_packed=True), None, is_packed=True), rows @ tall.T)


def test_only_float32_states_are_packed() -> None:
    assert not can_pack(torch.zeros(1, dtype=torch.float64), torch.float64)
    assert not can_pack(torch.zeros(1, dtype=torch.float64), torch.float32)
    assert not can_pack(torch.zeros(1), torch.float16)
    assert not can_pack(torch.zeros(1, device="meta"), torch.float32)
