"""Products of many rows with one matrix, made ready once and used at every time step, or used as it is.

On a processor, oneDNN's own blocked layout is up to half as fast again as torch's plain product at the shapes of an
LSTM step, in float32 and in bfloat16. It is reached through the operators that torch's compiler uses; where they are
missing, the plain product is used. Both sum in float32.

A processor without instructions for bfloat16 multiplies bfloat16 numbers as float32 (`precision.computed_dtype`).
"""

import functools

import torch
from torch import Tensor

from elmo_zh.model.precision import computed_dtype


def can_pack(state: Tensor, dtype: torch.dtype) -> bool:
    """Return whether products in a dtype can be packed, on the device of a state (or bias) and with its dtype."""
    is_known = state.dtype == torch.float32 and dtype in (torch.float32, torch.bfloat16)
    return state.device.type == "cpu" and is_known and _packing_works(dtype)


def pack(matrix: Tensor, is_packed: bool) -> Tensor:
    """Return a matrix, shape (I, O) or, if it is not packed, (2, I, O), as `multiply` takes it."""
    matrix = matrix.to(computed_dtype(matrix.dtype, matrix.device))
    return torch.ops.mkldnn._reorder_linear_weight(matrix.mT.contiguous()) if is_packed else matrix


def unpacked(matrix: Tensor) -> Tensor:
    """Return a matrix, shape (I, O), as `multiply` takes it with `is_packed` all the same: for a single product.

    That is nearly as fast, and packing would take longer than it saves.
    """
    return matrix.to(computed_dtype(matrix.dtype, matrix.device)).mT


def multiply(rows: Tensor, matrix: Tensor, bias: Tensor | None, is_packed: bool) -> Tensor:
    """Return rows x matrix + bias; compatible with TorchScript.

    Args:
        rows: Shape (..., n, I), in the dtype that the matrix had before it was made ready.
        matrix: Made ready by `pack` (or `unpacked`), shape (..., I, O).
        bias: One number a column, float32, shape (..., O).
        is_packed: As told to `pack`.

    Returns:
        Shape (..., n, O), in the dtype that the product is computed in.
    """
    rows = rows.to(matrix.dtype)
    if is_packed:
        result: Tensor = torch.ops.mkldnn._linear_pointwise(rows, matrix, bias, "none", [], "")
        return result
    if bias is None:
        return torch.matmul(rows, matrix)
    added = bias.to(rows.dtype).unsqueeze(-2)
    return torch.addmm(added, rows, matrix) if rows.dim() == 2 else torch.baddbmm(added, rows, matrix)


def multiply_once(left: Tensor, right: Tensor) -> Tensor:
    """Return left x right by torch's plain product, for one product of two large tensors of the same dtype.

    Args:
        left: Shape (..., n, I).
        right: Shape (..., I, O).

    Returns:
        Shape (..., n, O), in the dtype that the product is computed in.
    """
    dtype = computed_dtype(left.dtype, left.device)
    return torch.matmul(left.to(dtype), right.to(dtype))


@functools.cache
def _packing_works(dtype: torch.dtype) -> bool:
    """Try it, since these operators are torch's own business and may be gone or other in another version."""
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return False
    rows, matrix = torch.arange(15.0, dtype=dtype).view(3, 5), torch.arange(35.0, dtype=dtype).view(5, 7)
    bias = torch.arange(7.0)
    try:
        packed = pack(matrix, is_packed=True)
        found = [
            multiply(rows, packed, None, is_packed=True),
            multiply(rows, packed, bias, is_packed=True),
            multiply(rows, unpacked(matrix), bias, is_packed=True),
        ]
    except (AttributeError, NotImplementedError, RuntimeError):
        return False
    expected = rows.double() @ matrix.double()
    return all(
        torch.allclose(product.double(), right, rtol=0.01)
        for product, right in zip(found, (expected, expected + bias, expected + bias), strict=True)
    )
