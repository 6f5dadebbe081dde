"""`elmo-zh embed`: vectors of a file's lines."""

import json
from pathlib import Path
from unittest.mock import ANY

import h5py
import numpy as np
from contract.command_line import LAYERS, PROJECTION, SampleRun, elmo_zh
from contract.dumps import (
    SEGMENTED_LINES,
    SEGMENTED_TOKENS,
    WIDTH,
    assert_close,
    embed,
    read_dump,
    unknown_words,
    write_lines,
)

from elmo_zh import ElmoEmbedder
from elmo_zh.bundle.read import describe_model


def test_segmented_lines(sample_run: SampleRun, embedder: ElmoEmbedder, tmp_path: Path) -> None:
    source = write_lines(tmp_path / "file.txt", SEGMENTED_LINES)
    answer = embed(sample_run, source, "--segmented", "--json")
    # The suffix is added to the whole name.
    output = tmp_path / "file.txt.hdf5"
    assert sorted(tmp_path.iterdir()) == [source, output]
    vectors, tokens, attributes = read_dump(output)
    assert tokens == list(SEGMENTED_TOKENS)
    assert [vector.shape for vector in vectors] == [(LAYERS + 1, len(line), WIDTH) for line in SEGMENTED_TOKENS]
    assert {vector.dtype for vector in vectors} == {np.dtype("float32")}
    assert attributes == {
        "model_digest": embedder.bundle.digest,
        "layers": "all",
        "dtype": "float32",
        "segmenter": "as given",
        "unknown": "backoff",
    }
    assert answer.result() == {
        "output": str(output),
        "lines": 7,
        "empty_lines": 1,
        "tokens": sum(map(len, SEGMENTED_TOKENS)),
        "unknown_tokens": sum(int(embedder.find_unknown(line).sum()) for line in SEGMENTED_TOKENS),
        "cut_tokens": 0,
        "backed_off_tokens": ANY,
        "unknown_words": unknown_words(embedder),
        "model": describe_model(embedder.bundle),
    }
    # Equal lines stay, and have equal vectors; layer 0 is the token layer written twice.
    assert_close(vectors[3], vectors[0])
    np.testing.assert_array_equal(vectors[2][0, :, :PROJECTION], vectors[2][0, :, PROJECTION:])
    for vector, expected in zip(vectors, embedder.embed_tokens(SEGMENTED_TOKENS), strict=True):
        assert_close(vector, expected)


def test_sentence_index_names_the_last_of_equal_lines(sample_run: SampleRun, source: Path) -> None:
    embed(sample_run, source, "--segmented", "--sentence-index")
    with h5py.File(source.with_name("file.txt.hdf5")) as file:
        assert file["sentence_to_index"].shape == (1,)
        index = json.loads(file["sentence_to_index"][0])
    assert index == {" ".join(tokens): str(line) for line, tokens in enumerate(SEGMENTED_TOKENS)}
    assert index["我 喜欢 吃 苹果 。"] == "3"


def test_a_token_that_hdf5_cannot_hold_is_a_known_problem(sample_run: SampleRun, tmp_path: Path) -> None:
    """HDF5 strings end at a NUL; losing the rest of a token silently would be worse."""
    write_lines(tmp_path / "nul.txt", ["好", "苹\x00果 好"])
    answer = elmo_zh("embed", tmp_path / "nul.txt", "--segmented", "--model", sample_run.model)
    assert "line 2" in answer.only_error()


def test_the_ten_most_frequent_unknown_words_are_reported(sample_run: SampleRun) -> None:
    """Word n occurs n times."""
    source = write_lines(Path("file.txt"), [" ".join([f"齉{n}"] * n) for n in range(1, 14)])
    result = embed(sample_run, source, "--segmented", "--json").result()
    assert list(result["unknown_words"].items()) == [(f"齉{n}", n) for n in range(13, 3, -1)]


def test_words_that_are_read_as_their_parts_are_counted_beside_the_unknown_ones(sample_run: SampleRun) -> None:
    """Of the three unknown words one consists of known words, and one partly; no character of the last is known."""
    words = (sample_run.model / "vocab.data").read_text(encoding="utf-8").split("\n")[3:]
    known = [word for word in words if word.isalpha()][:2]
    compound = known[0] + known[1] + known[0]
    assert compound not in words
    line = [known[0], compound, f"{compound}齉", compound, "齉龘"]
    source = write_lines(Path("file.txt"), [" ".join(line)])
    answer = embed(sample_run, source, "--segmented", "--json").result()
    assert (answer["unknown_tokens"], answer["backed_off_tokens"]) == (4, 3)
    names = ("lines", "empty_lines", "tokens", "unknown_tokens", "backed_off_tokens")
    for unknown, expected in (("backoff", [1, 0, 5, 4, 3]), ("unk", [1, 0, 5, 4, 0])):
        shown = embed(sample_run, source, "--segmented", "--unknown", unknown, "--force").stdout
        values = dict(line.split(":", 1) for line in shown.splitlines())
        assert [int(values[name]) for name in names] == expected
