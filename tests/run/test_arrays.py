"""Arrays in files: NumPy's bytes, and no error of the disk that nobody hears of."""

from io import BytesIO
from pathlib import Path

import numpy as np
import pytest

from elmo_zh.run.arrays import ArrayWriter, load_npy, read_numbers, save_npy, write_numbers

FULL = Path("/dev/full")
ARRAYS = [
    np.arange(7, dtype="<u4"),
    np.zeros((0, 3), np.float16),
    np.arange(12.0).reshape(3, 4)[:, ::2],
    np.array([(3, True), (5, False)], [("number", "<u8"), ("is_first", "?")]),
    np.float32(2.5).reshape(()),
]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype} {array.shape}")
def test_the_bytes_are_those_of_numpy(tmp_path: Path, array: np.ndarray) -> None:
    expected = BytesIO()
    np.save(expected, array)
    save_npy(tmp_path / "a.npy", array)
    assert (tmp_path / "a.npy").read_bytes() == expected.getvalue()
    found = load_npy(tmp_path / "a.npy")
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    np.testing.assert_array_equal(found, array)
    write_numbers(tmp_path / "a", array)
    assert (tmp_path / "a").read_bytes() == array.tobytes()
    np.testing.assert_array_equal(read_numbers(tmp_path / "a", array.dtype), array.ravel())


@pytest.mark.parametrize("shape", [(7,), (7, 3), (5, 7, 3), (1, 7, 3), None])
def test_rows_are_appended(tmp_path: Path, shape: tuple[int, ...] | None) -> None:
    expected = np.arange(np.prod(shape or (7,)), dtype=np.int32).reshape(shape or (7,))
    axis = 1 if expected.ndim == 3 else 0
    with (tmp_path / "a.npy").open("wb") as file:
        writer = ArrayWriter(file, np.int32, *(shape or ()))
        for start, end in ((0, 2), (2, 2), (2, 7)):
            writer.append(expected.take(np.arange(start, end), axis))
        if shape is None:
            writer.finish()
    np.testing.assert_array_equal(load_npy(tmp_path / "a.npy"), expected)
