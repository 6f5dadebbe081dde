"""In which precision matrix products run."""

import torch
from torch import Tensor


def choose_product_dtype(chosen: torch.dtype | None, weight: Tensor) -> torch.dtype:
    """Return the dtype for products with a weight: the chosen one, that of an enclosing torch.autocast, or its own."""
    kind = weight.device.type
    if chosen is None and torch.is_autocast_enabled(kind):
        return torch.get_autocast_dtype(kind)
    return chosen or weight.dtype
