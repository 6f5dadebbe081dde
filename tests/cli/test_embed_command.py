"""`elmo-zh embed`: vectors of a file's lines."""

import gzip
import json
import os
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from contract.command_line import LAYERS, PROJECTION, Answer, SampleRun, elmo_zh
from parity import numpy_oracle as oracle
from parity.numpy_bilm import BilmState, run_bilm

from elmo_zh import ElmoEmbedder
from elmo_zh.embed import dump
from elmo_zh.training import evaluate

pytestmark = pytest.mark.usefixtures("empty_folder")

WIDTH = 2 * PROJECTION
# Tokens are split at U+0020 alone: other white space stays in its token.
SEGMENTED_LINES = (
    "我 喜欢 吃 苹果 。",
    "",
    "春天 的 花　开 了 ， 山上 很 美 。",
    "我 喜欢 吃 苹果 。",
    "一行\u2028两行 \x0b 也\u0085是 一 句",
    "  两边  有   空格 ",
    "齉龘",
)
SEGMENTED_TOKENS: tuple[list[str], ...] = (
    ["我", "喜欢", "吃", "苹果", "。"],
    [],
    ["春天", "的", "花　开", "了", "，", "山上", "很", "美", "。"],
    ["我", "喜欢", "吃", "苹果", "。"],
    ["一行\u2028两行", "\x0b", "也\u0085是", "一", "句"],
    ["两边", "有", "空格"],
    ["齉龘"],
)


def write_lines(path: Path, lines: Sequence[str]) -> Path:
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    return path


def read_dump(path: Path) -> tuple[list[Any], list[list[str]], dict[str, Any]]:
    """Return vectors and tokens of each line in order, and the root attributes."""
    with h5py.File(path) as file:
        names = sorted(set(file) - {"tokens", "offsets", "sentence_to_index"}, key=int)
        assert names == [str(line) for line in range(len(names))]
        assert sorted(file["tokens"], key=int) == names
        vectors = [file[name][()] for name in names]
        tokens = [[token.decode() for token in file["tokens"][name][()]] for name in names]
        return vectors, tokens, dict(file.attrs)


def assert_close(found: Any, expected: Any) -> None:
    """The same sentence gives the same vectors whatever stands beside it, to 1e-6."""
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


def embed(sample: SampleRun, source: Path | str, *options: str | Path, stdin: bytes = b"") -> Answer:
    answer = elmo_zh("embed", source, "--model", sample.model, *options, stdin=stdin)
    assert answer.status == 0, answer.stderr
    return answer


@pytest.fixture(scope="module")
def embedder(sample_run: SampleRun) -> ElmoEmbedder:
    return ElmoEmbedder.load(str(sample_run.model))


def unknown_words(embedder: ElmoEmbedder) -> dict[str, int]:
    words = [word for line in SEGMENTED_TOKENS for word in line]
    return dict(Counter(word for word, unknown in zip(words, embedder.find_unknown(words), strict=True) if unknown))


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
    }
    assert answer.result() == {
        "output": str(output),
        "lines": 7,
        "empty_lines": 1,
        "tokens": sum(map(len, SEGMENTED_TOKENS)),
        "unknown_tokens": sum(embedder.count_unknown(line) for line in SEGMENTED_TOKENS),
        "cut_tokens": 0,
        "unknown_words": unknown_words(embedder),
    }
    # Equal lines stay, and have equal vectors; layer 0 is the token layer written twice.
    assert_close(vectors[3], vectors[0])
    np.testing.assert_array_equal(vectors[2][0, :, :PROJECTION], vectors[2][0, :, PROJECTION:])
    for vector, expected in zip(vectors, embedder.embed_tokens(SEGMENTED_TOKENS), strict=True):
        assert_close(vector, expected)


def test_raw_lines_are_prepared_as_in_training_and_never_split(
    sample_run: SampleRun, embedder: ElmoEmbedder, tmp_path: Path
) -> None:
    lines = ("今天天气很好！我们去公园。", "", "　 ", "他说：\u2028“走　吧。”ＡＢＣ１２", "苹果\x00手机\u200b")
    source = write_lines(tmp_path / "raw.txt", lines)
    output = tmp_path / "vectors" / "raw.h5"
    embed(sample_run, source, "--output", output)
    vectors, tokens, attributes = read_dump(output)
    assert ["".join(line) for line in tokens] == [
        "今天天气很好！我们去公园。",
        "",
        "",
        "他说：“走吧。”ABC12",
        "苹果手机",
    ]
    assert len(tokens[0]) < len(lines[0])
    bundle = json.loads((sample_run.model / "bundle.json").read_text(encoding="utf-8"))
    assert json.loads(attributes["segmenter"]) == bundle["segmenter"]
    for vector, expected in zip(vectors, embedder.embed(lines), strict=True):
        assert vector.dtype == expected.dtype == np.float32
        assert_close(vector, expected)


