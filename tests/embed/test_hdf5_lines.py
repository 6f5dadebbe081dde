"""HDF5 with one dataset a line, read by h5py."""

from pathlib import Path

import h5py
import numpy as np
import pytest

from elmo_zh.embed.formats import Contents, LineBlock, OutputForm, hdf5_lines


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_h5py_reads_every_dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: str) -> None:
    """Some lines are empty, and some have one long word and are stored as texts of their own lengths."""
    monkeypatch.setattr(hdf5_lines, "_PADDED_BYTES", 60)
    random = np.random.default_rng(7)
    lengths = [line % 7 for line in range(101)]
    tokens = [["好" * (1 + 20 * (n == line % 3)) for n in range(length)] for line, length in enumerate(lengths)]
    offsets = random.integers(-9, 2**31 - 1, (sum(lengths), 2), dtype=np.int32)
    block = LineBlock(
        first_line=0,
        line_offsets=np.cumsum([0, *lengths], dtype=np.int64),
        tokens=[word.encode() for words in tokens for word in words],
        unknown=np.zeros(sum(lengths), np.bool_),
        character_offsets=offsets,
        source_lines=None,
        texts=[],
        vectors=random.normal(size=(3, sum(lengths), 2)).astype(dtype),
        is_pooled=False,
    )
    contents = Contents(
        attributes={"layers": "all"},
        num_lines=len(lengths),
        num_tokens=sum(lengths),
        num_layers=3,
        dimension=2,
        dtype=dtype,
        is_pooled=False,
        has_offsets=True,
    )
    path = tmp_path / "lines.hdf5"
    hdf5_lines.write(path, contents, iter([block]), OutputForm())
    names = sorted(map(str, range(len(lengths))))
    with h5py.File(path) as file:
        assert list(file) == [*names, "offsets", "tokens"]
        assert list(file["tokens"]) == list(file["offsets"]) == names
        for line, own in block.iter_lines():
            assert file[str(line)].dtype == dtype
            np.testing.assert_array_equal(file[str(line)][()], block.vectors[:, own])
            np.testing.assert_array_equal(file[f"offsets/{line}"][()], offsets[own])
            assert [word.decode() for word in file[f"tokens/{line}"][()]] == tokens[line]
            assert file[f"tokens/{line}"].asstr()[()].tolist() == tokens[line]
