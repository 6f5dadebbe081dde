"""Foreign HDF5 is read in another process: its crash, its endless loop, its memory are one line, and no harm."""

import errno
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import h5py
import numpy as np
import pytest
from contract.command_line import changed_json
from drawn_bundles import SHAPES, write_model

from elmo_zh.bundle.golden import load_golden
from elmo_zh.bundle.layout import BundleLayout
from elmo_zh.bundle.read import load_bundle
from elmo_zh.errors import BundleError, UnsafeFileError
from elmo_zh.hdf5 import foreign_file, reader_process
from elmo_zh.hdf5.create import has_attributes
from elmo_zh.hdf5.foreign_file import ForeignFile
from elmo_zh.run.files import file_digest

pytestmark = pytest.mark.usefixtures("hdf5_in_its_process")

VALUES = np.random.default_rng(5).normal(size=(11, 3))
UNUSABLE = " makes the HDF5 library crash, take too long or return unusable data"
NOTHING: dict[str, Any] = {"strings": {}, "others": {}, "arrays": {}}
Hostile = Callable[[str], None]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with h5py.File(tmp_path / "some.hdf5", "w") as file:
        file["x"] = VALUES
    return tmp_path / "some.hdf5"


@pytest.fixture
def hostile(monkeypatch: pytest.MonkeyPatch) -> Hostile:
    """Let the process do what a file made to do harm does, when it should copy the file."""

    def replace(code: str) -> None:
        program = (
            "import json, os, signal, sys; sys.path[:] = sys.argv[1:]\nfrom elmo_zh.hdf5 import reader_process\n"
            f"def copy(source, output):\n    {code}\nreader_process.copy = copy\n"
        )
        monkeypatch.setattr(foreign_file, "_PROGRAM", program.replace("{", "{{").replace("}", "}}") + CALL)

    return replace


CALL = "reader_process.main({})"


@pytest.mark.parametrize(
    "code",
    [
        "os.kill(os.getpid(), signal.SIGSEGV)",
        "output.write(b'no JSON')",
        "output.write(b'[' * 100_000)",
        "output.write(b'{}\\n')",
        # More than any file holds, all of it in the description.
        "output.writelines(bytes(2**20) for _ in range(10**6))",
        # An array of many terabytes, a type that executes what it reads, a size below zero.
        f"output.write(json.dumps({NOTHING | {'arrays': {'x': ['<f4', [10**6, 10**6]]}}}).encode() + b'\\n')",
        f"output.write(json.dumps({NOTHING | {'arrays': {'x': ['|O', [1]]}}}).encode() + b'\\n' + bytes(8))",
        f"output.write(json.dumps({NOTHING | {'arrays': {'x': ['<f4', [-1]]}}}).encode() + b'\\n')",
    ],
)
def test_a_crash_is_one_line_and_the_next_file_is_read(
    path: Path, hostile: Hostile, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    hostile(code)
    with pytest.raises(UnsafeFileError) as caught:
        ForeignFile.open(path)
    assert caught.value.messages[0].startswith(f"{path}{UNUSABLE}")
    monkeypatch.undo()
    np.testing.assert_array_equal(ForeignFile.open(path).read_array("x", (11, 3)), VALUES.astype(np.float32))


def test_an_endless_loop_is_ended(path: Path, hostile: Hostile, monkeypatch: pytest.MonkeyPatch) -> None:
    hostile("\n    while True: pass")
    monkeypatch.setattr(foreign_file, "MOST_SECONDS", 2.0)
    with pytest.raises(UnsafeFileError, match=UNUSABLE):
        ForeignFile.open(path)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit address space")
def test_memory_is_limited(path: Path, hostile: Hostile) -> None:
    for share, kind, told in ((4, BundleError, "none"), (1, UnsafeFileError, UNUSABLE)):
        hostile(
            f"bytearray({reader_process.MOST_BYTES // share}); output.write(json.dumps({{'problem': 'none'}}).encode())"
        )
        with pytest.raises(kind, match=told):
            ForeignFile.open(path)


def test_stricter_limits_of_the_user_stay(path: Path) -> None:
    code = "from elmo_zh.hdf5.foreign_file import ForeignFile; from pathlib import Path; import sys\n"
    code += "print(*ForeignFile.open(Path(sys.argv[1])).names())"
    limited = f"ulimit -v {3 * 2**20} -f {2**20} -n 64; exec '{sys.executable}' -c '{code}' '{path}'"
    done = subprocess.run(["bash", "-c", limited], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "x\n"), done.stderr


@pytest.mark.parametrize("code", ["open('written', 'wb').write(b'harm')", "open(sys.executable, 'rb')"])
def test_no_file_can_be_opened(path: Path, hostile: Hostile, monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    monkeypatch.chdir(path.parent)
    hostile(code)
    with pytest.raises(UnsafeFileError, match=UNUSABLE):
        ForeignFile.open(path)
    assert [found.name for found in path.parent.iterdir()] == ["some.hdf5"]


def test_the_process_has_neither_torch_nor_the_current_folder(
    path: Path, hostile: Hostile, monkeypatch: pytest.MonkeyPatch
) -> None:
    (path.parent / "h5py.py").write_text("raise SystemExit('from the current folder')", encoding="utf-8")
    monkeypatch.chdir(path.parent)
    monkeypatch.setattr(sys, "path", [folder for folder in sys.path if folder])
    hostile("output.write(json.dumps({'problem': sorted(sys.modules)}).encode())")
    with pytest.raises(BundleError, match="h5py") as caught:
        ForeignFile.open(path)
    assert not {"'torch'", "'jieba'", "'click'"} & set(caught.value.messages[0].replace(",", "").split())


def test_a_copy_that_does_not_fit_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign_file, "_run", Mock(return_value=errno.ENOSPC))
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)) as caught:
        ForeignFile.open(path)
    assert caught.value.filename == tempfile.gettempdir()
    output = Mock(write=Mock(side_effect=OSError(errno.ENOSPC, "said")))
    with path.open("rb") as source, pytest.raises(SystemExit) as ended:
        reader_process.copy(source, output)
    assert ended.value.code == errno.ENOSPC


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.hdf5")
    for name in ("pipe.hdf5", "missing.hdf5", "."):
        with pytest.raises(BundleError, match="cannot be read as HDF5"):
            ForeignFile.open(tmp_path / name)


