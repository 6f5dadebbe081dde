"""Packed HDF5: vectors written in place are those that the HDF5 library writes."""

from pathlib import Path

import h5py
import numpy as np
import pytest

from elmo_zh.embed.formats import OutputForm, hdf5_packed
from elmo_zh.embed.line_blocks import Contents, LineBlock

LENGTHS = (3, 0, 5, 1, 0, 7)
DIMENSION = 11


def build(num_layers: int | None, dtype: str, *, is_pooled: bool) -> tuple[Contents, list[LineBlock]]:
    """Six lines in three blocks of two lines each."""
    contents = Contents(
        attributes={"layers": "all", **({"pool": "mean"} if is_pooled else {})},
        first_line=13,
        num_lines=len(LENGTHS),
        num_tokens=sum(LENGTHS),
        num_layers=num_layers,
        dimension=DIMENSION,
        dtype=dtype,
        is_pooled=is_pooled,
        has_offsets=True,
    )
    values = np.arange(np.prod(contents.shape), dtype=dtype).reshape(contents.shape)
    ends = np.cumsum([0, *LENGTHS])
    blocks = []
    for line in range(0, len(LENGTHS), 2):
        start, stop = int(ends[line]), int(ends[line + 2])
        rows = slice(line, line + 2) if is_pooled else slice(start, stop)
        blocks.append(
            LineBlock(
                first_line=contents.first_line + line,
                line_offsets=ends[line : line + 3] - start,
                tokens=[f"词{number}".encode() for number in range(start, stop)],
                unknown=np.arange(start, stop) % 3 == 0,
                character_offsets=np.arange(2 * start, 2 * stop, dtype=np.int32).reshape(-1, 2),
                vectors=values[..., rows, :],
                is_pooled=is_pooled,
            )
        )
    return contents, blocks


@pytest.mark.parametrize("is_pooled", [False, True])
@pytest.mark.parametrize(("num_layers", "dtype"), [(None, "float32"), (3, "float32"), (2, "float16")])
def test_vectors_in_place(tmp_path: Path, num_layers: int | None, dtype: str, is_pooled: bool) -> None:
    contents, blocks = build(num_layers, dtype, is_pooled=is_pooled)
    hdf5_packed.write(tmp_path / "expected", contents, iter(blocks), OutputForm(layout="packed"))
    hdf5_packed.write_text(tmp_path / "found", contents, blocks, with_vectors=True)
    size = (tmp_path / "found").stat().st_size
    vectors, row = hdf5_packed.VectorFile(tmp_path / "found"), 0
    for block in blocks:
        vectors.write(row, block.vectors)
        row += block.vectors.shape[-2]
    assert (tmp_path / "found").stat().st_size == size
    with h5py.File(tmp_path / "found") as found, h5py.File(tmp_path / "expected") as expected:
        assert dict(found.attrs) == dict(expected.attrs)
        assert sorted(found) == sorted(expected)
        for name in expected:
            assert found[name].dtype == expected[name].dtype
            assert found[name].chunks is None
            np.testing.assert_array_equal(found[name][()], expected[name][()])


def test_no_line_at_all(tmp_path: Path) -> None:
    contents = build(None, "float32", is_pooled=False)[0].with_size(num_lines=0, num_tokens=0)
    hdf5_packed.write_text(tmp_path / "found", contents, [], with_vectors=True)
    hdf5_packed.VectorFile(tmp_path / "found").write(0, np.empty((0, DIMENSION), np.float32))
    assert list(hdf5_packed.iter_blocks([tmp_path / "found"])) == []


def test_blocks_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hdf5_packed, "BLOCK_TOKENS", 6)
    contents, blocks = build(3, "float32", is_pooled=False)
    hdf5_packed.write(tmp_path / "file", contents, iter(blocks), OutputForm(layout="packed"))
    found = list(hdf5_packed.iter_blocks([tmp_path / "file"]))
    # A line of more tokens than a block holds is a block by itself.
    assert [(block.first_line, block.num_lines) for block in found] == [(13, 2), (15, 3), (18, 1)]
    assert [token for block in found for token in block.tokens] == [token for block in blocks for token in block.tokens]
    np.testing.assert_array_equal(
        np.concatenate([block.vectors for block in found], axis=1),
        np.concatenate([block.vectors for block in blocks], axis=1),
    )
    without = list(hdf5_packed.iter_text_blocks([tmp_path / "file"]))
    assert [(block.first_line, block.tokens) for block in without] == [
        (block.first_line, block.tokens) for block in found
    ]
