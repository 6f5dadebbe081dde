"""Tensors in files: an error of the disk is an OSError with its number and file."""

import errno
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from elmo_zh.bundle.weights import load_tensors, save_tensors


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "model.safetensors"
    save_file({"weights": torch.arange(6.0)}, found)
    return found


def test_an_error_of_the_disk(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So torch tells it: found by letting every call of a training fail."""
    told = ["unable to mmap 144 bytes from file <model.safetensors>: Input/output error (5)", "a bug"]

    def fail(_: Path) -> None:
        raise RuntimeError(told.pop(0))

    monkeypatch.setattr("safetensors.torch.load_file", fail)
    with pytest.raises(OSError, match="Input/output error") as raised:
        load_tensors(path)
    assert (raised.value.errno, raised.value.filename) == (errno.EIO, str(path))
    with pytest.raises(RuntimeError, match="a bug"):
        load_tensors(path)


def test_whoever_may_read_other_new_files_may_read_tensors(tmp_path: Path) -> None:
    save_tensors({"weights": torch.arange(6.0)}, tmp_path / "tensors")
    (tmp_path / "other").touch()
    assert (tmp_path / "tensors").stat().st_mode == (tmp_path / "other").stat().st_mode
    assert load_tensors(tmp_path / "tensors")["weights"].tolist() == [0, 1, 2, 3, 4, 5]
