"""Products of many rows with one matrix, which is prepared once for use at every time step, or used as is.

On a CPU, oneDNN's own blocked layout is up to 1.5 times as fast as torch's plain product at the shapes of an LSTM
step (`kernels.torch_internals`). Without instructions for bfloat16, such factors are multiplied as float32
(`precision.computed_dtype`). Inference also has int8, by dynamic quantisation: each matrix column has a scale,
determined once, and each input row its own, so that neighbouring rows have no effect. Sums are integers and exact;
results are float32.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from elmo_zh.model.kernels.torch_internals import (
    LARGEST_INT8,
    int8_product,
    int8_product_works,
    packed,
    packed_int8,
    packed_product,
    packing_works,
)
from elmo_zh.model.precision import Precision, computed_dtype


def can_pack(state: Tensor, dtype: torch.dtype) -> bool:
    """Return whether packed products in `dtype` work on the device of a state (or bias), and with its own dtype."""
    is_known = state.dtype == torch.float32 and dtype in (torch.float32, torch.bfloat16)
    return state.device.type == "cpu" and is_known and packing_works(computed_dtype(dtype, state.device))


def pack(matrix: Tensor, is_packed: bool) -> Tensor:
    """Prepare a matrix, shape (I, O) or, if it is not packed, (2, I, O), for `multiply`."""
    matrix = matrix.to(computed_dtype(matrix.dtype, matrix.device))
    return packed(matrix) if is_packed else matrix


def unpacked(matrix: Tensor) -> Tensor:
    """Prepare a matrix, shape (I, O), for a single `multiply`, where packing would cost more than it saves."""
    return matrix.to(computed_dtype(matrix.dtype, matrix.device)).mT


def multiply(rows: Tensor, matrix: Tensor, bias: Tensor | None, is_packed: bool) -> Tensor:
    """Return rows x matrix + bias, shape (..., n, O), in the product's dtype; TorchScript-compatible.

    `rows` have the dtype that the matrix had before `pack` or `unpacked`; the bias is float32, shape (..., O).
    """
    rows = rows.to(matrix.dtype)
    if is_packed:
        return packed_product(rows, matrix, bias)
    if bias is None:
        return torch.matmul(rows, matrix)
    added = bias.to(rows.dtype).unsqueeze(-2)
    return torch.addmm(added, rows, matrix) if rows.dim() == 2 else torch.baddbmm(added, rows, matrix)


def multiply_once(left: Tensor, right: Tensor) -> Tensor:
    """Return left x right with torch's own product, which suits a single product of two large tensors of one dtype."""
    dtype = computed_dtype(left.dtype, left.device)
    return torch.matmul(left.to(dtype), right.to(dtype))


def affine(x: Tensor, weight: Tensor, bias: Tensor, dtype: torch.dtype) -> Tensor:
    """Return x W + b, shape (n, O), with the product in `dtype` and the sum in the weights' dtype."""
    if torch.compiler.is_compiling() or not can_pack(bias, dtype):
        if dtype == weight.dtype:
            return torch.addmm(bias, x, weight)
        return multiply_once(x.to(dtype), weight.to(dtype)).to(weight.dtype) + bias
    result: Tensor = _Product.apply(x, weight, bias, dtype)  # type: ignore[no-untyped-call]
    return result


def steady_product(x: Tensor, weight: Tensor, dtype: torch.dtype) -> Tensor:
    """Return x W, shape (n, O), in the weights' dtype, with the product in `dtype`.

    Where oneDNN is available, neither the other rows of x nor the number of threads changes one bit of a row or of the
    gradients; torch's own products, by MKL, depend on both on some processors.
    """
    if not can_pack(weight, dtype):
        return multiply_once(x.to(dtype), weight.to(dtype)).to(weight.dtype)
    result: Tensor = _Product.apply(x, weight, None, dtype)  # type: ignore[no-untyped-call]
    return result


def _multiply_unpacked(left: Tensor, right: Tensor, bias: Tensor | None = None) -> Tensor:
    return multiply(left, unpacked(right), bias, is_packed=True)


class _Product(torch.autograd.Function):
    """x W + b by oneDNN; with a bias, MKL computes the weight's gradient, a product of large tensors."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, dtype: torch.dtype) -> Tensor:
        own_dtype, x, weight = weight.dtype, x.to(dtype), weight.to(dtype)
        ctx.save_for_backward(x, weight)
        ctx.has_bias = bias is not None
        return _multiply_unpacked(x, weight, bias).to(own_dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        d_y, dtype = gradients[0].to(x.dtype), gradients[0].dtype
        d_weight = multiply_once(x.mT, d_y) if ctx.has_bias else _multiply_unpacked(x.mT, d_y)
        d_bias = gradients[0].sum(dim=0) if ctx.has_bias else None
        return _multiply_unpacked(d_y, weight.mT).to(dtype), d_weight.to(dtype), d_bias, None


class InferenceProduct(NamedTuple):
    """A matrix and its bias, prepared for inference."""

    matrix: Tensor  # As `multiply`, or the quantised product, takes it; shape (I, O)
    bias: Tensor | None  # One number per column, float32, shape (O,), or None
    scales: Tensor | None  # One number per column, float32, shape (O,); int8 only
    is_packed: bool  # Whether the matrix is in the library's own layout
    rows_dtype: torch.dtype  # dtype of the rows that it is multiplied with


def build_inference_product(matrix: Tensor, bias: Tensor | None, precision: Precision) -> InferenceProduct:
    """Prepare a matrix, shape (I, O), and its bias for `inference_product`, quantising it for int8."""
    matrix = matrix.detach()
    bias = None if bias is None else bias.detach()
    dtype = precision.dtype
    if not precision.is_quantised:
        is_packed = can_pack(matrix[:1], dtype)
        prepared = pack(matrix.to(dtype, copy=not is_packed), is_packed)
        return InferenceProduct(prepared, bias, None, is_packed, dtype)
    quantised, scales = quantise_columns(matrix)
    if int8_product_works():
        return InferenceProduct(packed_int8(quantised), bias, scales, True, dtype)
    return InferenceProduct(quantised.float(), bias, scales, False, dtype)


def quantise_columns(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Quantise a matrix to integers from -127 to 127, int8, shape (I, O), and a scale per column, shape (O,)."""
    scales = matrix.abs().amax(dim=0).clamp(min=torch.finfo(matrix.dtype).tiny) / LARGEST_INT8
    return (matrix / scales).round().to(torch.int8), scales


def inference_product(rows: Tensor, product: InferenceProduct) -> Tensor:
    """Return rows x matrix + bias, float32, shape (n, O); TorchScript-compatible."""
    scales = product.scales
    if scales is None:
        return multiply(rows, product.matrix, product.bias, product.is_packed).to(torch.float32)
    row_scales = rows.abs().amax(dim=1, keepdim=True).clamp_(min=1e-30).div_(127.0)
    shifted = torch.div(rows, row_scales).round_().add_(128.0)
    if product.is_packed:
        sums = int8_product(shifted.to(torch.uint8), product.matrix, scales)
    else:
        sums = torch.matmul(shifted.sub_(128.0), product.matrix).mul_(scales)
    bias, scaled = product.bias, torch.mul(sums, row_scales)
    return scaled if bias is None else scaled.add_(bias)
