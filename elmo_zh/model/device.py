"""Where to compute."""

import torch

from elmo_zh.errors import ElmoZhError

DEVICES = ("auto", "cpu", "cuda")


def choose_device(name: str) -> torch.device:
    """Return the device for one of DEVICES.

    Raises:
        ElmoZhError: If cuda is asked for and there is none.
    """
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise ElmoZhError(
            "No CUDA device was found. Use --device cpu or --set train.device=auto, or install a CUDA build of torch."
        )
    return torch.device("cuda" if name != "cpu" and available else "cpu")
