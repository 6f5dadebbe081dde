"""Packed HDF5, read by h5py."""

from pathlib import Path

import h5py
import numpy as np
import pytest

from elmo_zh.embed.formats import Contents, LineBlock, OutputForm, hdf5_packed

LENGTHS = (3, 0, 5, 1, 0, 7)
DIMENSION = 11


def build(num_layers: int | None, dtype: str, *, is_pooled: bool) -> tuple[Contents, list[LineBlock]]:
    """Six lines in three blocks of two lines each."""
    contents = Contents(
        attributes={"layers": "all", **({"pool": "mean"} if is_pooled else {})},
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
                first_line=line,
                line_offsets=ends[line : line + 3] - start,
                tokens=[f"词{number}".encode() for number in range(start, stop)],
                unknown=np.arange(start, stop) % 3 == 0,
                character_offsets=np.arange(2 * start, 2 * stop, dtype=np.int32).reshape(-1, 2),
                source_lines=None,
                texts=[b"text"] * 2,
                vectors=values[..., rows, :],
                is_pooled=is_pooled,
            )
        )
    return contents, blocks


@pytest.mark.parametrize("is_pooled", [False, True])
@pytest.mark.parametrize(("num_layers", "dtype"), [(None, "float32"), (3, "float32"), (2, "float16")])
@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_blocks_become_one(
    tmp_path: Path, num_layers: int | None, dtype: str, is_pooled: bool, compression: str
) -> None:
    contents, blocks = build(num_layers, dtype, is_pooled=is_pooled)
    hdf5_packed.write(tmp_path / "file", contents, iter(blocks), OutputForm(layout="packed", compression=compression))
    with h5py.File(tmp_path / "file") as file:
        assert file["vectors"].shape == contents.shape
        assert (file["vectors"].chunks is None) == (compression == "none")
        np.testing.assert_array_equal(file["vectors"], np.concatenate([block.vectors for block in blocks], axis=-2))
        assert file["line_offsets"][()].tolist() == np.cumsum([0, *LENGTHS]).tolist()
        assert file["tokens"].asstr()[()].tolist() == [f"词{number}" for number in range(sum(LENGTHS))]
        assert file["unknown"][()].tolist() == [number % 3 == 0 for number in range(sum(LENGTHS))]
        assert file["character_offsets"][()].ravel().tolist() == list(range(2 * sum(LENGTHS)))
        assert file["text"].asstr()[()].tolist() == ["text"] * len(LENGTHS)


def test_no_line_at_all(tmp_path: Path) -> None:
    contents = build(None, "float32", is_pooled=False)[0].with_size(num_lines=0, num_tokens=0)
    hdf5_packed.write(tmp_path / "file", contents, iter([]), OutputForm(layout="packed"))
    with h5py.File(tmp_path / "file") as file:
        assert file["vectors"].shape == (0, DIMENSION)
        assert file["line_offsets"][()].tolist() == [0]
