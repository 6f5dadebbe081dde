"""Products of many rows with one matrix, made ready once and used at every time step.

On a processor, oneDNN's own blocked layout is half as fast again as torch's plain product at the shapes of an LSTM
step, in float32 and in bfloat16. It is reached through the operators that torch's compiler uses; where they are
missing, the plain product stands in. Both sum in float32.
"""

import functools
from typing import Protocol

import torch
from torch import Tensor


class Product(Protocol):
    """A matrix that rows are multiplied with."""

    def __call__(self, rows: Tensor, *, added: Tensor | None = None, bias: Tensor | None = None) -> Tensor:
        """Return rows x matrix, plus one or the other.

        Args:
            rows: Shape (..., n, I), in the matrix's dtype.
            added: Of the result's shape and dtype.
            bias: One number a column, float32, shape (..., O).

        Returns:
            Shape (..., n, O), in the matrix's dtype.
        """
        ...


def build_product(matrix: Tensor, *, is_packed: bool) -> Product:
    """Return the product with a matrix, shape (I, O) or, plain only, (2, I, O)."""
    return _PackedProduct(matrix) if is_packed else _PlainProduct(matrix)


def can_pack(state: Tensor, dtype: torch.dtype) -> bool:
    """Return whether products in a dtype can be packed, on the device of a state (or bias) and with its dtype."""
    is_known = state.dtype == torch.float32 and dtype in (torch.float32, torch.bfloat16)
    return state.device.type == "cpu" and is_known and _packing_works(dtype)


class _PlainProduct:
    """torch's matrix product."""

    def __init__(self, matrix: Tensor) -> None:
        self._matrix = matrix

    def __call__(self, rows: Tensor, *, added: Tensor | None = None, bias: Tensor | None = None) -> Tensor:
        if bias is not None:
            added = bias.to(rows.dtype).unsqueeze(-2)
        if added is None:
            return torch.matmul(rows, self._matrix)
        return torch.baddbmm(added, rows, self._matrix) if rows.dim() == 3 else torch.addmm(added, rows, self._matrix)


class _PackedProduct:
    """oneDNN's, with the matrix in the layout that it prefers."""

    def __init__(self, matrix: Tensor) -> None:
        self._packed = torch.ops.mkldnn._reorder_linear_weight(matrix.T.contiguous())

    def __call__(self, rows: Tensor, *, added: Tensor | None = None, bias: Tensor | None = None) -> Tensor:
        if added is None:
            result: Tensor = torch.ops.mkldnn._linear_pointwise.default(rows, self._packed, bias, "none", [], "")
        else:
            result = torch.ops.mkldnn._linear_pointwise.binary(rows, added, self._packed, bias, "add")
        return result


@functools.cache
def _packing_works(dtype: torch.dtype) -> bool:
    """Try it, since these operators are torch's own business and may be gone or other in another version."""
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return False
    rows, matrix = torch.arange(15.0, dtype=dtype).view(3, 5), torch.arange(35.0, dtype=dtype).view(5, 7)
    added, bias = torch.ones(3, 7, dtype=dtype), torch.arange(7.0)
    expected = (rows.double() @ matrix.double()).to(dtype)
    try:
        product = _PackedProduct(matrix)
        found = product(rows), product(rows, added=added), product(rows, bias=bias)
    except (AttributeError, NotImplementedError, RuntimeError):
        return False
    wanted = expected, expected + added, expected + bias
    return all(torch.allclose(a.double(), b.double(), rtol=0.01) for a, b in zip(found, wanted, strict=True))
