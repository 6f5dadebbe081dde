"""Parquet as viewers read it: the text of each line beside its vectors, by line and by token."""

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from contract.command_line import SampleRun
from contract.dumps import SEGMENTED_LINES, embed, write_lines

pyarrow = pytest.importorskip("pyarrow", reason="pyarrow, the extra parquet, is not installed")

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


def test_a_nul_character_stays(sample_run: SampleRun, tmp_path: Path) -> None:
    write_lines(tmp_path / "file.txt", ["天气\0很好", "好"])
    embed(sample_run, tmp_path / "file.txt", *PARQUET)
    assert [row["text"] for row in rows_of(tmp_path / "file.txt.parquet")] == ["天气\0很好", "好"]


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


@pytest.mark.parametrize(("layers", "numbers"), [("all", [0, 1, 2]), ("2,1", [2, 1])])
def test_layers_of_each_token(sample_run: SampleRun, tmp_path: Path, layers: str, numbers: list[int]) -> None:
    source = write_lines(tmp_path / "file.txt", ["今天 天气 很 好", "齉龘"])
    embed(sample_run, source, "--segmented", "--format", "parquet", "--by", "token", "--layers", layers)
    embed(sample_run, source, "--segmented", "--layout", "packed", "--layers", layers)
    table = rows_of(tmp_path / "file.txt.parquet")
    with h5py.File(tmp_path / "file.txt.hdf5") as file:
        assert [row["unknown"] for row in table] == file["unknown"][()].tolist()
        assert table[4]["unknown"]
        for number, layer in zip(numbers, file["vectors"][()], strict=True):
            np.testing.assert_array_equal([row[f"layer_{number}"] for row in table], layer)
        assert [text.decode() for text in file["text"][()]] == ["今天 天气 很 好", "齉龘"]
