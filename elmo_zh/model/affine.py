"""y = x W + b with its gradient, by oneDNN where it can be had."""

from typing import Any

import torch
from torch import Tensor

from elmo_zh.model.products import can_pack, multiply, unpacked


def affine(x: Tensor, weight: Tensor, bias: Tensor, dtype: torch.dtype) -> Tensor:
    """Return x W + b, shape (n, O), with the product in `dtype` and the sum in that of the weights.

    Args:
        x: Shape (n, I).
        weight: Shape (I, O).
        bias: Shape (O,).
        dtype: Of the product.
    """
    if torch.compiler.is_compiling() or not can_pack(bias, dtype):
        if dtype == weight.dtype:
            return torch.addmm(bias, x, weight)
        return (x.to(dtype) @ weight.to(dtype)).to(weight.dtype) + bias
    result: Tensor = _Affine.apply(x, weight, bias, dtype)  # type: ignore[no-untyped-call]
    return result


class _Affine(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, dtype: torch.dtype) -> Tensor:
        x, weight = x.to(dtype), weight.to(dtype)
        ctx.save_for_backward(x, weight)
        return multiply(x, unpacked(weight), bias, is_packed=True).to(bias.dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        d_y, dtype = gradients[0].to(x.dtype), gradients[0].dtype
        d_x = multiply(d_y, unpacked(weight.mT), None, is_packed=True).to(dtype)
        return d_x, torch.mm(x.mT, d_y).to(dtype), gradients[0].sum(dim=0), None
