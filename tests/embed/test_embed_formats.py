"""The formats that `elmo-zh embed` writes, read as docs/embedding.md reads them, against the ordinary one."""

import json
import re
import shlex
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from contract.command_line import LAYERS, ROOT, SampleRun, elmo_zh
from contract.dumps import SEGMENTED_LINES, SEGMENTED_TOKENS, WIDTH, embed, read_dump, write_lines

from elmo_zh import ElmoEmbedder
from elmo_zh.embed import dump, formats
from elmo_zh.invocation import install_line

FORMATS = ("hdf5", "npy", "parquet")
RARE = ("𠮷野家 的 😀👍🏽 饭", "𪚥", "é 苹果 🇨🇳")


def read(form: str, path: Path) -> tuple[list[Any], list[list[str]], list[Any]]:
    """Return vectors, tokens and offsets of each line, by what the documentation says and nothing of ours."""
    if form == "parquet":
        return read_parquet(path)
    if form == "hdf5":
        vectors, tokens, _ = read_dump(path)
        with h5py.File(path) as file:
            offsets = [file[f"offsets/{n}"][()] for n in range(len(tokens))] if "offsets" in file else [None] * 99
        return vectors, tokens, offsets
    everything = np.load(path / "vectors.npy", mmap_mode="r")
    spans = list(pairwise(np.load(path / "line_offsets.npy")))
    lines = (path / "tokens.txt").read_bytes().decode().split("\n")[:-1]
    places = path / "character_offsets.npy"
    offsets = [np.load(places)[start:end] if places.exists() else None for start, end in spans]
    if spans and everything.shape[-2] != spans[-1][1]:  # one vector a line
        vectors = [everything[..., line, :] for line in range(len(spans))]
    else:
        vectors = [everything[..., start:end, :] for start, end in spans]
    return vectors, [line.split(" ") if line else [] for line in lines], offsets


