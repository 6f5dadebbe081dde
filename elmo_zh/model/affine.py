"""y = x W + b with its gradient, on packed matrices where they can be had."""

from typing import Any

import torch
from torch import Tensor

from elmo_zh.model.products import can_pack, multiply, pack


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
    result: Tensor = _PackedAffine.apply(x, weight, bias, dtype)  # type: ignore[no-untyped-call]
    return result


class _PackedAffine(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, dtype: torch.dtype) -> Tensor:
        x_in_products, weight_in_products = x.to(dtype), weight.to(dtype)
        ctx.save_for_backward(x_in_products, weight)
        return multiply(x_in_products, pack(weight_in_products, is_packed=True), bias, is_packed=True).to(bias.dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        d_y = gradients[0].to(x.dtype)
        d_x = multiply(d_y, pack(weight.to(x.dtype).mT, is_packed=True), None, is_packed=True).to(weight.dtype)
        return d_x, torch.mm(x.mT, d_y).to(weight.dtype), gradients[0].sum(dim=0), None
