"""Products of many rows with one matrix, which is prepared once and used at every time step, or used as it is.

On a processor, oneDNN's own blocked layout is up to half as fast again as torch's plain product at the shapes of an
LSTM step, in float32 and in bfloat16. It is reached through the operators that torch's compiler uses; where they are
missing, the plain product is used. Both sum in float32.

A processor without instructions for bfloat16 multiplies bfloat16 numbers as float32 (`precision.computed_dtype`).

Inference also has int8, by dynamic quantisation: each column of a matrix has its scale, determined once, and each row
that is multiplied with it has its own, determined on the fly, so that neighbouring rows change nothing. Sums are whole
numbers and exact; results are float32.
"""

import functools
from typing import NamedTuple

import torch
from torch import Tensor

from elmo_zh.model.precision import Precision, computed_dtype

# oneDNN is fast with unsigned rows only: they are stored 128 higher.
_ZERO_POINT = 128
_LARGEST = 127


def can_pack(state: Tensor, dtype: torch.dtype) -> bool:
    """Return whether products in a dtype can be packed, on the device of a state (or bias) and with its dtype."""
    is_known = state.dtype == torch.float32 and dtype in (torch.float32, torch.bfloat16)
    return state.device.type == "cpu" and is_known and _packing_works(dtype)


def pack(matrix: Tensor, is_packed: bool) -> Tensor:
    """Return a matrix, shape (I, O) or, if it is not packed, (2, I, O), as `multiply` takes it."""
    matrix = matrix.to(computed_dtype(matrix.dtype, matrix.device))
    return torch.ops.mkldnn._reorder_linear_weight(matrix.mT.contiguous()) if is_packed else matrix


def unpacked(matrix: Tensor) -> Tensor:
    """Return a matrix, shape (I, O), as `multiply` takes it with `is_packed`, but not packed: for a single product.

    That is nearly as fast, and packing would take longer than it saves.
    """
    return matrix.to(computed_dtype(matrix.dtype, matrix.device)).mT


def multiply(rows: Tensor, matrix: Tensor, bias: Tensor | None, is_packed: bool) -> Tensor:
    """Return rows x matrix + bias; compatible with TorchScript.

    Args:
        rows: Shape (..., n, I), in the dtype that the matrix had before it was prepared.
        matrix: Prepared by `pack` (or `unpacked`), shape (..., I, O).
        bias: One number a column, float32, shape (..., O).
        is_packed: The value given to `pack`.

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
    """Try the operators: they are internal to torch, and another version may lack or change them."""
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


class InferenceProduct(NamedTuple):
    """A matrix prepared for inference.

    Attributes:
        matrix: As `multiply`, or the quantised product, takes it; shape (I, O).
        bias: One number a column, float32, shape (O,), or None.
        scales: One number a column, float32, shape (O,); int8 only.
        is_packed: Whether the matrix is in the library's own layout.
        rows_dtype: dtype of the rows that it is multiplied with.
    """

    matrix: Tensor
    bias: Tensor | None
    scales: Tensor | None
    is_packed: bool
    rows_dtype: torch.dtype


def build_inference_product(matrix: Tensor, bias: Tensor | None, precision: Precision) -> InferenceProduct:
    """Prepare a matrix.

    Args:
        matrix: Float32, shape (I, O).
        bias: Float32, shape (O,), or None.
        precision: Precision of the product.
    """
    matrix = matrix.detach()
    bias = None if bias is None else bias.detach()
    dtype = precision.dtype
    if not precision.is_quantised:
        is_packed = can_pack(matrix[:1], dtype)
        prepared = pack(matrix.to(dtype, copy=not is_packed), is_packed)
        return InferenceProduct(prepared, bias, None, is_packed, dtype)
    quantised, scales = quantise_columns(matrix)
    if _quantised_product_works():
        packed = torch.ops.onednn.qlinear_prepack(quantised.mT.contiguous(), None)
        return InferenceProduct(packed, bias, scales, True, dtype)
    return InferenceProduct(quantised.float(), bias, scales, False, dtype)


def quantise_columns(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Return whole numbers from -127 to 127, int8, shape (I, O), and the value of 1 in each column, shape (O,)."""
    scales = matrix.abs().amax(dim=0).clamp(min=torch.finfo(matrix.dtype).tiny) / _LARGEST
    return (matrix / scales).round().to(torch.int8), scales


def inference_product(rows: Tensor, product: InferenceProduct) -> Tensor:
    """Return rows x matrix + bias, float32, shape (n, O); compatible with TorchScript.

    Args:
        rows: Shape (n, I), in the product's `rows_dtype`.
        product: Made by `build_inference_product`.
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
    """Try the operators: they are internal to torch, and another version may lack or change them.

    Processors without products of 8-bit numbers (VNNI) add neighbouring ones in 16 bits, and oneDNN saturates a sum
    that does not fit: so the largest numbers are among those tried.
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
