"""Foreign HDF5 is read in another process: its crash, its endless loop, its memory are one line, and no harm."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

from elmo_zh.bundle.write import load_golden
from elmo_zh.errors import BundleError
from elmo_zh.hdf5 import foreign_file, has_attributes, reader_process
from elmo_zh.hdf5.foreign_file import ForeignFile

pytestmark = pytest.mark.usefixtures("hdf5_in_its_process")

VALUES = np.random.default_rng(5).normal(size=(11, 3))
UNUSABLE = r" is damaged \(it makes the HDF5 library crash or take too long"
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
        # More than any file holds, all of it in the description.
        "output.writelines(bytes(2**20) for _ in range(10**6))",
        # An array of many terabytes, a size below zero, numbers after the end of the file or of the copy.
        *(
            f"""output.write(json.dumps({{"arrays": {{"x": {array}}}}}).encode() + b'\\n')"""
            for array in (
                {"shape": [1_000_000, 1_000_000], "dtype": "<f4", "is_copied": False, "start": 0},
                {"shape": [-1], "dtype": "<f4", "is_copied": False, "start": 0},
                {"shape": [1], "dtype": "<f2", "is_copied": False, "start": 1 << 40},
                {"shape": [1], "dtype": "<f4", "is_copied": True, "start": 0},
                {"shape": [1], "dtype": "O", "is_copied": False, "start": 0},
            )
        ),
    ],
)
def test_a_crash_is_one_line_and_the_next_file_is_read(
    path: Path, hostile: Hostile, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    hostile(code)
    with pytest.raises(BundleError, match=UNUSABLE):
        ForeignFile(path)
    monkeypatch.undo()
    np.testing.assert_array_equal(ForeignFile(path).read_array("x", (11, 3)), VALUES.astype(np.float32))


def test_an_endless_loop_is_ended(path: Path, hostile: Hostile, monkeypatch: pytest.MonkeyPatch) -> None:
    hostile("\n    while True: pass")
    monkeypatch.setattr(foreign_file, "MOST_SECONDS", 2.0)
    with pytest.raises(BundleError, match=UNUSABLE):
        ForeignFile(path)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit address space")
def test_memory_is_limited(path: Path, hostile: Hostile) -> None:
    for share, told in ((4, "enough"), (1, UNUSABLE)):
        hostile(f'bytearray({reader_process.MOST_BYTES // share}); output.write(b\'{{"problem": "enough"}}\')')
        with pytest.raises(BundleError, match=told):
            ForeignFile(path)


def test_stricter_limits_of_the_user_stay(path: Path) -> None:
    code = "from elmo_zh.hdf5.foreign_file import ForeignFile; from pathlib import Path; import sys\n"
    code += "print(*ForeignFile(Path(sys.argv[1])).names())"
    limited = f"ulimit -v {3 * 2**20} -f {2**20} -n 64; exec '{sys.executable}' -c '{code}' '{path}'"
    done = subprocess.run(["bash", "-c", limited], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "x\n"), done.stderr


@pytest.mark.parametrize("code", ["open('written', 'wb').write(b'harm')", "open(sys.executable, 'rb')"])
def test_no_file_can_be_opened(path: Path, hostile: Hostile, monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    monkeypatch.chdir(path.parent)
    hostile(code)
    with pytest.raises(BundleError, match=UNUSABLE):
        ForeignFile(path)
    assert [found.name for found in path.parent.iterdir()] == ["some.hdf5"]


def test_the_process_has_neither_torch_nor_the_current_folder(
    path: Path, hostile: Hostile, monkeypatch: pytest.MonkeyPatch
) -> None:
    (path.parent / "h5py.py").write_text("raise SystemExit('from the current folder')", encoding="utf-8")
    monkeypatch.chdir(path.parent)
    monkeypatch.setattr(sys, "path", [folder for folder in sys.path if folder])
    hostile("output.write(json.dumps({'problem': ' '.join(sys.modules)}).encode())")
    with pytest.raises(BundleError, match="h5py") as caught:
        ForeignFile(path)
    assert not {"torch", "jieba", "click"} & set(caught.value.messages[0].split())


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.hdf5")
    for name in ("pipe.hdf5", "missing.hdf5", "."):
        with pytest.raises(BundleError, match="is missing"):
            ForeignFile(tmp_path / name)


# Datasets


@pytest.mark.parametrize("dtype", ["<f4", "<f2", "<f8", ">f4"])
@pytest.mark.parametrize("stored", [{}, {"chunks": (2, 3), "compression": "gzip"}, {"chunks": (5, 2)}])
def test_arrays_are_those_that_h5py_reads(tmp_path: Path, dtype: str, stored: dict[str, object]) -> None:
    path = tmp_path / "x.hdf5"
    with h5py.File(path, "w", userblock_size=512) as file:
        file.create_dataset("group/x", data=VALUES.astype(dtype), **stored)
        file.create_dataset("no rows", data=np.zeros((0, 3), np.float32))
        file["group"].create_dataset("words", data=["好", "吃"], dtype=h5py.string_dtype())
        file["also x"] = file["group/x"]
        file["numbers"] = np.arange(3)
        file.attrs["layers"] = "all"
    shapes = {"group/x": (11, 3), "no rows": (0, 3)}
    file = ForeignFile(path)
    assert file.names() == {"group/x", "also x", "group/words", "no rows", "numbers"}
    assert file.strings == {"group/words": ["好", "吃"]}
    with pytest.raises(BundleError, match=r"dataset numbers is int64 of shape \(3,\); expected floats of shape \(3,\)"):
        file.require_array("numbers", (3,))
    found = {name: file.read_array(name, shape) for name, shape in shapes.items()}
    assert found["group/x"].dtype == np.float32
    np.testing.assert_array_equal(found["group/x"], VALUES.astype(dtype).astype(np.float32))
    assert found["no rows"].shape == (0, 3)
    is_in_place = dtype in ("<f4", "<f2") and not stored
    assert np.shares_memory(file.read_array("also x", (11, 3)), found["group/x"]) == is_in_place
    assert has_attributes(path, {"layers"})
    assert not has_attributes(path, {"layers", "segmenter"})


@pytest.mark.parametrize(("sentences", "tokens"), [(0, 1), (1, 0), (1, 10_001)])
def test_golden_sentences_are_few_and_short(tmp_path: Path, sentences: int, tokens: int) -> None:
    path = tmp_path / "golden.hdf5"
    with h5py.File(path, "w") as file:
        for number in range(sentences):
            file[str(number)] = np.zeros((3, tokens, 2), np.float32)
            file.create_dataset(f"tokens/{number}", data=["好"] * tokens, dtype=h5py.string_dtype())
            file.create_dataset(f"texts/{number}", data="好", dtype=h5py.string_dtype())
    with pytest.raises(BundleError, match=r"golden\.hdf5 is damaged \("):
        load_golden(path)