# Datasets


@pytest.mark.parametrize("dtype", ["<f4", "<f2", "<f8", ">f4"])
@pytest.mark.parametrize("stored", [{}, {"chunks": (2, 3), "compression": "gzip"}, {"chunks": (5, 2)}])
def test_arrays_are_those_that_h5py_reads(tmp_path: Path, dtype: str, stored: dict[str, object]) -> None:
    path = tmp_path / "x.hdf5"
    with h5py.File(path, "w", userblock_size=512) as file:
        file.create_dataset("group/x", data=VALUES.astype(dtype), **stored)
        file.create_dataset("no rows", data=np.zeros((0, 3), np.float32))
        file["group"].create_dataset("words", data=["好", "吃"], dtype=h5py.string_dtype())
        file["numbers"] = np.arange(3)
        file.attrs["layers"] = "all"
    shapes = {"group/x": (11, 3), "no rows": (0, 3)}
    file = ForeignFile.open(path)
    assert file.names() == {"group/x", "group/words", "no rows", "numbers"}
    assert (file.strings, file.others) == ({"group/words": ["好", "吃"]}, {"numbers": "int64 of shape (3,)"})
    found = dict(file.read_arrays(shapes))
    assert found["group/x"].dtype == np.float32
    np.testing.assert_array_equal(found["group/x"], VALUES.astype(dtype).astype(np.float32))
    assert found["no rows"].shape == (0, 3)
    assert has_attributes(path, {"layers"})
    assert not has_attributes(path, {"layers", "segmenter"})


def test_datasets_are_copied_in_pieces(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_process, "_PIECE_BYTES", 2 * VALUES[0].nbytes)
    output = BytesIO()
    with path.open("rb") as source:
        reader_process.copy(source, output)
    np.testing.assert_array_equal(np.frombuffer(output.getvalue().split(b"\n", 1)[1]).reshape(11, 3), VALUES)


def test_many_names_of_one_dataset_are_refused(tmp_path: Path) -> None:
    """A tied model has two names for its table of words; a hundred names would be a hundred times the memory."""
    layout = BundleLayout(write_model(tmp_path / "model", SHAPES["token"]))
    biases = [f"RNN_{direction}/RNN/MultiRNNCell/Cell{cell}/LSTMCell/B" for direction in (0, 1) for cell in (0, 1)]
    for names in (biases[:2], biases):
        with h5py.File(layout.weights, "r+") as file:
            shape = file[names[0]].shape
            for name in names[1:]:
                del file[name]
                file[name] = file[names[0]]
        if names == biases[:2]:
            assert len(dict(ForeignFile.open(layout.weights).read_arrays(dict.fromkeys(names, shape)))) == 2
    with changed_json(layout.info) as info:
        info["digests"][layout.weights.name] = file_digest(layout.weights)
    with pytest.raises(BundleError, match=r"weights\.hdf5 cannot be read as HDF5 \(a dataset has more than 2 names"):
        load_bundle(layout.path)


@pytest.mark.parametrize(("sentences", "tokens"), [(0, 1), (101, 1), (1, 1001)])
def test_golden_sentences_are_few_and_short(tmp_path: Path, sentences: int, tokens: int) -> None:
    path = tmp_path / "golden.hdf5"
    with h5py.File(path, "w") as file:
        for number in range(sentences):
            file[str(number)] = np.zeros((3, tokens, 2), np.float32)
            file.create_dataset(f"tokens/{number}", data=["好"] * tokens, dtype=h5py.string_dtype())
            file.create_dataset(f"texts/{number}", data="好", dtype=h5py.string_dtype())
    with pytest.raises(BundleError, match=r"golden\.hdf5 is damaged \("):
        load_golden(path)
