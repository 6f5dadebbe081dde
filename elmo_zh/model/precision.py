"""In which precision matrix products run."""

import torch
from torch import Tensor


def choose_product_dtype(chosen: torch.dtype | None, weight: Tensor) -> torch.dtype:
    """Return the dtype for products with a weight: the chosen one, that of an enclosing torch.autocast, or its own."""
    kind = weight.device.type
    if chosen is None and torch.is_autocast_enabled(kind):
        return torch.get_autocast_dtype(kind)
    return chosen or weight.dtype


def has_fast_bfloat16(device: torch.device) -> bool:
    """Return whether a device has instructions for products in bfloat16: AVX512_BF16 or AMX, or an Ampere GPU's."""
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= (8, 0)
    capabilities = torch.cpu.get_capabilities()
    return any(capabilities.get(name, False) for name in ("avx512_bf16", "amx_bf16"))