def test_stdin(sample_run: SampleRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The output is made here; a last line needs no line end, and CR LF is one."""
    monkeypatch.chdir(tmp_path)
    embed(sample_run, "-", "--segmented", stdin="我 吃 苹果\r\n\n好".encode())
    _, tokens, _ = read_dump(tmp_path / "embeddings.hdf5")
    assert tokens == [["我", "吃", "苹果"], [], ["好"]]
    assert os.listdir(tmp_path) == ["embeddings.hdf5"]  # noqa: PTH208


def test_a_compressed_file_is_read_as_its_text(sample_run: SampleRun, tmp_path: Path) -> None:
    (tmp_path / "file.txt.gz").write_bytes(gzip.compress("我 吃 苹果\n".encode()))
    embed(sample_run, tmp_path / "file.txt.gz", "--segmented")
    assert read_dump(tmp_path / "file.txt.gz.hdf5")[1] == [["我", "吃", "苹果"]]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "file.txt", SEGMENTED_LINES)


@pytest.mark.parametrize("layers", ["average", "top", "0", "1", "2"])
def test_one_layer_or_their_average(sample_run: SampleRun, embedder: ElmoEmbedder, source: Path, layers: str) -> None:
    embed(sample_run, source, "--segmented", "--layers", layers)
    vectors, _, attributes = read_dump(source.with_name("file.txt.hdf5"))
    assert attributes["layers"] == layers
    for vector, every in zip(vectors, embedder.embed_tokens(SEGMENTED_TOKENS), strict=True):
        expected = every.mean(axis=0) if layers == "average" else every[LAYERS if layers == "top" else int(layers)]
        assert vector.shape == (every.shape[1], WIDTH)
        assert_close(vector, expected)


def test_layers_and_dtype_can_be_settings(sample_run: SampleRun, embedder: ElmoEmbedder, source: Path) -> None:
    embed(sample_run, source, "--segmented", "--set", "embed.layers=1", "--set", "embed.dtype=float16")
    vectors, _, attributes = read_dump(source.with_name("file.txt.hdf5"))
    assert (attributes["layers"], attributes["dtype"]) == ("1", "float16")
    for vector, every in zip(vectors, embedder.embed_tokens(SEGMENTED_TOKENS), strict=True):
        assert vector.dtype == np.float16
        np.testing.assert_allclose(vector, every[1], rtol=2**-10, atol=1e-6)


@pytest.mark.parametrize("layers", ["3", "-1", "topmost"])
def test_layers_that_there_are_not(sample_run: SampleRun, source: Path, layers: str) -> None:
    told = elmo_zh("embed", source, "--segmented", "--model", sample_run.model, "--layers", layers).only_error()
    assert told == f"--layers {layers}: expected all, average, top, mix or a number from 0 to 2."
    assert os.listdir(source.parent) == ["file.txt"]  # noqa: PTH208


def test_sentence_index_names_the_last_of_equal_lines(sample_run: SampleRun, source: Path) -> None:
    embed(sample_run, source, "--segmented", "--sentence-index")
    with h5py.File(source.with_name("file.txt.hdf5")) as file:
        assert file["sentence_to_index"].shape == (1,)
        index = json.loads(file["sentence_to_index"][0])
    assert index == {" ".join(tokens): str(line) for line, tokens in enumerate(SEGMENTED_TOKENS)}
    assert index["我 喜欢 吃 苹果 。"] == "3"


def test_shuffling_lines_and_batches_change_no_vector(sample_run: SampleRun, tmp_path: Path) -> None:
    lines = sample_run.heldout.read_text(encoding="utf-8").splitlines()
    order = np.random.default_rng(3).permutation(len(lines))
    write_lines(tmp_path / "a.txt", lines)
    write_lines(tmp_path / "b.txt", [lines[index] for index in order])
    embed(sample_run, tmp_path / "a.txt", "--segmented")
    embed(sample_run, tmp_path / "b.txt", "--segmented", "--set", "embed.batch_tokens=31")
    plain, shuffled = (read_dump(tmp_path / f"{name}.txt.hdf5")[0] for name in "ab")
    for place, index in enumerate(order):
        assert_close(shuffled[place], plain[index])


def test_an_empty_file_has_no_lines_but_says_what_it_is(sample_run: SampleRun, tmp_path: Path) -> None:
    write_lines(tmp_path / "empty.txt", [])
    assert embed(sample_run, tmp_path / "empty.txt", "--segmented", "--json").result()["lines"] == 0
    vectors, tokens, attributes = read_dump(tmp_path / "empty.txt.hdf5")
    assert (vectors, tokens) == ([], [])
    assert sorted(attributes) == ["dtype", "layers", "model_digest", "segmenter"]


def test_a_token_that_hdf5_cannot_hold_is_a_known_problem(sample_run: SampleRun, tmp_path: Path) -> None:
    """HDF5 strings end at a NUL; losing the rest of a token silently would be worse."""
    write_lines(tmp_path / "nul.txt", ["好", "苹\x00果 好"])
    answer = elmo_zh("embed", tmp_path / "nul.txt", "--segmented", "--model", sample_run.model)
    assert "line 2" in answer.only_error()


def test_an_existing_output_is_replaced_only_with_force(sample_run: SampleRun, source: Path) -> None:
    output = source.with_name("file.txt.hdf5")
    output.write_bytes(b"mine")
    arguments = ("embed", source, "--segmented", "--model", sample_run.model)
    told = elmo_zh(*arguments).only_error()
    assert told == f"{output} exists already. Choose another --output, or replace it with --force."
    assert output.read_bytes() == b"mine"
    assert elmo_zh(*arguments, "--force").status == 0
    assert len(read_dump(output)[0]) == len(SEGMENTED_LINES)


class Interrupted:
    """Makes the embedder stop in a part, as Ctrl-C does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, after_parts: int) -> None:
        self.num_calls = 0
        real = ElmoEmbedder.embed_tokens

        def embed_tokens(embedder: ElmoEmbedder, sentences: Sequence[Sequence[str]]) -> Any:
            self.num_calls += 1
            if self.num_calls > after_parts:
                raise KeyboardInterrupt
            return real(embedder, sentences)

        monkeypatch.setattr(ElmoEmbedder, "embed_tokens", embed_tokens)


