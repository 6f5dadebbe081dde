"""Parquet as viewers read it: the text of each line beside its vectors, by line and by token."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from contract.command_line import SampleRun, elmo_zh
from contract.dumps import SEGMENTED_LINES, embed, write_lines

from elmo_zh.embed.formats.hdf5_packed import iter_pieces
from elmo_zh.embed.shard_digest import write_digest

pyarrow = pytest.importorskip("pyarrow", reason="pyarrow, the extra parquet, is not installed")

pytestmark = pytest.mark.usefixtures("empty_folder")

LINES = ("今天天气很好。我们去公园。", "", "𠮷野家 的\t饭", "　两边有空格 ", "今天天气很好。我们去公园。")
PARQUET = ("--format", "parquet", "--layers", "1", "--dtype", "float16")


def rows_of(path: Path) -> list[dict[str, Any]]:
    from pyarrow.parquet import read_table

    rows: list[dict[str, Any]] = read_table(path).to_pylist()
    return rows


@pytest.mark.parametrize("pool", ["none", "mean"])
def test_the_text_of_each_line(sample_run: SampleRun, tmp_path: Path, pool: str) -> None:
    raw, segmented = write_lines(tmp_path / "raw.txt", LINES), write_lines(tmp_path / "cut.txt", SEGMENTED_LINES)
    embed(sample_run, raw, *PARQUET, "--pool", pool)
    embed(sample_run, segmented, *PARQUET, "--pool", pool, "--segmented")
    rows = rows_of(tmp_path / "raw.txt.parquet")
    assert [row["text"] for row in rows] == list(LINES)
    assert [row["text"] for row in rows_of(tmp_path / "cut.txt.parquet")] == list(SEGMENTED_LINES)
    for row in rows:
        cut = [row["text"][start:end] for start, end in row["offsets"]]
        assert "".join(cut) == "".join(row["text"].split()) == "".join(row["tokens"])


def test_the_text_of_each_sentence(sample_run: SampleRun, tmp_path: Path) -> None:
    source = write_lines(tmp_path / "file.txt", LINES)
    embed(sample_run, source, *PARQUET, "--pool", "mean", "--split-sentences")
    found = [(row["line"], row["text"]) for row in rows_of(tmp_path / "file.txt.parquet")]
    assert found[:3] == [(0, "今天天气很好。"), (0, "我们去公园。"), (1, "")]


def test_a_nul_character_is_told_from_none(sample_run: SampleRun, tmp_path: Path) -> None:
    """HDF5, in which unfinished vectors are kept, ends a string there."""
    write_lines(tmp_path / "file.txt", ["天气\0很好", "好"])
    told = elmo_zh("embed", tmp_path / "file.txt", "--model", sample_run.model, *PARQUET)
    if told.status == 0:  # normalising takes it out
        assert [row["text"] for row in rows_of(tmp_path / "file.txt.parquet")] == ["天气\ufffd很好", "好"]
    else:
        assert told.only_error().endswith("holds a NUL character, which HDF5 cannot store. Remove it.")


@pytest.mark.parametrize("how", [(), ("--segmented",), ("--split-sentences",)])
def test_a_row_for_each_token(sample_run: SampleRun, tmp_path: Path, how: tuple[str, ...]) -> None:
    source = write_lines(tmp_path / "file.txt", LINES)
    embed(sample_run, source, *PARQUET, *how, "--output", tmp_path / "lines.parquet")
    embed(sample_run, source, *PARQUET, *how, "--output", tmp_path / "tokens.parquet", "--by", "token")
    rows = iter(rows_of(tmp_path / "tokens.parquet"))
    for line in rows_of(tmp_path / "lines.parquet"):
        for place, (token, vector) in enumerate(zip(line["tokens"], line["vectors"], strict=True)):
            row = next(rows)
            assert (row["line"], row["place"], row["token"], row["text"]) == (line["line"], place, token, line["text"])
            np.testing.assert_array_equal(row["vectors"], vector)
            if how == ("--segmented",):
                assert "start" not in row
            else:
                assert [row["start"], row["end"]] == line["offsets"][place]
    assert list(rows) == []


def test_all_layers_of_each_token(sample_run: SampleRun, tmp_path: Path) -> None:
    source = write_lines(tmp_path / "file.txt", ["今天 天气 很 好", "齉龘"])
    embed(sample_run, source, "--segmented", "--format", "parquet", "--by", "token")
    embed(sample_run, source, "--segmented", "--layout", "packed")
    table = rows_of(tmp_path / "file.txt.parquet")
    with h5py.File(tmp_path / "file.txt.hdf5") as file:
        assert [row["unknown"] for row in table] == file["unknown"][()].tolist()
        assert table[4]["unknown"]
        for number, layer in enumerate(file["vectors"][()]):
            np.testing.assert_array_equal([row[f"layer_{number}"] for row in table], layer)
        assert [text.decode() for text in file["text"][()]] == ["今天 天气 很 好", "齉龘"]


@pytest.mark.parametrize("form", [("--format", "parquet"), ("--format", "parquet", "--by", "token")])
def test_shards_become_the_same_file(
    sample_run: SampleRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: tuple[str, ...]
) -> None:
    """Row groups end at the same lines, wherever shards do; only the last digits of vectors depend on batches."""
    monkeypatch.setattr("elmo_zh.embed.formats.hdf5_packed.BLOCK_TOKENS", 17)
    # The process that reads shards otherwise has a size of its own.
    monkeypatch.setattr("elmo_zh.embed.merge._iter_pieces", iter_pieces)
    source = write_lines(tmp_path / "file.txt", SEGMENTED_LINES * 5)
    options = ("--segmented", "--layers", "top")
    embed(sample_run, source, *options, *form, "--output", tmp_path / "whole.parquet")
    for number in (1, 2, 3):
        embed(sample_run, source, *options, "--shard", f"{number}/3")
    shards = sorted(tmp_path.glob("*.shard-*"))
    assert elmo_zh("merge", *shards, *form, "--output", tmp_path / "merged.parquet").status == 0
    merged, whole = (pyarrow.parquet.ParquetFile(tmp_path / f"{name}.parquet") for name in ("merged", "whole"))
    groups = [[file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)] for file in (merged, whole)]
    assert groups[0] == groups[1]
    assert len(groups[0]) > 3
    tables = [file.read() for file in (merged, whole)]
    assert tables[0].drop_columns("vectors") == tables[1].drop_columns("vectors")
    merged_vectors, whole_vectors = (
        [number for vector in table["vectors"].to_pylist() for number in np.ravel(vector)] for table in tables
    )
    np.testing.assert_allclose(merged_vectors, whole_vectors, rtol=0, atol=1e-6)


def test_shards_of_earlier_versions_have_no_text(sample_run: SampleRun, tmp_path: Path) -> None:
    source = write_lines(tmp_path / "file.txt", SEGMENTED_LINES)
    for number in (1, 2):
        embed(sample_run, source, "--segmented", "--layers", "top", "--shard", f"{number}/2")
    shards = sorted(tmp_path.glob("*.shard-*"))
    with h5py.File(shards[1], "r+") as file:
        del file["text"]
    write_digest(shards[1])
    assert elmo_zh("merge", *shards, "--format", "parquet", "--output", tmp_path / "out.parquet").status == 0
    rows = rows_of(tmp_path / "out.parquet")
    assert len(rows) == len(SEGMENTED_LINES)
    assert list(rows[0]) == ["line", "tokens", "vectors"]


def test_a_long_line_is_stored_once(sample_run: SampleRun, tmp_path: Path) -> None:
    """Written out for each token, its text alone would take 90 MB."""
    words = [f"词{number}" for number in range(2500)]
    source = write_lines(tmp_path / "file.txt", [" ".join(words)])
    embed(sample_run, source, "--segmented", *PARQUET, "--by", "token")
    path = tmp_path / "file.txt.parquet"
    text = pyarrow.parquet.ParquetFile(path).metadata.row_group(0).column(4)
    assert text.path_in_schema == "text"
    assert text.total_uncompressed_size < 100_000
    table = pyarrow.parquet.read_table(path)
    assert table.nbytes < 2_000_000
    assert table["text"][2499].as_py() == " ".join(words)


def test_rows_by_token_go_with_parquet_alone(sample_run: SampleRun, tmp_path: Path) -> None:
    source = write_lines(tmp_path / "file.txt", LINES)
    for options, found in (
        (("--by", "token"), "--format is hdf5 and --pool is none"),
        (("--by", "token", "--format", "parquet", "--pool", "mean"), "--format is parquet and --pool is mean"),
    ):
        told = elmo_zh("embed", source, "--model", sample_run.model, *options).only_error(2)
        assert told.startswith(f"--by token writes one row per token into Parquet, but {found}.")
    assert list(tmp_path.iterdir()) == [source]


def test_lines_of_blocks_that_are_joined() -> None:
    """Pairwise differences of offsets are the lengths of the lines, also over the seam."""
    from elmo_zh.embed.line_blocks import LineBlock

    def block(first_line: int, lengths: list[int]) -> LineBlock:
        total = sum(lengths)
        return LineBlock(
            first_line=first_line,
            line_offsets=np.cumsum([0, *lengths], dtype=np.int64),
            tokens=[b"x"] * total,
            unknown=np.zeros(total, np.bool_),
            character_offsets=None,
            texts=[b"t"] * len(lengths),
            vectors=np.arange(total * 3, dtype=np.float32).reshape(total, 3),
            is_pooled=False,
        )

    joined = LineBlock.joined([block(5, [2, 0, 3]), block(8, [1]), block(9, [0, 7])])
    assert [end - start for start, end in pairwise(joined.line_offsets.tolist())] == [2, 0, 3, 1, 0, 7]
    assert (joined.first_line, joined.num_lines, len(joined.texts or [])) == (5, 6, 6)
    assert joined.vectors.shape == (13, 3)
    assert joined.source_lines is None
