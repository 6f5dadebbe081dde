"""Readers that do what a file made to do harm does: run in the process that reads foreign HDF5 files."""

import importlib
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from elmo_zh.errors import BundleError

Answer = Iterator[tuple[dict[str, Any], dict[str, Any]]]


def well(path: Path, start: int) -> Answer:
    numbers = np.arange(start, start + 7, dtype=np.float32).reshape(7, 1)
    yield {"path": str(path)}, {"numbers": numbers, "none": np.zeros((0, 3), np.float64), "half": numbers.astype(">f2")}


def crashing(path: Path, size: int) -> Answer:
    class Dying(np.ndarray[Any, Any]):
        def __getitem__(self, _: Any) -> Any:
            os.kill(os.getpid(), signal.SIGSEGV)

    yield {}, {"numbers": np.zeros((size, 3), np.float32), "dying": np.zeros((1, 3), np.float32).view(Dying)}


def endless(path: Path) -> Answer:
    while True:
        pass
    yield {}, {}


def enormous(path: Path, num_bytes: int) -> Answer:
    yield {"sum": float(np.zeros(num_bytes, np.uint8)[0])}, {}


def sending(path: Path, data: str) -> Answer:
    """Send what no reader sends, and more than any file holds if the data are "much"."""
    if data == "much":
        while True:
            os.write(1, bytes(2**20))
    os.write(1, data.encode("latin-1"))
    os._exit(0)
    yield {}, {}


def claiming(path: Path) -> Answer:
    """Say that an array of many terabytes follows."""
    array = {"dtype": "F32", "shape": [1_000_000, 1_000_000], "data_offsets": [0, 4 * 10**12]}
    header = json.dumps({"__metadata__": {"fields": "{}"}, "x": array}).encode()
    os.write(1, len(header).to_bytes(8, "little") + header)
    os._exit(0)
    yield {}, {}


def writing(path: Path) -> Answer:
    (path.parent / "written").write_bytes(b"harm")
    yield {}, {}


def refusing(path: Path) -> Answer:
    raise BundleError(f"{path} is refused.")
    yield {}, {}


def faulty(path: Path) -> Answer:
    raise AssertionError("a fault of this program")
    yield {}, {}


def modules(path: Path, module: str = "elmo_zh.hdf5.readers") -> Answer:
    importlib.import_module(module)
    yield {"modules": sorted(sys.modules), "folder": str(Path.cwd())}, {}