def rows_of(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pytest.importorskip("pyarrow.parquet").read_table(path).to_pylist()
    return rows


def read_parquet(path: Path) -> tuple[list[Any], list[list[str]], list[Any]]:
    rows = rows_of(path)
    assert [row["line"] for row in rows] == list(range(len(rows)))
    names = [name for name in rows[0] if name == "vectors" or name.startswith("layer_")]
    vectors = [[row[name] for name in names] if len(names) > 1 else row["vectors"] for row in rows]
    return vectors, [row["tokens"] for row in rows], [row.get("offsets") for row in rows]


def needs_pyarrow(form: str) -> None:
    if form == "parquet":
        pytest.importorskip("pyarrow", reason="pyarrow, the extra parquet, is not installed")


@pytest.mark.parametrize("layers", ["all", "average", "2,0"])
@pytest.mark.parametrize("pool", ["none", "mean"])
@pytest.mark.parametrize("form", FORMATS)
def test_every_format_holds_the_same(
    sample_run: SampleRun,
    embedder: ElmoEmbedder,
    source: Path,
    form: str,
    layers: str,
    pool: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Written in several blocks; with one dataset a line, some lines' tokens are padded and some are not."""
    needs_pyarrow(form)
    monkeypatch.setattr(dump, "DumpJob", partial(dump.DumpJob, part_lines=2))
    monkeypatch.setattr(formats, "_PADDED_BYTES", 20)
    options = ("--segmented", "--layers", layers, "--pool", pool, "--output", source.with_name("out"))
    embed(sample_run, source, *options, "--format", form)
    assert sorted(path.name for path in source.parent.iterdir()) == ["file.txt", "out"]
    vectors, tokens, offsets = read(form, source.with_name("out"))
    assert tokens == list(SEGMENTED_TOKENS)
    assert all(places is None for places in offsets)
    for found, activations in zip(vectors, embedder.embed_tokens(SEGMENTED_TOKENS), strict=True):
        expected = {"all": activations, "average": activations.mean(axis=0), "2,0": activations[[2, 0]]}[layers]
        if pool == "mean":
            expected = expected.mean(axis=-2) if expected.shape[-2] else np.zeros((*expected.shape[:-2], WIDTH))
        np.testing.assert_allclose(np.reshape(found, expected.shape), expected, rtol=0, atol=2e-6)


@pytest.mark.parametrize("form", FORMATS)
def test_raw_lines_are_prepared_as_in_training_and_never_split(
    sample_run: SampleRun, embedder: ElmoEmbedder, tmp_path: Path, form: str
) -> None:
    needs_pyarrow(form)
    lines = (*RARE, "", "　 ", "今天天气很好！我们去公园。", "他说：\u2028“走　吧。”ＡＢＣ１２", "苹果\x00手机\u200b")
    source = write_lines(tmp_path / "file.txt", lines)
    embed(sample_run, source, "--output", tmp_path / "out", "--dtype", "float16", "--layers", "top", "--format", form)
    vectors, tokens, offsets = read(form, tmp_path / "out")
    assert tokens == [embedder.tokens(line) for line in lines]
    for line, found, places in zip(lines, vectors, offsets, strict=True):
        expected = embedder.prepare(line)
        np.testing.assert_array_equal(np.reshape(places, (-1, 2)), expected.offsets)
        top = embedder.embed_tokens([expected.tokens])[0][LAYERS]
        np.testing.assert_allclose(np.reshape(found, top.shape), top, rtol=2**-10, atol=1e-5)
    if form != "parquet":
        assert {found.dtype for found in vectors} == {np.dtype("float16")}
    # It is known as an output, whatever its format, which --force may replace.
    embed(sample_run, source, "--output", tmp_path / "out", "--force", "--pool", "mean")
    pooled, _, attributes = read_dump(tmp_path / "out")
    assert len(pooled) == len(lines)
    assert json.loads(attributes["segmenter"]) == embedder.bundle.info["segmenter"]


@pytest.mark.parametrize("form", FORMATS)
def test_an_empty_text(sample_run: SampleRun, tmp_path: Path, form: str) -> None:
    needs_pyarrow(form)
    source = write_lines(tmp_path / "file.txt", [])
    answer = embed(sample_run, source, "--json", "--output", tmp_path / "out", "--format", form)
    assert answer.result()["lines"] == 0
    assert f"Warning: {source} is empty, so its output contains no vectors.\n" in answer.stderr
    if form != "parquet":
        assert read(form, tmp_path / "out")[1] == []
    if form == "hdf5":
        assert sorted(read_dump(tmp_path / "out")[2]) == ["dtype", "layers", "model_digest", "segmenter", "unknown"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--sentence-index", "--format", "npy"], "--sentence-index and --format npy cannot be combined."),
        (["--layers", "mix"], "--layers mix needs --mix-weights FILE."),
    ],
)
def test_choices_that_do_not_go_together(sample_run: SampleRun, source: Path, options: list[str], message: str) -> None:
    told = elmo_zh("embed", source, "--segmented", "--model", sample_run.model, *options).only_error(2)
    assert told.startswith(message)
    assert list(source.parent.iterdir()) == [source]


@pytest.mark.parametrize("pool", ["none", "mean"])
def test_parquet_has_the_text_of_each_line(sample_run: SampleRun, tmp_path: Path, pool: str) -> None:
    needs_pyarrow("parquet")
    lines = ("今天天气很好。我们去公园。", "", "𠮷野家 的\t饭", "　两边有空格 ", "天气\0很好")
    raw, segmented = write_lines(tmp_path / "raw.txt", lines), write_lines(tmp_path / "cut.txt", SEGMENTED_LINES)
    parquet = ("--format", "parquet", "--layers", "1", "--dtype", "float16", "--pool", pool)
    embed(sample_run, raw, *parquet)
    embed(sample_run, segmented, *parquet, "--segmented")
    rows = rows_of(tmp_path / "raw.txt.parquet")
    assert [row["text"] for row in rows] == list(lines)
    assert [row["text"] for row in rows_of(tmp_path / "cut.txt.parquet")] == list(SEGMENTED_LINES)
    for row in rows[:-1]:
        pieces = [row["text"][start:end] for start, end in row["offsets"]]
        assert "".join(pieces) == "".join(row["text"].split()) == "".join(row["tokens"])


def test_parquet_without_its_library(sample_run: SampleRun, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats.importlib.util, "find_spec", lambda name: None)
    told = elmo_zh("embed", source, "--model", sample_run.model, "--format", "parquet").only_error()
    assert install_line("parquet") in told
    assert list(source.parent.iterdir()) == [source]


def documented_readers() -> list[tuple[str, str]]:
    """The command and the program of each format in docs/embedding.md."""
    text = (ROOT / "docs" / "embedding.md").read_text(encoding="utf-8").split("## The formats")[1]
    return re.findall(r"```console\n\$ ([^\n]*)\n```\n\n```python\n(.*?)```", text, re.DOTALL)


@pytest.mark.parametrize(("command", "program"), documented_readers())
def test_the_documented_readers_run(
    sample_run: SampleRun, embedder: ElmoEmbedder, monkeypatch: pytest.MonkeyPatch, command: str, program: str
) -> None:
    if "parquet" in command:
        needs_pyarrow("parquet")
    monkeypatch.setenv("ELMO_ZH_MODEL", str(sample_run.model))
    write_lines(Path("file.txt"), ["今天天气很好。", *SEGMENTED_LINES])
    assert elmo_zh(*shlex.split(command)[1:]).status == 0
    names: dict[str, Any] = {}
    exec(program, names)
    tokens = embedder.tokens("今天天气很好。")
    assert names["words"] == tokens
    assert np.shape(names["places"]) == (len(tokens), 2)
    expected = embedder.embed_tokens([tokens])[0]
    if "average" in command:
        expected = expected.mean(axis=0)
    np.testing.assert_allclose(names["vectors"], expected, rtol=0, atol=2e-6)


def test_every_format_is_documented() -> None:
    assert len(documented_readers()) == 3
