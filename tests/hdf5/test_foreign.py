"""Foreign HDF5 is read in another process: its crash, its endless loop, its memory are one line, and no harm."""

import errno
import sys
import tempfile
from io import BytesIO
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import foreign_readers
import h5py
import numpy as np
import pytest
from contract.command_line import changed_json
from drawn_bundles import SHAPES, write_model
from safetensors.numpy import load

from elmo_zh.bundle.golden import read_golden
from elmo_zh.bundle.layout import BundleLayout
from elmo_zh.bundle.read import load_bundle
from elmo_zh.errors import BundleError, UnsafeFileError
from elmo_zh.hdf5 import foreign, reader_process
from elmo_zh.hdf5.foreign import MOST_BYTES, Reader, read_foreign
from elmo_zh.hdf5.foreign_file import ForeignFile
from elmo_zh.run.files import file_digest

pytestmark = pytest.mark.usefixtures("hdf5_in_its_process")

PATH = Path("some.hdf5")
CRASHED = (
    "some.hdf5 makes the HDF5 library crash or return unusable data and may be damaged or malicious. Do not use the"
    " file; get a new copy from a source that you trust."
)


def test_fields_and_arrays_arrive_as_they_were_sent() -> None:
    found = read_foreign(foreign_readers.well, PATH, start=5)
    numbers = np.arange(5, 12, dtype=np.float32)[:, None]
    assert found.fields == {"path": "some.hdf5"}
    np.testing.assert_array_equal(found.array("numbers"), numbers)
    np.testing.assert_array_equal(found.array("half"), numbers)
    assert (found.array("none").shape, found.array("none").dtype) == ((0, 3), np.float64)


@pytest.mark.parametrize(
    ("reader", "arguments"),
    [
        (foreign_readers.crashing, {"size": 10_000}),
        (foreign_readers.claiming, {}),
        (foreign_readers.sending, {"data": "no safetensors"}),
        (foreign_readers.sending, {"data": "much"}),
    ],
)
def test_a_crash_is_one_line_and_the_next_file_is_read(reader: Reader, arguments: dict[str, Any]) -> None:
    with pytest.raises(UnsafeFileError) as caught:
        read_foreign(reader, PATH, **arguments)
    assert caught.value.messages == (CRASHED,)
    assert read_foreign(foreign_readers.well, PATH, start=2).array("numbers")[0] == 2


def test_an_endless_loop_is_ended() -> None:
    with pytest.raises(UnsafeFileError, match=r"^some\.hdf5 takes too long to read and .* Do not use the file; "):
        read_foreign(foreign_readers.endless, PATH, seconds=0.1)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit address space")
def test_memory_is_limited() -> None:
    with pytest.raises(UnsafeFileError, match=r"^some\.hdf5 takes more than 4 GiB of memory to read\. "):
        read_foreign(foreign_readers.enormous, PATH, num_bytes=MOST_BYTES)
    assert read_foreign(foreign_readers.enormous, PATH, num_bytes=MOST_BYTES // 4).fields == {"sum": 0.0}


def test_no_file_can_be_written(tmp_path: Path) -> None:
    with pytest.raises((BundleError, UnsafeFileError)):
        read_foreign(foreign_readers.writing, tmp_path / "some.hdf5")
    assert not (tmp_path / "written").exists() or (tmp_path / "written").read_bytes() == b""


def test_a_copy_that_does_not_fit_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign, "_run", Mock(side_effect=OSError(errno.ENOSPC, "said")))
    with pytest.raises(OSError, match="said") as caught:
        read_foreign(foreign_readers.well, PATH)
    assert Path(caught.value.filename).match(f"{tempfile.gettempdir()}/elmo-zh-*.safetensors")


def test_known_problems_come_through_and_faults_of_the_program_keep_their_traceback() -> None:
    with pytest.raises(BundleError, match=r"^some\.hdf5 is refused\.$"):
        read_foreign(foreign_readers.refusing, PATH)
    with pytest.raises(RuntimeError, match="AssertionError: a fault of this program"):
        read_foreign(foreign_readers.faulty, PATH)


