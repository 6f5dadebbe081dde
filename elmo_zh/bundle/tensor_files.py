"""Read tensors so that an error of the disk is one: torch, which maps the file, raises it as a RuntimeError."""

import os
import re
from pathlib import Path

from safetensors.torch import load_file
from torch import Tensor

# "unable to open file <...> in read-only mode: Input/output error (5)"
_NUMBER_AT_END = re.compile(r"\((\d+)\)\s*$")


def load_tensors(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a safetensors file.

    Raises:
        OSError: If the file cannot be read.
        SafetensorError: If it is damaged.
    """
    try:
        return load_file(path)
    except RuntimeError as error:
        number = _NUMBER_AT_END.search(str(error))
        if number is None:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1])), str(path)) from None
