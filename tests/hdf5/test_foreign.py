"""Foreign HDF5 is read in another process: its crash, its endless loop, its memory are one line, and no harm."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import foreign_readers
import h5py
import numpy as np
import pytest
from drawn_bundles import SHAPES, write_model

from elmo_zh.bundle.golden import read_golden
from elmo_zh.bundle.layout import BundleLayout
from elmo_zh.bundle.read import load_bundle
from elmo_zh.errors import BundleError, UnsafeFileError
from elmo_zh.hdf5 import foreign, readers
from elmo_zh.hdf5.foreign import MOST_BYTES, read_foreign
from elmo_zh.hdf5.foreign_file import ForeignFile
from elmo_zh.hdf5.messages import Message
from elmo_zh.run.files import file_digest

PATH = Path("some.hdf5")
Reader = Callable[..., Iterator[Message]]


def read_well(start: int = 5) -> None:
    first, second = read_foreign(foreign_readers.well, PATH, start=start)
    assert first.fields == {"path": "some.hdf5"}
    np.testing.assert_array_equal(first.arrays[0], np.arange(start, start + 7, dtype=np.float32)[:, None])
    assert [(array.dtype.str, array.shape) for array in second.arrays] == [("<i8", (0, 3)), ("|b1", (2,)), ("<f8", ())]
    assert second.arrays[1].tolist() == [True, False]
    assert second.arrays[2] == 3.5


def test_messages_arrive_as_they_were_sent() -> None:
    read_well(5)
    read_well(11)


@pytest.mark.parametrize(
    ("reader", "arguments"),
    [
        (foreign_readers.crashing, {"messages": 0}),
        (foreign_readers.crashing, {"messages": 3}),
        (foreign_readers.dying_in_a_message, {}),
        (foreign_readers.claiming, {}),
        (foreign_readers.sending_objects, {}),
    ],
)
def test_a_crash_is_one_line_and_the_next_file_is_read(reader: Reader, arguments: dict[str, int]) -> None:
    with pytest.raises(UnsafeFileError) as caught:
        list(read_foreign(reader, PATH, **arguments))
    assert caught.value.messages == (
        "some.hdf5 makes the HDF5 library crash: it is damaged, or made to do harm. Do not use it; get it again from a"
        " source that you trust.",
    )
    read_well()


def test_an_endless_loop_is_ended() -> None:
    with pytest.raises(UnsafeFileError, match=r"^some\.hdf5 takes too long to be read: .* Do not use it; "):
        list(read_foreign(foreign_readers.endless, PATH, seconds=0.1))
    read_well()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit address space")
def test_memory_is_limited() -> None:
    with pytest.raises(UnsafeFileError, match=r"^some\.hdf5 needs more than 4 GiB of memory to be read\. "):
        list(read_foreign(foreign_readers.enormous, PATH, num_bytes=MOST_BYTES))
    [message] = read_foreign(foreign_readers.enormous, PATH, num_bytes=MOST_BYTES // 4)
    assert message.fields == {"sum": 0.0}


def test_no_file_can_be_written(tmp_path: Path) -> None:
    with pytest.raises((BundleError, UnsafeFileError)):
        list(read_foreign(foreign_readers.writing, tmp_path / "some.hdf5"))
    assert not (tmp_path / "written").exists() or (tmp_path / "written").read_bytes() == b""


def test_known_problems_come_through_and_faults_of_the_program_keep_their_traceback() -> None:
    with pytest.raises(BundleError, match=r"^some\.hdf5 is refused\.$"):
        list(read_foreign(foreign_readers.refusing, PATH))
    with pytest.raises(RuntimeError, match="AssertionError: a fault of this program"):
        list(read_foreign(foreign_readers.faulty, PATH))


def test_two_files_at_once_and_one_given_up() -> None:
    first = read_foreign(foreign_readers.well, PATH, start=2)
    next(first)
    read_well()
    assert len(list(first)) == 1
    given_up = read_foreign(foreign_readers.crashing, PATH, messages=9)
    next(given_up)
    given_up.close()
    read_well()


def test_a_process_that_ended_while_it_waited_is_replaced() -> None:
    read_well()
    for process in foreign._waiting():
        os.kill(process._process.pid, foreign.signal.SIGALRM)
    read_well()


def test_threads_take_different_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign, "_Process", object)
    monkeypatch.setattr(foreign, "_processes", {})
    interval = sys.getswitchinterval()
    num_rounds = 20_000

    def take_and_give_back(_: int) -> int:
        for _ in range(num_rounds):
            foreign._waiting().append(foreign._take_process())
            foreign._take_process()
        return num_rounds

    try:
        sys.setswitchinterval(1e-6)
        with ThreadPoolExecutor(4) as threads:
            assert list(threads.map(take_and_give_back, range(4))) == [num_rounds] * 4
    finally:
        sys.setswitchinterval(interval)


def test_a_forked_process_does_not_use_the_same_one() -> None:
    read_well()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            read_well(3)
            foreign._stop_all()
            status = 0
        finally:
            os._exit(status)
    read_well(13)
    assert os.waitpid(child, 0)[1] == 0


def test_the_reading_process_has_neither_torch_nor_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "h5py.py").write_text("raise SystemExit('from the current folder')", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    foreign._stop_all()
    [message] = read_foreign(foreign_readers.modules, PATH)
    assert not {"torch", "jieba", "click"} & set(message.fields["modules"])
    assert message.fields["folder"] == str(tmp_path)
    path = tmp_path / "some.hdf5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=np.zeros(3, np.float32))
    with pytest.raises(BundleError):
        list(read_foreign(read_golden, path))
    [message] = read_foreign(foreign_readers.modules, PATH)
    assert "torch" not in message.fields["modules"]


def test_a_command_leaves_no_process_behind(tmp_path: Path) -> None:
    program = (
        "from pathlib import Path; import foreign_readers; from elmo_zh.hdf5 import foreign;"
        "list(foreign.read_foreign(foreign_readers.well, Path('x'), start=1));"
        "print(foreign._waiting()[0]._process.pid)"
    )
    told = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        check=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    with pytest.raises(ProcessLookupError):
        os.kill(int(told.stdout), 0)


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
    file = ForeignFile.open(path)
    assert file.members == {"group", "no rows"}
    found = dict(file.read_arrays({"group/x": (11, 3), "no rows": (0, 3)}))
    assert found["group/x"].dtype == np.float32
    np.testing.assert_array_equal(found["group/x"], VALUES.astype(dtype).astype(np.float32))
    assert found["no rows"].shape == (0, 3)


def test_datasets_are_sent_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.hdf5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=VALUES, chunks=(2, 3))
    monkeypatch.setattr(readers, "_PIECE_BYTES", 2 * VALUES[0].nbytes)
    pieces = [message.arrays[0] for message in readers.read_arrays(path, ["x"])]
    assert [len(piece) for piece in pieces] == [2, 2, 2, 2, 2, 1]
    np.testing.assert_array_equal(np.concatenate(pieces), VALUES)


def test_many_names_of_one_dataset_are_refused(tmp_path: Path) -> None:
    """A tied model has two names for its table of words."""
    layout = BundleLayout(write_model(tmp_path / "model", SHAPES["token"]))
    biases = [f"RNN_{direction}/RNN/MultiRNNCell/Cell{cell}/LSTMCell/B" for direction in (0, 1) for cell in (0, 1)]
    with h5py.File(layout.weights, "r+") as file:
        for name in biases[1:]:
            del file[name]
            file[name] = file[biases[0]]
    shapes = dict.fromkeys(biases, ForeignFile.open(layout.weights).datasets[biases[0]]["shape"])
    assert (
        len(dict(ForeignFile.open(layout.weights).read_arrays({name: tuple(shapes[name]) for name in biases[:2]}))) == 2
    )
    info = json.loads(layout.info.read_text("utf-8"))
    info["digests"][layout.weights.name] = file_digest(layout.weights)
    layout.info.write_text(json.dumps(info), "utf-8")
    with pytest.raises(BundleError, match=r"weights\.hdf5: RNN_.*/B is a dataset with more than 2 names\."):
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
    sizes = (sum(array.nbytes for array in message.arrays) for message in read_foreign(read_golden, path))
    with pytest.raises(BundleError, match=r"golden\.hdf5 is damaged \(.*the vectors of a sentence are float32"):
        sum(sizes)


def test_a_model_whose_file_crashes_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when the library reads beyond its memory: nothing of the bundle is used, and the next one is read."""
    bundle = write_model(tmp_path / "model", SHAPES["character"])
    with monkeypatch.context() as patched:
        patched.setattr("elmo_zh.hdf5.foreign_file.describe", lambda path: None)
        patched.setattr("elmo_zh.hdf5.foreign_file.read_foreign", _crash)
        with pytest.raises(UnsafeFileError, match=r"weights\.hdf5 makes the HDF5 library crash"):
            load_bundle(bundle)
    assert load_bundle(bundle).bilm is not None


def _crash(_: Reader, path: Path) -> Iterator[Message]:
    return read_foreign(foreign_readers.crashing, path, messages=0)
