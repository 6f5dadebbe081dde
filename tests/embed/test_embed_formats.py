"""The formats that `elmo-zh embed` writes, read as docs/embedding.md reads them, against the ordinary one."""

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
from elmo_zh.embed import dump
from elmo_zh.embed.formats import hdf5_lines, parquet
from elmo_zh.invocation import install_line

FORMATS = ("lines", "packed", "gzip", "lzf", "npy", "parquet")
RARE = ("𠮷野家 的 😀👍🏽 饭", "𪚥", "é 苹果 🇨🇳")


def typed(form: str) -> list[str]:
    if form == "lines":
        return []
    if form in ("packed", "gzip", "lzf"):
        return ["--layout", "packed", *(["--compression", form] if form != "packed" else [])]
    return ["--format", form]


def read(form: str, path: Path) -> tuple[list[Any], list[list[str]], list[Any]]:
    """Return vectors, tokens and offsets of each line, by what the documentation says and nothing of ours."""
    if form == "parquet":
        return read_parquet(path)
    if form == "lines":
        vectors, tokens, _ = read_dump(path)
        with h5py.File(path) as file:
            offsets = [file[f"offsets/{n}"][()] for n in range(len(tokens))] if "offsets" in file else [None] * 99
        return vectors, tokens, offsets
    if form == "npy":
        everything = np.load(path / "vectors.npy", mmap_mode="r")
        table = np.load(path / "line_offsets.npy")
        lines = (path / "tokens.txt").read_bytes().decode().split("\n")[:-1]
        tokens = [line.split(" ") if line else [] for line in lines]
        places = path / "character_offsets.npy"
        characters = np.load(places) if places.exists() else None
    else:
        with h5py.File(path) as file:
            everything, table = file["vectors"][()], file["line_offsets"][()]
            assert (file["vectors"].chunks is None) == (form == "packed" or not everything.size)
            words = [word.decode() for word in file["tokens"][()]]
            tokens = [words[start:end] for start, end in pairwise(table)]
            characters = file["character_offsets"][()] if "character_offsets" in file else None
    spans = list(pairwise(table))
    offsets = [None if characters is None else characters[start:end] for start, end in spans]
    if everything.shape[-2] != table[-1]:  # one vector a line
        return [everything[..., line, :] for line in range(len(spans))], tokens, offsets
    return [everything[..., start:end, :] for start, end in spans], tokens, offsets


def read_parquet(path: Path) -> tuple[list[Any], list[list[str]], list[Any]]:
    rows = pytest.importorskip("pyarrow.parquet").read_table(path).to_pylist()
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
    monkeypatch.setattr(hdf5_lines, "_PADDED_BYTES", 20)
    options = ("--segmented", "--layers", layers, "--pool", pool, "--output", source.with_name("out"))
    embed(sample_run, source, *options, *typed(form))
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
def test_raw_text_beyond_the_basic_plane(
    sample_run: SampleRun, embedder: ElmoEmbedder, tmp_path: Path, form: str
) -> None:
    needs_pyarrow(form)
    lines = (*RARE, "", "今天天气很好", "今天天气很好")
    source = write_lines(tmp_path / "file.txt", lines)
    embed(sample_run, source, "--output", tmp_path / "out", "--dtype", "float16", "--layers", "top", *typed(form))
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
    assert len(read_dump(tmp_path / "out")[0]) == len(lines)


@pytest.mark.parametrize("form", FORMATS)
def test_an_empty_text(sample_run: SampleRun, tmp_path: Path, form: str) -> None:
    needs_pyarrow(form)
    source = write_lines(tmp_path / "file.txt", [])
    answer = embed(sample_run, source, "--json", "--output", tmp_path / "out", *typed(form))
    assert answer.result()["lines"] == 0
    assert f"Warning: {source} is empty, so its output contains no vectors.\n" in answer.stderr
    if form != "parquet":
        assert read(form, tmp_path / "out")[1] == []
    if form == "lines":
        assert sorted(read_dump(tmp_path / "out")[2]) == ["dtype", "layers", "model_digest", "segmenter", "unknown"]


