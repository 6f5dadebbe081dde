"""Precisions of matrix products, and the device that computes them."""

import functools
import os
from dataclasses import dataclass

import torch
from torch import Tensor

from elmo_zh.errors import ElmoZhError
from elmo_zh.language import _


@dataclass(frozen=True, kw_only=True)
class Precision:
    """A precision of matrix products; states, weights and sums keep the weights' dtype."""

    name: str  # Its name in settings, commands and records
    dtype: torch.dtype  # dtype that the factors of products are rounded to; float32 keeps the dtype of the weights
    # Whether products are of 8-bit integers instead (`kernels.products`), for inference on a CPU only.
    is_quantised: bool = False

    def product_dtype(self, weight: Tensor) -> torch.dtype:
        """Return the dtype of products with a weight; for float32, an enclosing torch.autocast decides."""
        if self.dtype != torch.float32:
            return self.dtype
        kind = weight.device.type
        return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else weight.dtype


FLOAT32 = Precision(name="float32", dtype=torch.float32)
BFLOAT16 = Precision(name="bfloat16", dtype=torch.bfloat16)
INT8 = Precision(name="int8", dtype=torch.float32, is_quantised=True)
# By name; settings and commands offer the same names (`elmo_zh.choices`).
PRECISIONS = {precision.name: precision for precision in (FLOAT32, BFLOAT16, INT8)}


# Instruction sets without bfloat16 products to which a user can limit oneDNN (ONEDNN_MAX_CPU_ISA).
_WITHOUT_BFLOAT16 = {"SSE41", "AVX", "AVX2", "AVX2_VNNI", "AVX512_CORE", "AVX512_CORE_VNNI"}


def has_bfloat16(device: torch.device) -> bool:
    """Return whether a device has instructions for bfloat16 products, which may still be slower than float32."""
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= (8, 0)
    return _processor_multiplies_bfloat16()


@functools.cache
def _processor_multiplies_bfloat16() -> bool:
    limits = {os.environ.get(name, "").upper() for name in ("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA")}
    capabilities = torch.cpu.get_capabilities()
    has_instructions = any(capabilities.get(name, False) for name in ("avx512_bf16", "amx_bf16"))
    return has_instructions and not limits & _WITHOUT_BFLOAT16


def computed_dtype(dtype: torch.dtype, device: torch.device) -> torch.dtype:
    """Return the dtype that a device really uses to multiply numbers of the given dtype.

    A CPU without bfloat16 instructions uses float32 instead: torch's emulation is three times slower, and makes each
    row of a product depend on its neighbours.
    """
    if dtype == torch.bfloat16 and device.type == "cpu" and not has_bfloat16(device):
        return torch.float32
    return dtype


def choose_device(name: str) -> torch.device:
    """Return the device for a name in `choices.DEVICES`; raise ElmoZhError if there is no GPU."""
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        missing = _("torch was built without CUDA") if torch.version.cuda is None else _("torch finds no CUDA device")
        raise ElmoZhError(
            _(
                "device cuda: {missing}. Choose device cpu or auto, or install a CUDA build of torch and"
                " NVIDIA's driver."
            ).format(missing=missing)
        )
    return torch.device("cuda" if name != "cpu" and available else "cpu")
