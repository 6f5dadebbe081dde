"""Products with their gradients, by oneDNN where it is available."""

from typing import Any

import torch
from torch import Tensor

from elmo_zh.model.kernels.products import can_pack, multiply, multiply_once, unpacked


def affine(x: Tensor, weight: Tensor, bias: Tensor, dtype: torch.dtype) -> Tensor:
    """Return x W + b, shape (n, O), with the product in `dtype` and the sum in that of the weights.

    Args:
        x: Shape (n, I).
        weight: Shape (I, O).
        bias: Shape (O,).
        dtype: dtype of the product.
    """
    if torch.compiler.is_compiling() or not can_pack(bias, dtype):
        if dtype == weight.dtype:
            return torch.addmm(bias, x, weight)
        return multiply_once(x.to(dtype), weight.to(dtype)).to(weight.dtype) + bias
    result: Tensor = _Affine.apply(x, weight, bias, dtype)  # type: ignore[no-untyped-call]
    return result


def steady_product(x: Tensor, weight: Tensor, dtype: torch.dtype) -> Tensor:
    """Return x W, shape (n, O), in the dtype of the weights, with the product in `dtype`.

    Where oneDNN is available, neither the other rows of x nor the number of threads change a bit of a row or of the
    gradients; torch's own products, by MKL, depend on both on some processors.

    Args:
        x: Shape (n, I).
        weight: Shape (I, O).
        dtype: dtype of the product.
    """
    if not can_pack(weight, dtype):
        return multiply_once(x.to(dtype), weight.to(dtype)).to(weight.dtype)
    result: Tensor = _SteadyProduct.apply(x, weight, dtype)  # type: ignore[no-untyped-call]
    return result


class _SteadyProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, dtype: torch.dtype) -> Tensor:
        ctx.save_for_backward(x.to(dtype), weight.to(dtype))
        return _multiply_unpacked(*ctx.to_save).to(weight.dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        d_y, dtype = gradients[0].to(x.dtype), gradients[0].dtype
        return _multiply_unpacked(d_y, weight.mT).to(dtype), _multiply_unpacked(x.mT, d_y).to(dtype), None


def _multiply_unpacked(left: Tensor, right: Tensor, bias: Tensor | None = None) -> Tensor:
    return multiply(left, unpacked(right), bias, is_packed=True)


class _Affine(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, dtype: torch.dtype) -> Tensor:
        x, weight = x.to(dtype), weight.to(dtype)
        ctx.save_for_backward(x, weight)
        return _multiply_unpacked(x, weight, bias).to(bias.dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        d_y, dtype = gradients[0].to(x.dtype), gradients[0].dtype
        return (
            _multiply_unpacked(d_y, weight.mT).to(dtype),
            multiply_once(x.mT, d_y).to(dtype),
            gradients[0].sum(dim=0),
            None,
        )
