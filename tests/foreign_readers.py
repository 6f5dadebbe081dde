"""Readers that do what a file made to do harm does: run in the process that reads foreign HDF5 files."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from elmo_zh.errors import BundleError
from elmo_zh.hdf5.messages import Message


def well(path: Path, start: int) -> Iterator[Message]:
    yield Message({"path": str(path)}, [np.arange(start, start + 7, dtype=np.float32).reshape(7, 1)])
    yield Message({}, [np.zeros((0, 3), np.int64), np.array([True, False]), np.array(3.5)])


def crashing(path: Path, messages: int) -> Iterator[Message]:
    for number in range(messages):
        yield Message({"number": number})
    os.kill(os.getpid(), signal.SIGSEGV)


def dying_in_a_message(path: Path) -> Iterator[Message]:
    os.write(1, (100).to_bytes(8, "little") + b'{"fields":')
    os.abort()
    yield Message({})


def endless(path: Path) -> Iterator[Message]:
    while True:
        pass
    yield Message({})


def enormous(path: Path, num_bytes: int) -> Iterator[Message]:
    yield Message({"sum": float(np.zeros(num_bytes, np.uint8)[0])})


def claiming(path: Path) -> Iterator[Message]:
    """Say that an array of many terabytes follows."""
    header = b'{"fields": {}, "arrays": [["<f4", [1000000, 1000000]]]}'
    os.write(1, len(header).to_bytes(8, "little") + header)
    yield Message({})


def sending_objects(path: Path) -> Iterator[Message]:
    header = b'{"fields": {}, "arrays": [["|O", [1]]]}'
    os.write(1, len(header).to_bytes(8, "little") + header + bytes(8))
    yield Message({})


def writing(path: Path) -> Iterator[Message]:
    (path.parent / "written").write_bytes(b"harm")
    yield Message({})


def refusing(path: Path) -> Iterator[Message]:
    raise BundleError(f"{path} is refused.")
    yield Message({})


def faulty(path: Path) -> Iterator[Message]:
    raise AssertionError("a fault of this program")
    yield Message({})


def modules(path: Path) -> Iterator[Message]:
    yield Message({"modules": sorted(sys.modules), "folder": str(Path.cwd())})
