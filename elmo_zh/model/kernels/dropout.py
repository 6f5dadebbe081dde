"""Dropout with masks that cost little to draw."""

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional


def drop(values: Tensor, share: float) -> Tensor:
    """Return the values with a share of them set to zero and the others scaled up by as much.

    torch draws its masks on a processor one number at a time; here 16 bits of a fast generator decide on each, so the
    share is kept to a 65,536th. The generator is seeded from torch's, whose seed therefore fixes the masks.

    Args:
        values: Any shape, float32.
        share: From 0 (nothing happens) to below 1.
    """
    if share == 0:
        return values
    if values.device.type != "cpu" or torch.compiler.is_compiling():
        return functional.dropout(values, share)
    seed = int(torch.randint(2**62, ()))
    words = np.random.SFC64(seed).random_raw(-(-values.numel() // 4)).view(np.uint16)[: values.numel()]
    threshold = round(share * 2**16)
    kept = torch.from_numpy(words >= threshold).view(values.shape)
    return values * kept.to(values.dtype).mul_(2**16 / (2**16 - threshold))
