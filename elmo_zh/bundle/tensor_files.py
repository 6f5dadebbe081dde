"""Read tensors so that an error of the disk is one: torch, which maps the file, raises it as a RuntimeError."""

import os
from pathlib import Path

from safetensors.torch import load_file
from torch import Tensor

from elmo_zh.run.disk_space import system_error_number


def load_tensors(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a safetensors file.

    Raises:
        OSError: If the file cannot be read.
        SafetensorError: If it is damaged.
    """
    try:
        return load_file(path)
    except RuntimeError as error:
        number = system_error_number(error)
        if number is None:
            raise
        raise OSError(number, os.strerror(number), str(path)) from None
