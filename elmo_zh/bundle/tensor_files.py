"""Read and write safetensors files."""

import os
from collections.abc import Mapping
from pathlib import Path

from safetensors.torch import load_file, save_file
from torch import Tensor

from elmo_zh.run.disk_space import system_error_number


def load_tensors(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a safetensors file; raise OSError or SafetensorError if it is unreadable or damaged."""
    try:
        return load_file(path)
    except RuntimeError as error:
        # torch maps the file, and reports errors of the disk as RuntimeError.
        number = system_error_number(error)
        if number is None:
            raise
        raise OSError(number, os.strerror(number), str(path)) from None


def save_tensors(tensors: Mapping[str, Tensor], path: Path) -> None:
    """Write tensors to a safetensors file that the same people may read as any other new file."""
    path.touch()
    mode = path.stat().st_mode
    save_file(dict(tensors), path)  # only the owner may read what safetensors creates
    path.chmod(mode)
