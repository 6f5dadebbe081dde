"""Dropout with masks that are cheap to draw."""

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional


def drop(values: Tensor, fraction: float) -> Tensor:
    """Return the values with a fraction of them set to zero and the others scaled up to keep the mean.

    On a processor torch draws its masks one number at a time; here 16 bits of a fast generator decide on each value, so
    the fraction is exact to 1/65,536. The generator is seeded from torch's, whose seed therefore fixes the masks.

    Args:
        values: Any shape, float32.
        fraction: Fraction to drop, from 0 (none) to below 1.
    """
    if fraction == 0:
        return values
    if values.device.type != "cpu" or torch.compiler.is_compiling():
        return functional.dropout(values, fraction)
    seed = int(torch.randint(2**62, ()))
    words = np.random.SFC64(seed).random_raw(-(-values.numel() // 4)).view(np.uint16)[: values.numel()]
    threshold = round(fraction * 2**16)
    kept = torch.from_numpy(words >= threshold).view(values.shape)
    return values * kept.to(values.dtype).mul_(2**16 / (2**16 - threshold))