@pytest.fixture
def unfinished(sample_run: SampleRun, source: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The parts of an output that was stopped after four of its seven lines."""
    monkeypatch.setattr(dump, "PART_LINES", 2)
    with monkeypatch.context() as during:
        Interrupted(during, after_parts=2)
        answer = elmo_zh("embed", source, "--segmented", "--model", sample_run.model)
    assert answer.status == 130
    assert answer.stderr.endswith("Interrupted. Type the same command again to go on.\n")
    assert "Traceback" not in answer.stderr
    assert answer.stdout == ""
    assert not source.with_name("file.txt.hdf5").exists()
    return source.with_name("file.txt.hdf5.parts")


def test_an_unfinished_output_is_continued(
    sample_run: SampleRun, source: Path, unfinished: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    counted = Interrupted(monkeypatch, after_parts=2)
    continued = embed(sample_run, source, "--segmented", "--json").result()
    assert counted.num_calls == 2  # four lines were there, three in two parts were left
    assert not unfinished.exists()
    counted.num_calls = -100
    output = tmp_path / "at-once.hdf5"
    at_once = embed(sample_run, source, "--segmented", "--json", "--output", output).result()
    assert continued == {**at_once, "output": f"{source}.hdf5"}
    (found, found_tokens, found_attributes), (vectors, tokens, attributes) = map(
        read_dump, (Path(f"{source}.hdf5"), output)
    )
    assert (found_tokens, found_attributes) == (tokens, attributes)
    for vector, expected in zip(found, vectors, strict=True):
        np.testing.assert_array_equal(vector, expected)


def test_an_unfinished_output_of_another_text_or_settings_is_refused(
    sample_run: SampleRun, source: Path, unfinished: Path
) -> None:
    arguments = ("embed", source, "--segmented", "--model", sample_run.model)
    expected = (
        f"{unfinished} holds an unfinished output of another text, model or settings."
        " Give the same ones to continue it, or --force to start anew."
    )
    assert elmo_zh(*arguments, "--layers", "top").only_error() == expected
    write_lines(source, ["别的 一 句"])
    assert elmo_zh(*arguments).only_error() == expected
    assert unfinished.exists()
    assert elmo_zh(*arguments, "--force").status == 0
    assert read_dump(Path(f"{source}.hdf5"))[1] == [["别的", "一", "句"]]
    assert not unfinished.exists()


@pytest.mark.parametrize("command", ["embed", "evaluate"])
def test_a_model_trained_with_carried_state_is_warned_of_once(
    sample_run: SampleRun, tmp_path: Path, command: str
) -> None:
    model = shutil.copytree(sample_run.model, tmp_path / "model")
    info = json.loads((model / "bundle.json").read_text(encoding="utf-8"))
    (model / "bundle.json").write_text(json.dumps({**info, "carry_state": True}), encoding="utf-8")
    source = write_lines(tmp_path / "file.txt", ["我 吃 苹果", "我 吃 花"])
    answer = elmo_zh(command, source, "--segmented", "--model", model, "--quiet")
    assert answer.status == 0
    assert answer.stderr.startswith("Warning: This model was trained with carried state, and")
    assert answer.stderr.count("\n") == 1


def test_stateful_carries_the_state_from_line_to_line(
    sample_run: SampleRun, embedder: ElmoEmbedder, source: Path
) -> None:
    answer = embed(sample_run, source, "--segmented", "--stateful", "--json")
    assert (answer.result()["lines"], answer.result()["empty_lines"]) == (7, 1)
    vectors, tokens, attributes = read_dump(source.with_name("file.txt.hdf5"))
    assert tokens == list(SEGMENTED_TOKENS)
    assert attributes == {
        "model_digest": embedder.bundle.digest,
        "layers": "all",
        "dtype": "float32",
        "segmenter": "as given",
        "stateful": True,
    }
    reference, state = oracle.load_bundle(sample_run.model), None
    for vector, line in zip(vectors, SEGMENTED_TOKENS, strict=True):
        expected, state = run_bilm(reference.bilm, oracle.token_vectors(reference, line), state)
        assert vector.shape == expected[:, 1:-1].shape
        np.testing.assert_allclose(vector, expected[:, 1:-1], rtol=0, atol=1e-5)
    # Equal lines have other vectors now.
    assert np.abs(vectors[3] - vectors[0]).max() > 1e-3


@pytest.fixture
def unfinished_stateful(sample_run: SampleRun, source: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The parts of an output with carried state that was stopped after four of its seven lines."""
    monkeypatch.setattr(dump, "PART_LINES", 2)
    with monkeypatch.context() as during:
        Interrupted(during, after_parts=2)
        assert elmo_zh("embed", source, "--segmented", "--stateful", "--model", sample_run.model).status == 130
    parts = source.with_name("file.txt.hdf5.parts")
    assert len(list(parts.glob("part-*.json"))) == 2
    return parts


@pytest.mark.parametrize("records_lost", [0, 1, 2])
def test_an_unfinished_output_with_carried_state_is_continued(
    sample_run: SampleRun,
    source: Path,
    unfinished_stateful: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    records_lost: int,
) -> None:
    """From the state at the end of the last part whose record was written; a part without one is done again."""
    for record in sorted(unfinished_stateful.glob("part-*.json"))[2 - records_lost :]:
        record.unlink()
    counted = Interrupted(monkeypatch, after_parts=100)
    continued = embed(sample_run, source, "--segmented", "--stateful", "--json").result()
    assert counted.num_calls == 2 + records_lost
    assert not unfinished_stateful.exists()
    output = tmp_path / "at-once.hdf5"
    at_once = embed(sample_run, source, "--segmented", "--stateful", "--json", "--output", output).result()
    assert continued == {**at_once, "output": f"{source}.hdf5"}
    assert Path(f"{source}.hdf5").read_bytes() == output.read_bytes()
    monkeypatch.setattr(dump, "PART_LINES", 1000)
    in_one_part = tmp_path / "in-one-part.hdf5"
    embed(sample_run, source, "--segmented", "--stateful", "--output", in_one_part)
    assert in_one_part.read_bytes() == output.read_bytes()


def test_an_unfinished_output_is_not_continued_with_the_other_kind_of_state(
    sample_run: SampleRun, source: Path, unfinished_stateful: Path
) -> None:
    arguments = ("embed", source, "--segmented", "--model", sample_run.model)
    told = elmo_zh(*arguments).only_error()
    assert told.startswith(f"{unfinished_stateful} holds an unfinished output of another text, model or settings.")
    # Started anew, it is as if nothing had been there.
    assert elmo_zh(*arguments, "--force").status == 0
    vectors, _, attributes = read_dump(Path(f"{source}.hdf5"))
    assert "stateful" not in attributes
    assert_close(vectors[3], vectors[0])


def test_one_layer_of_a_stateful_output(sample_run: SampleRun, source: Path) -> None:
    stateful = ElmoEmbedder.load(sample_run.model, stateful=True)
    embed(sample_run, source, "--segmented", "--stateful", "--layers", "top", "--dtype", "float16")
    vectors, _, _ = read_dump(source.with_name("file.txt.hdf5"))
    for vector, every in zip(vectors, stateful.embed_tokens(SEGMENTED_TOKENS), strict=True):
        assert vector.dtype == np.float16
        np.testing.assert_allclose(vector, every[LAYERS], rtol=2**-10, atol=1e-6)


def stateful_figures(model: Path, files: Sequence[Sequence[Sequence[str]]]) -> dict[str, float]:
    """The oracle's perplexities; each file starts from zeros, and the mark that is predicted last is not read."""
    reference = oracle.load_bundle(model)
    forward, backward = [], []
    for sentences in files:
        state: BilmState | None = None
        for words in sentences:
            ids, vectors = oracle.token_ids(reference, words), oracle.token_vectors(reference, words)
            forward_layers, (forward_state, _) = run_bilm(reference.bilm, vectors[:-1], state)
            backward_layers, (_, backward_state) = run_bilm(reference.bilm, vectors[1:], state)
            state = [forward_state, backward_state]
            tops = zip(forward_layers[-1][:, :PROJECTION], backward_layers[-1][:, PROJECTION:], strict=True)
            for place, (forward_top, backward_top) in enumerate(tops):
                forward.append(oracle.prediction_nats(reference, forward_top, ids[place + 1]))
                backward.append(oracle.prediction_nats(reference, backward_top, ids[place]))
    return {
        "forward_perplexity": float(np.exp(np.mean(forward))),
        "backward_perplexity": float(np.exp(np.mean(backward))),
        "perplexity": float(np.exp(np.mean([forward, backward]))),
        "num_predictions": len(forward),
    }


def test_evaluate_with_carried_state(sample_run: SampleRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = sample_run.heldout.read_text(encoding="utf-8").splitlines()
    texts = [["我 喜欢 吃 苹果 。", "", "春天 的 花 开 了", "吃"], lines[:29]]
    files = [write_lines(tmp_path / f"{number}.txt", text) for number, text in enumerate(texts)]
    arguments = ("evaluate", *files, "--segmented", "--model", sample_run.model, "--json")
    expected = stateful_figures(sample_run.model, [[line.split(" ") for line in text if line] for text in texts])
    monkeypatch.setattr(evaluate, "_WINDOW_SENTENCES", 5)
    found = elmo_zh(*arguments, "--stateful").result()
    assert {name: found[name] for name in expected} == pytest.approx(expected, rel=1e-4)
    from_zeros = elmo_zh(*arguments).result()
    for name in ("forward_perplexity", "backward_perplexity"):
        assert abs(from_zeros[name] / found[name] - 1) > 3e-4
    assert from_zeros["num_predictions"] == found["num_predictions"]


@pytest.mark.parametrize("command", ["embed", "evaluate"])
def test_a_model_trained_with_carried_state_is_not_warned_of_where_it_is_carried(
    sample_run: SampleRun, tmp_path: Path, command: str
) -> None:
    model = shutil.copytree(sample_run.model, tmp_path / "model")
    info = json.loads((model / "bundle.json").read_text(encoding="utf-8"))
    (model / "bundle.json").write_text(json.dumps({**info, "carry_state": True}), encoding="utf-8")
    source = write_lines(tmp_path / "file.txt", ["我 吃 苹果", "我 吃 花"])
    answer = elmo_zh(command, source, "--segmented", "--stateful", "--model", model, "--quiet")
    assert (answer.status, answer.stderr) == (0, "")