def test_the_reading_process_has_neither_torch_nor_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "h5py.py").write_text("raise SystemExit('from the current folder')", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    found = read_foreign(foreign_readers.modules, PATH)
    assert not {"torch", "jieba", "click"} & set(found.fields["modules"])
    golden = read_foreign(foreign_readers.modules, PATH, module="elmo_zh.bundle.golden")
    assert "torch" not in golden.fields["modules"]
    assert found.fields["folder"] == str(tmp_path)
    with h5py.File(tmp_path / "some.hdf5", "w") as file:
        file.create_dataset("x", data=np.zeros(3, np.float32))
    with pytest.raises(BundleError):
        read_foreign(read_golden, tmp_path / "some.hdf5")


# Datasets

VALUES = np.random.default_rng(5).normal(size=(11, 3))


@pytest.mark.parametrize("dtype", ["<f4", "<f2", "<f8", ">f4"])
@pytest.mark.parametrize("stored", [{}, {"chunks": (2, 3), "compression": "gzip"}, {"chunks": (5, 2)}])
def test_arrays_are_those_that_h5py_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: str, stored: dict[str, object]
) -> None:
    path = tmp_path / "x.hdf5"
    with h5py.File(path, "w", userblock_size=512) as file:
        file.create_dataset("group/x", data=VALUES.astype(dtype), **stored)
        file.create_dataset("no rows", data=np.zeros((0, 3), np.float32))
    shapes = {"group/x": (11, 3), "no rows": (0, 3)}
    file = ForeignFile.open(path, shapes)
    assert file.members == {"group", "no rows"}
    found = dict(file.read_arrays(shapes))
    assert found["group/x"].dtype == np.float32
    np.testing.assert_array_equal(found["group/x"], VALUES.astype(dtype).astype(np.float32))
    assert found["no rows"].shape == (0, 3)


def test_datasets_are_sent_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.hdf5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=VALUES, chunks=(2, 3))
    monkeypatch.setattr(reader_process, "PIECE_BYTES", 2 * VALUES[0].nbytes)
    output = BytesIO()
    with h5py.File(path) as file:
        reader_process.save(output, {}, {"x": file["x"]})
    np.testing.assert_array_equal(load(output.getvalue())["x"], VALUES)


def test_many_names_of_one_dataset_are_refused(tmp_path: Path) -> None:
    """A tied model has two names for its table of words."""
    layout = BundleLayout(write_model(tmp_path / "model", SHAPES["token"]))
    biases = [f"RNN_{direction}/RNN/MultiRNNCell/Cell{cell}/LSTMCell/B" for direction in (0, 1) for cell in (0, 1)]
    with h5py.File(layout.weights, "r+") as file:
        for name in biases[1:]:
            del file[name]
            file[name] = file[biases[0]]
    shape = tuple(ForeignFile.open(layout.weights).datasets[biases[0]]["shape"])
    shapes = dict.fromkeys(biases[:2], shape)
    assert len(dict(ForeignFile.open(layout.weights, shapes).read_arrays(shapes))) == 2
    with changed_json(layout.info) as info:
        info["digests"][layout.weights.name] = file_digest(layout.weights)
    with pytest.raises(BundleError, match=r"weights\.hdf5: more than 2 names refer to dataset RNN_.*/B\."):
        load_bundle(layout.path)


def test_golden_vectors_are_bounded_together(tmp_path: Path) -> None:
    """A hundred names of one dataset are 300 MB in a file of 3 MB."""
    path = tmp_path / "golden.hdf5"
    with h5py.File(path, "w") as file:
        file.attrs["tolerance"] = 1e-5
        file["0"] = np.zeros(750_000, np.float32)
        for number in range(100):
            file.create_dataset(f"tokens/{number}", data=["好"], dtype=h5py.string_dtype())
            file.create_dataset(f"texts/{number}", data="好", dtype=h5py.string_dtype())
            if number:
                file[str(number)] = file["0"]
    with pytest.raises(BundleError, match=r"golden\.hdf5 is damaged \(.*the vectors of a sentence are float32"):
        read_foreign(read_golden, path)