def test_word2vec_holds_the_mean_of_each_word(sample_run: SampleRun, embedder: ElmoEmbedder, source: Path) -> None:
    KeyedVectors = pytest.importorskip("gensim.models", reason="gensim has no wheel for this Python").KeyedVectors

    options = ("--segmented", "--format", "word2vec", "--layers", "1", "--json")
    result = embed(sample_run, source, *options).result()
    words = [word for line in SEGMENTED_TOKENS for word in line]
    every = np.concatenate([vectors[1] for vectors in embedder.embed_tokens(SEGMENTED_TOKENS)])
    loaded = KeyedVectors.load_word2vec_format(source.with_name("file.txt.vec"))
    kept = sorted({word for word in words if word.split() == [word]}, key=lambda w: (-words.count(w), words.index(w)))
    assert loaded.index_to_key == kept
    for word in kept:
        mean = every[[place for place, other in enumerate(words) if other == word]].mean(axis=0)
        np.testing.assert_allclose(loaded[word], mean, rtol=0, atol=2e-6)
    left_out = sorted({word for word in words if word.split() != [word]})
    assert left_out == ["一行\u2028两行", "也\u0085是", "花　开", "行\x0b列"]
    assert (result["words"], result["words_left_out"]) == (len(kept), 4)
    embed(sample_run, source, *options, "--force")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--format", "word2vec"],
            "--format word2vec stores one vector per word, but --layers is all and --pool is none.",
        ),
        (["--format", "npy", "--layout", "packed"], "--layout packed works only with --format hdf5, not npy."),
        (["--compression", "gzip"], "--compression gzip needs --layout packed"),
        (["--sentence-index", "--layout", "packed"], "--sentence-index needs HDF5 with one dataset per line."),
        (["--layers", "mix"], "--layers mix and --mix-weights FILE go together: give both or neither."),
        (["--by", "token"], "--by token needs --format parquet and vectors that are not pooled (--format is hdf5"),
        (["--by", "token", "--format", "parquet", "--pool", "mean"], "--by token needs --format parquet"),
    ],
)
def test_choices_that_do_not_go_together(sample_run: SampleRun, source: Path, options: list[str], message: str) -> None:
    told = elmo_zh("embed", source, "--segmented", "--model", sample_run.model, *options).only_error(2)
    assert told.startswith(message)
    assert list(source.parent.iterdir()) == [source]


def test_parquet_without_its_library(sample_run: SampleRun, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet.importlib.util, "find_spec", lambda name: None)
    told = elmo_zh("embed", source, "--model", sample_run.model, "--format", "parquet").only_error()
    assert install_line("parquet") in told
    assert list(source.parent.iterdir()) == [source]


def test_learned_weights(sample_run: SampleRun, embedder: ElmoEmbedder, source: Path) -> None:
    weights = source.with_name("mix.json")
    weights.write_text('{"scalar_parameters": [800.5, 799, 802], "gamma": 0.7}', encoding="utf-8")
    embed(sample_run, source, "--segmented", "--layers", "mix", "--mix-weights", weights)
    vectors, _, attributes = read_dump(source.with_name("file.txt.hdf5"))
    powers = np.exp([0.5, -1, 2])
    expected = 0.7 * powers / powers.sum()
    np.testing.assert_allclose(attributes["mix_weights"], expected)
    for found, activations in zip(vectors, embedder.embed_tokens(SEGMENTED_TOKENS), strict=True):
        np.testing.assert_allclose(found, np.tensordot(expected, activations, axes=1), rtol=0, atol=1e-6)


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
    if "gensim" in program:
        pytest.importorskip("gensim", reason="gensim has no wheel for this Python")
    monkeypatch.setenv("ELMO_ZH_MODEL", str(sample_run.model))
    write_lines(Path("file.txt"), ["今天天气很好。", *SEGMENTED_LINES])
    assert elmo_zh(*shlex.split(command)[1:]).status == 0
    names: dict[str, Any] = {}
    exec(program, names)
    if "word2vec" in command:
        assert names["vectors"].shape == (WIDTH,)
        return
    tokens = embedder.tokens("今天天气很好。")
    assert names["words"] == tokens
    assert np.shape(names["places"]) == (len(tokens), 2)
    expected = embedder.embed_tokens([tokens])[0]
    if "average" in command:
        expected = expected.mean(axis=0)
    np.testing.assert_allclose(names["vectors"], expected, rtol=0, atol=2e-6)


def test_every_format_is_documented() -> None:
    assert len(documented_readers()) == 5
