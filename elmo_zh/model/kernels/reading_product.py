"""Products with a fixed matrix for reading only: made ready once for a whole life, in float32, bfloat16 or int8.

int8 is dynamic quantisation: each column of a matrix has its scale, taken once, and each row of what it is multiplied
with has its own, taken as it comes, so that the rows beside it change nothing. Sums are whole numbers and exact; what
comes out is float32.
"""

import functools
from typing import NamedTuple

import torch
from torch import Tensor

from elmo_zh.model.kernels.products import can_pack, multiply, pack

PRECISIONS = ("float32", "bfloat16", "int8")

# oneDNN is fast with unsigned rows only: they stand 128 higher.
_ZERO_POINT = 128
_LARGEST = 127


class ReadingProduct(NamedTuple):
    """A matrix made ready.

    Attributes:
        matrix: As `multiply`, or the quantised product, takes it; shape (I, O).
        bias: One number a column, float32, shape (O,), or None.
        scales: Of the columns, float32, shape (O,); int8 only.
        is_packed: Whether the matrix is in the library's own layout.
    """

    matrix: Tensor
    bias: Tensor | None
    scales: Tensor | None
    is_packed: bool


def build_product(matrix: Tensor, bias: Tensor | None, precision: str) -> ReadingProduct:
    """Make a matrix ready.

    Args:
        matrix: Float32, shape (I, O).
        bias: Float32, shape (O,), or None.
        precision: One of PRECISIONS.
    """
    matrix = matrix.detach()
    bias = None if bias is None else bias.detach()
    if precision != "int8":
        dtype = getattr(torch, precision)
        is_packed = can_pack(matrix[:1], dtype)
        return ReadingProduct(pack(matrix.to(dtype, copy=not is_packed), is_packed), bias, None, is_packed)
    quantised, scales = quantise_columns(matrix)
    if _quantised_product_works():
        return ReadingProduct(torch.ops.onednn.qlinear_prepack(quantised.mT.contiguous(), None), bias, scales, True)
    return ReadingProduct(quantised.float(), bias, scales, False)


def quantise_columns(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Return whole numbers from -127 to 127, int8, shape (I, O), and what one of each column stands for, shape (O,)."""
    scales = matrix.abs().amax(dim=0).clamp(min=torch.finfo(matrix.dtype).tiny) / _LARGEST
    return (matrix / scales).round().to(torch.int8), scales


def read_product(rows: Tensor, product: ReadingProduct) -> Tensor:
    """Return rows x matrix + bias, float32, shape (n, O); in words that TorchScript knows.

    Args:
        rows: Shape (n, I); float32 where the product is int8, else in the dtype of the product.
        product: Of `build_product`.
    """
    scales = product.scales
    if scales is None:
        return multiply(rows, product.matrix, product.bias, product.is_packed).to(torch.float32)
    row_scales = rows.abs().amax(dim=1, keepdim=True).clamp_(min=1e-30).div_(127.0)
    shifted = torch.div(rows, row_scales).round_().add_(128.0)
    if product.is_packed:
        zeros = torch.zeros(scales.size(0), dtype=torch.int32)
        sums = torch.ops.onednn.qlinear_pointwise(
            shifted.to(torch.uint8),
            1.0,
            128,
            product.matrix,
            scales,
            zeros,
            None,
            1.0,
            0,
            torch.float32,
            "none",
            [],
            "",
        )
    else:
        sums = torch.matmul(shifted.sub_(128.0), product.matrix).mul_(scales)
    bias, scaled = product.bias, torch.mul(sums, row_scales)
    return scaled if bias is None else scaled.add_(bias)


@functools.cache
def _quantised_product_works() -> bool:
    """Try it, since these operators are torch's own business and may be gone or other in another version.

    Processors without products of 8-bit numbers (VNNI) add neighbouring ones in 16 bits, and where these do not hold
    the sum, oneDNN takes the largest number that they do: so the largest numbers are among those tried.
    """
    matrix = torch.arange(-17, 18, dtype=torch.int8).view(5, 7)
    matrix[:, 0], matrix[:, 1] = _LARGEST, -_LARGEST
    rows = torch.arange(15, dtype=torch.uint8).view(3, 5) * 17
    rows[0] = _ZERO_POINT + _LARGEST
    try:
        packed = torch.ops.onednn.qlinear_prepack(matrix.mT.contiguous(), None)
        found = torch.ops.onednn.qlinear_pointwise(
            rows, 1.0, _ZERO_POINT, packed, torch.ones(7), torch.zeros(7, dtype=torch.int32), None, 1.0, 0,
            torch.float32, "none", [], "",
        )  # fmt: skip
    except (AttributeError, NotImplementedError, RuntimeError):
        return False
    return bool(torch.equal(found.double(), (rows.double() - _ZERO_POINT) @ matrix.double()))
