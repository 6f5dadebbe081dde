"""The process that reads one untrusted HDF5 file, with limits and without torch.

A file that makes the HDF5 library crash, allocate or loop ends this process, and nothing else. Findings go to
standard output as safetensors, an error to standard error as JSON.
"""

import importlib
import json
import os
import signal
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from elmo_zh.errors import ElmoZhError
from elmo_zh.hdf5.foreign import MOST_BYTES

try:
    import resource
except ImportError:  # not a Unix: without limits on memory
    resource = None  # type: ignore[assignment]

_MOST_OPEN_FILES = 64
# Bytes that are read and sent at a time.
PIECE_BYTES = 1 << 24
# Exceptions that h5py raises for damaged files.
_DAMAGE = (OSError, RuntimeError, LookupError, ValueError, TypeError, AttributeError, ArithmeticError, SystemError)
_TYPES = {"f2": "F16", "f4": "F32", "f8": "F64"}


def main() -> None:
    """Read the file named on standard input, and exit."""
    wanted = json.load(sys.stdin)
    reader = getattr(importlib.import_module(wanted["module"]), wanted["function"])
    with os.fdopen(1, "wb", closefd=False) as output, os.fdopen(os.dup(2), "w", encoding="utf-8") as told:
        # The C library writes to the standard error when it crashes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        _limit()
        try:
            _set_alarm(wanted["seconds"])
            for fields, arrays in reader(Path(wanted["path"]), **wanted["arguments"]):
                save(output, fields, arrays, wanted["seconds"])
            _set_alarm(0)
        except BrokenPipeError:
            return
        except Exception as error:
            told.write(described(error))


def described(error: Exception) -> str:
    """Return an error as this process reports it: as JSON, or as a traceback if it is a bug in this program."""
    if isinstance(error, ElmoZhError):
        return json.dumps({"kind": "refused", "error": type(error).__name__, "messages": error.messages})
    if isinstance(error, MemoryError):
        return json.dumps({"kind": "too large"})
    if isinstance(error, _DAMAGE):
        return json.dumps({"kind": "damaged", "problem": " ".join(str(error).split())[:500]})
    return traceback.format_exc()


def save(output: BinaryIO, fields: dict[str, Any], arrays: Mapping[str, Any], seconds: float = 0) -> None:
    """Save values and arrays as safetensors, a few rows at a time; each read may take `seconds` (0: no limit)."""
    header: dict[str, Any] = {"__metadata__": {"fields": json.dumps(fields)}}
    end = 0
    for name, array in arrays.items():
        start, end = end, end + array.nbytes
        kind = _TYPES[array.dtype.str[1:]]
        header[name] = {"dtype": kind, "shape": array.shape, "data_offsets": [start, end]}
    described = json.dumps(header).encode()
    output.write(len(described).to_bytes(8, "little") + described)
    for array in arrays.values():
        num_rows = len(array) if array.size else 0
        step = max(1, PIECE_BYTES * num_rows // max(1, array.nbytes))
        for first in range(0, num_rows, step):
            _set_alarm(seconds)
            piece = array[first : first + step]
            _set_alarm(0)
            output.write(np.ascontiguousarray(piece, piece.dtype.newbyteorder("<")).data)
    output.flush()


def _limit() -> None:
    if resource is None:
        return
    # macOS gives each process hundreds of GB of addresses, and refuses a limit below that.
    memory = () if sys.platform == "darwin" else ((resource.RLIMIT_AS, MOST_BYTES),)
    for limit, value in (
        *memory,
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, _MOST_OPEN_FILES),
    ):
        _, hard = resource.getrlimit(limit)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(limit, (value, value))


def _set_alarm(seconds: float) -> None:
    """Have the kernel kill this process after some time, whatever it is doing; 0 means never."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)
