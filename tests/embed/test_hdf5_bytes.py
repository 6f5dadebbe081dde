"""HDF5 that is written byte by byte, read by h5py."""

from array import array
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from elmo_zh.embed.formats import hdf5_bytes
from elmo_zh.embed.formats.hdf5_bytes import LineFile

PADDED_BYTES = 60


def write(path: Path, vectors: list[Any], tokens: list[list[bytes]], offsets: list[Any]) -> None:
    places = [array("Q") for _ in range(3)]
    with LineFile(path) as file:
        for vector, words, where in zip(vectors, tokens, offsets, strict=True):
            file.add_array(places[0], vector)
            file.add_tokens(places[1], words, PADDED_BYTES)
            file.add_array(places[2], where)
        groups = {"tokens": file.add_group(places[1]), "offsets": file.add_group(places[2])}
        file.finish(file.add_group(places[0], groups))


# Around the sizes of a symbol table (4 names here), of a node (6 tables) and of a node of nodes.
@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 11, 22, 23, 24, 25, 101, 143, 144, 145, 311])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_h5py_reads_every_dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, dtype: str) -> None:
    for name, value in {"_LEAF_K": 2, "_NODE_K": 3, "_LEAF_BYTES": 168, "_NODE_BYTES": 128}.items():
        monkeypatch.setattr(hdf5_bytes, name, value)
    random = np.random.default_rng(count)
    lengths = [line % 7 for line in range(count)]
    vectors = [random.normal(size=(3, n, 2)).astype(dtype) for n in lengths]
    # Some lines have one long word and are stored as texts of their own lengths.
    tokens = [["好" * (1 + 20 * (n == line % 3)) for n in range(length)] for line, length in enumerate(lengths)]
    offsets = [random.integers(-9, 2**31 - 1, (n, 2), dtype=np.int32) for n in lengths]
    path = tmp_path / "lines.hdf5"
    write(path, vectors, [[word.encode() for word in words] for words in tokens], offsets)
    with h5py.File(path, "r+") as file:  # it can be added to, as our attributes are
        file.attrs["long"] = "词" * 20_000
        file["sentence_to_index"] = ["{}"]
    names = sorted(map(str, range(count)))
    with h5py.File(path) as file:
        assert list(file) == [*names, "offsets", "sentence_to_index", "tokens"]
        assert list(file["tokens"]) == list(file["offsets"]) == names
        assert str(count) not in file
        for line in range(count):
            assert file[str(line)].dtype == dtype
            np.testing.assert_array_equal(file[str(line)][()], vectors[line])
            np.testing.assert_array_equal(file[f"offsets/{line}"][()], offsets[line])
            assert [word.decode() for word in file[f"tokens/{line}"][()]] == tokens[line]
            assert file[f"tokens/{line}"].asstr()[()].tolist() == tokens[line]
        assert file.attrs["long"] == "词" * 20_000


def test_more_long_words_than_one_heap_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hdf5_bytes, "_HEAP_OBJECTS", 600)
    words = [b"%d" % number for number in range(1999)]
    write(tmp_path / "lines.hdf5", [np.zeros((1999, 2), np.float32)], [words], [np.zeros((1999, 2), np.int32)])
    with h5py.File(tmp_path / "lines.hdf5") as file:
        assert file["tokens/0"][()].tolist() == words


def test_names_of_more_than_seven_digits() -> None:
    """Each takes whole words of eight bytes, the end mark included."""
    data, _ = hdf5_bytes._names(10**7 + 2, ["tokens"])
    for number in (0, 9, 10**7 - 1, 10**7, 10**7 + 1):
        start = hdf5_bytes._name_offset(number)
        assert data[start : data.index(b"\0", start)] == b"%d" % number


def test_a_group_is_in_the_order_of_its_names() -> None:
    for count in (1, 2, 10, 11, 99, 100, 101, 1234):
        found = [address for _, address in hdf5_bytes._entries_in_order(array("Q", range(count)), [])]
        assert found == sorted(range(count), key=str)
