"""The dtype of matrix products."""

import functools
import os

import torch
from torch import Tensor

from elmo_zh.errors import ElmoZhError


def choose_product_dtype(chosen: torch.dtype | None, weight: Tensor) -> torch.dtype:
    """Return the dtype for products with a weight: the chosen one, that of an enclosing torch.autocast, or its own."""
    kind = weight.device.type
    if chosen is None and torch.is_autocast_enabled(kind):
        return torch.get_autocast_dtype(kind)
    return chosen or weight.dtype


# Instruction sets to which a user can limit oneDNN (ONEDNN_MAX_CPU_ISA) and that multiply no bfloat16.
_WITHOUT_BFLOAT16 = {"SSE41", "AVX", "AVX2", "AVX2_VNNI", "AVX512_CORE", "AVX512_CORE_VNNI"}


def has_fast_bfloat16(device: torch.device) -> bool:
    """Return whether a device has instructions for products in bfloat16: AVX512_BF16 or AMX, or an Ampere GPU's."""
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
    """Return the dtype in which a device multiplies numbers of a dtype.

    It is float32 for bfloat16 on a processor without instructions for it: torch emulates them three times slower, and
    there a row of the product depends on the rows beside it. Numbers are still rounded to bfloat16 before they are
    multiplied, so the results are at least as exact.
    """
    if dtype == torch.bfloat16 and device.type == "cpu" and not has_fast_bfloat16(device):
        return torch.float32
    return dtype


def choose_device(name: str) -> torch.device:
    """Return the device for one of `elmo_zh.choices.DEVICES`.

    Raises:
        ElmoZhError: If cuda is asked for and there is none.
    """
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise ElmoZhError(
            "No CUDA device was found. Use --device cpu or --set train.device=auto, or install a CUDA build of torch."
        )
    return torch.device("cuda" if name != "cpu" and available else "cpu")
