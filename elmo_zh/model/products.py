"""Products of many rows with one matrix, made ready once and used at every time step, or used as it is.

On a processor, oneDNN's own blocked layout is up to half as fast again as torch's plain product at the shapes of an
LSTM step, in float32 and in bfloat16. It is reached through the operators that torch's compiler uses; where they are
missing, the plain product stands in. Both sum in float32.
"""

import functools

import torch
from torch import Tensor


def can_pack(state: Tensor, dtype: torch.dtype) -> bool:
    """Return whether products in a dtype can be packed, on the device of a state (or bias) and with its dtype."""
    is_known = state.dtype == torch.float32 and dtype in (torch.float32, torch.bfloat16)
    return state.device.type == "cpu" and is_known and _packing_works(dtype)


def pack(matrix: Tensor, is_packed: bool) -> Tensor:
    """Return a matrix, shape (I, O) or, if it is not packed, (2, I, O), as `multiply` takes it."""
    return torch.ops.mkldnn._reorder_linear_weight(matrix.mT.contiguous()) if is_packed else matrix


def unpacked(matrix: Tensor) -> Tensor:
    """Return a matrix, shape (I, O), as `multiply` takes it with `is_packed` all the same: for a single product.

    That is nearly as fast, and packing would take longer than it saves.
    """
    return matrix.mT


def multiply(rows: Tensor, matrix: Tensor, bias: Tensor | None, is_packed: bool) -> Tensor:
    """Return rows x matrix + bias; in words that TorchScript knows.

    Args:
        rows: Shape (..., n, I), in the matrix's dtype.
        matrix: Made ready by `pack` (or `unpacked`), shape (..., I, O).
        bias: One number a column, float32, shape (..., O).
        is_packed: As told to `pack`.

    Returns:
        Shape (..., n, O), in the matrix's dtype.
    """
    if is_packed:
        result: Tensor = torch.ops.mkldnn._linear_pointwise(rows, matrix, bias, "none", [], "")
        return result
    if bias is None:
        return torch.matmul(rows, matrix)
    added = bias.to(rows.dtype).unsqueeze(-2)
    return torch.addmm(added, rows, matrix) if rows.dim() == 2 else torch.baddbmm(added, rows, matrix)


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
