"""Models in the published layout become bundles whose vectors are those of the NumPy oracle over the source files.

The sources are written here, from random numbers, by the text of the file formats.
"""

import json
import shutil
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from contract.command_line import Answer, SampleRun, contents_alone, elmo_zh, succeed
from contract.dumps import assert_all_close, write_lines
from drawn_bundles import zip_folder
from parity import numpy_oracle
from parity.numpy_bilm import Array, load_bilm, read_array
from parity.numpy_character_cnn import load_character_cnn
from parity.test_oracle_golden import SENTENCE_FILES, TOLERANCE, golden_dir, needs_golden, stored_top_layers
from safetensors.numpy import load_file

from elmo_zh import ElmoEmbedder
from elmo_zh.bundle.read import load_bundle
from elmo_zh.run.files import file_digest
from elmo_zh.run.outputs import MARK

# Distinct primes, so that a swapped axis fails: P, D, L, V; c, N (the filters') and slots of characters.
P, D, L, V = 5, 13, 2, 11
C_DIM, FILTERS, N, SLOTS = 2, ((1, 3), (2, 7), (5, 7)), 17, 19
SPECIALS = ["<S>", "</S>", "<UNK>"]
VOCAB = [*SPECIALS, "我们", "今天", "吃", "苹果", "，", "手机", "贵", "。"]
# The last word has seven characters of three bytes, and 17 bytes are read; 桃 and 齉龘 are outside the vocabulary.
SENTENCES = (
    ["今天", "吃", "苹果", "。"],
    ["我们", "，", "桃", "，", "齉龘"],
    ["贵"],
    ["<S>", "手机", "<UNK>", "手机", "很贵很贵很贵贵"],
    ["今天"] * 7,
)
CARRIED = "This model was trained with carried state"


def draw_arrays(*, characters: bool, softmax: bool) -> dict[str, Array]:
    """Return every dataset of a model by its published name; numbers large enough to reach the clips."""
    shapes: dict[str, tuple[int, ...]] = {}
    for d in range(2):
        for i in range(L):
            cell = f"RNN_{d}/RNN/MultiRNNCell/Cell{i}/LSTMCell"
            shapes |= {f"{cell}/W_0": (2 * P, 4 * D), f"{cell}/B": (4 * D,), f"{cell}/W_P_0": (D, P)}
    if characters:
        shapes["char_embed"] = (261, C_DIM)
        for k, (width, count) in enumerate(FILTERS):
            shapes |= {f"CNN/W_cnn_{k}": (1, width, C_DIM, count), f"CNN/b_cnn_{k}": (count,)}
        for part in ("carry", "transform"):
            shapes |= {f"CNN_high_0/W_{part}": (N, N), f"CNN_high_0/b_{part}": (N,)}
        shapes |= {"CNN_proj/W_proj": (N, P), "CNN_proj/b_proj": (P,)}
    else:
        shapes["embedding"] = (V, P)
    if softmax:
        shapes |= {"softmax/W": (V, P), "softmax/b": (V,)}
    random = np.random.default_rng(23)
    return {name: random.normal(0.0, 0.5, shape).astype(np.float32).astype(float) for name, shape in shapes.items()}


def published_options(*, characters: bool) -> dict[str, Any]:
    lstm = {"cell_clip": 0.7, "proj_clip": 0.4, "dim": D, "n_layers": L, "projection_dim": P}
    options: dict[str, Any] = {"n_epochs": 10, "lstm": {**lstm, "use_skip_connections": True}}
    if characters:
        options["char_cnn"] = {
            "activation": "relu",
            "embedding": {"dim": C_DIM},
            "filters": [list(pair) for pair in FILTERS],
            "max_characters_per_token": SLOTS,
            "n_characters": 262,
            "n_highway": 1,
        }
    else:
        options["n_tokens_vocab"] = V
    return options


@dataclass(kw_only=True)
class Published:
    """A model to be written under any names, and what the oracle makes of it."""

    characters: bool
    softmax: bool = False
    vocab: list[str] | None = field(default_factory=lambda: list(VOCAB))

    def __post_init__(self) -> None:
        self.arrays = draw_arrays(characters=self.characters, softmax=self.softmax)
        self.options = published_options(characters=self.characters)

    def write(
        self,
        folder: Path,
        *,
        options: str = "options.json",
        weights: str = "weights.hdf5",
        vocab: str = "vocab.data",
        embedding: str = "",
    ) -> Path:
        """Write the files; with a name in `embedding` the token embeddings stand there and not in the weights."""
        folder.mkdir(parents=True)
        (folder / options).write_text(json.dumps(self.options), encoding="utf-8")
        apart = {"embedding"} if embedding else set()
        write_hdf5(folder / weights, {name: array for name, array in self.arrays.items() if name not in apart})
        if embedding:
            write_hdf5(folder / embedding, {"embedding": self.arrays["embedding"]})
        if self.vocab is not None:
            write_lines(folder / vocab, self.vocab)
        return folder

    def oracle(self, folder: Path) -> numpy_oracle.Bundle:
        """Return the oracle's reading of the arrays, by way of a file of its own."""
        path = folder / "for the oracle.h5"
        write_hdf5(path, self.arrays)
        with h5py.File(path) as weights:
            cnn = load_character_cnn(weights, self.options) if self.characters else None
            return numpy_oracle.Bundle(
                options=self.options,
                vocab=VOCAB,
                character_counts={numpy_oracle.END_MARK: 0},
                token_layer=cnn or self.arrays["embedding"],
                bilm=load_bilm(weights, self.options["lstm"]),
                softmax_weight=self.arrays.get("softmax/W", np.zeros((0, 0))),
                softmax_bias=self.arrays.get("softmax/b", np.zeros(0)),
            )


def write_hdf5(path: Path, arrays: dict[str, Array]) -> None:
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file.create_dataset(name, data=array.astype(np.float32))


def convert(source: Path, output: Path, *options: str | Path) -> Answer:
    return succeed("convert", source, "--output", output, *options)


def info_of(bundle: Path) -> Any:
    return json.loads((bundle / "bundle.json").read_text(encoding="utf-8"))


def assert_same_vectors(bundle: Path, model: Published) -> None:
    reference = model.oracle(bundle.parent)
    expected = [numpy_oracle.layer_activations(reference, words) for words in SENTENCES]
    assert_all_close(ElmoEmbedder.load(bundle, unknown="unk").embed_tokens(SENTENCES), expected, 1e-5)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out" / "bundle"


MODES = {True: "character", False: "token"}


@pytest.mark.usefixtures("hdf5_in_its_process")
@pytest.mark.parametrize("characters", MODES)
def test_options_weights_and_vocabulary_in_a_folder(tmp_path: Path, out: Path, characters: bool) -> None:
    model = Published(characters=characters)
    source = model.write(tmp_path / "source")
    before = contents_alone(source)
    answer = convert(source, out, "--json")
    told = {"output": str(out), "mode": MODES[characters], "warm_state": False}
    assert told.items() <= answer.result().items()
    assert answer.stderr.startswith(CARRIED)
    assert_same_vectors(out, model)
    info = info_of(out)
    names = ("options.json", "weights.hdf5", "vocab.data")
    assert info["origin"] == {
        "program": "bilm-tf, AllenNLP or simple_elmo",
        "files": {name: file_digest(source / name) for name in names},
    }
    expected = {"mode": MODES[characters], "carry_state": True, "segmenter": None, "text": None, "training": {}}
    assert {name: info[name] for name in expected} == expected
    assert info["vocabulary_digest"] == file_digest(source / "vocab.data")
    # The source is only read, and nothing stands beside the bundle.
    assert contents_alone(source) == before
    assert sorted(out.parent.iterdir()) == [out, out.parent / "for the oracle.h5"]
    # What was written is what was read.
    for name, array in model.arrays.items():
        with h5py.File(out / "weights.hdf5") as file:
            np.testing.assert_array_equal(file[name][()], array.astype(np.float32), err_msg=name)
    # Clips and cut words are within reach: else the comparisons would not notice a reader that does without.
    embedder = ElmoEmbedder.load(out)
    assert (np.abs(embedder.embed_tokens(SENTENCES)[3][1]) == np.float32(0.4)).any()
    assert [embedder.count_cut(words) for words in SENTENCES] == [0, 0, 0, int(characters), 0]


# The softmax


@pytest.mark.parametrize("characters", MODES)
def test_with_a_softmax_perplexity_is_that_of_the_oracle(tmp_path: Path, out: Path, characters: bool) -> None:
    model = Published(characters=characters, softmax=True)
    convert(model.write(tmp_path / "source"), out)
    text = write_lines(tmp_path / "text.txt", map(" ".join, SENTENCES))
    answer = elmo_zh("evaluate", text, "--segmented", "--model", out, "--json")
    expected = numpy_oracle.evaluate(model.oracle(tmp_path), SENTENCES)
    result = answer.result()
    del result["model"]
    assert result == pytest.approx(expected, rel=1e-5)


# Where the files are and how they are named


PREFIX = "elmo_2x4096_512_2048cnn_2xhighway"
CHARACTERS, TOKENS = partial(Published, characters=True), partial(Published, characters=False)
Found = tuple[Published, Path, list[str | Path], set[str]]


def with_others(folder: Path) -> Found:
    """As on AllenNLP's pages, without a vocabulary; other JSON and HDF5 files do not disturb."""
    model = CHARACTERS(vocab=None)
    source = model.write(folder / "source", options=f"{PREFIX}_options.json", weights=f"{PREFIX}_weights.hdf5")
    (source / "meta.json").write_text("[]", encoding="utf-8")
    write_hdf5(source / "vectors.hdf5", {"0": np.zeros((L, 3, P))})
    return model, source, [], {f"{PREFIX}_options.json", f"{PREFIX}_weights.hdf5"}


def in_archive(folder: Path) -> Found:
    prefix = "nlpl/179/"
    model, _, _, names = simple_elmo(folder)
    archive = zip_folder(folder / "source", prefix)
    with zipfile.ZipFile(archive, "a") as file:
        file.writestr(f"{prefix}train.py", "raise SystemExit")
        # As macOS packs them.
        for name in names:
            file.writestr(f"__MACOSX/{prefix}._{name}", b"\0\5\26\7\0\2\0\0Mac OS X")
        file.mkdir(f"{prefix}empty.json")
    return model, archive, [], names


def simple_elmo(folder: Path) -> Found:
    model = CHARACTERS()
    source = model.write(folder / "source", weights="model.hdf5", vocab="zh_vocab_2017.txt")
    return model, source, [], {"options.json", "model.hdf5", "zh_vocab_2017.txt"}


def all_named(folder: Path) -> Found:
    """From other folders, under other names, and against what stands in the folder that was given."""
    model, source = TOKENS(), CHARACTERS().write(folder / "source")
    right = model.write(folder / "right", options="a", weights="b", vocab="c")
    return model, source, ["--options", right / "a", "--weights", right / "b", "--vocab", right / "c"], {*"abc"}


def embeddings_apart(folder: Path) -> Found:
    """Named ones come before those in the folder."""
    model = TOKENS()
    source = model.write(folder / "source", embedding="vocab_embedding.hdf5")
    model.arrays["embedding"] = 3 * model.arrays["embedding"]
    write_hdf5(source / "named.hdf5", {"embedding": model.arrays["embedding"]})
    names = {"options.json", "weights.hdf5", "vocab.data", "named.hdf5"}
    return model, source, ["--embedding", source / "named.hdf5"], names


@pytest.mark.parametrize("find", [simple_elmo, with_others, in_archive, all_named, embeddings_apart])
def test_files_are_found_or_named(tmp_path: Path, out: Path, find: Callable[[Path], Found]) -> None:
    model, source, named, names = find(tmp_path)
    convert(source, out, *named)
    assert_same_vectors(out, model)
    info = info_of(out)
    assert set(info["origin"]["files"]) == names
    assert (info["vocabulary_digest"] is not None) == (out / "vocab.data").exists() == (model.vocab is not None)
    assert sorted(out.parent.iterdir()) == [out, out.parent / "for the oracle.h5"]


def test_a_named_file_is_never_passed_over_in_silence(tmp_path: Path, out: Path) -> None:
    source, bundle, nothing = tmp_path / "source", tmp_path / "bundle", tmp_path / "nothing"
    convert(TOKENS().write(source), bundle)
    for kind in ("options", "weights", "vocab", "embedding"):
        assert str(nothing) in elmo_zh("convert", source, "--output", out, f"--{kind}", nothing).stderr
        # A bundle names its files itself.
        assert f"--{kind}" in elmo_zh("convert", bundle, "--output", out, f"--{kind}", nothing).only_error()
    # Of two files one must be named.
    second = Path(shutil.copyfile(source / "weights.hdf5", source / "b_weights.hdf5"))
    assert "--weights FILE" in elmo_zh("convert", source, "--output", out).only_error()
    assert not out.exists()
    convert(source, out, "--weights", second)
    assert second.name in info_of(out)["origin"]["files"]


@pytest.mark.parametrize(
    ("section", "values"),
    [
        # Training code says 261; ours always say 262, as inference wants it.
        ("char_cnn", {"n_characters": 261}),
        ("lstm", {"cell_clip": None, "proj_clip": 0.2, "use_skip_connections": False}),
    ],
)
def test_other_options(tmp_path: Path, out: Path, section: str, values: dict[str, Any]) -> None:
    model = Published(characters=section == "char_cnn")
    model.options[section] |= values
    convert(model.write(tmp_path / "source"), out)
    assert_same_vectors(out, model)
    expected = model.options | {"n_tokens_vocab": V}
    if section == "char_cnn":
        expected["char_cnn"] = {**model.options["char_cnn"], "n_characters": 262}
    written = json.loads((out / "options.json").read_text(encoding="utf-8"))
    assert expected.items() <= written.items()


@pytest.mark.parametrize(("said", "carried"), [(False, False), (True, True), (None, True), ("false", True)])
def test_a_model_that_says_how_its_state_was_trained(tmp_path: Path, out: Path, said: Any, carried: bool) -> None:
    """Ours say so in the options, so that their files alone are enough; all others carry it and say nothing."""
    model = Published(characters=False)
    model.options["carry_state"] = said
    answer = convert(model.write(tmp_path / "source"), out)
    assert info_of(out)["carry_state"] is carried
    assert answer.stderr.startswith(CARRIED) is carried


# A vocabulary without <UNK>


def test_a_vocabulary_without_unk_is_left_out_in_character_mode(tmp_path: Path, out: Path) -> None:
    model = Published(characters=True, vocab=["good", "Why", "，"])
    source = model.write(tmp_path / "source", vocab="vocab_test.txt")
    assert "vocab_test.txt was not used" in convert(source, out).stderr
    assert_same_vectors(out, model)
    assert not (out / "vocab.data").exists()
    assert set(info_of(out)["origin"]["files"]) == {"options.json", "weights.hdf5"}
    # Named, it is used or refused.
    named = ("--vocab", source / "vocab_test.txt")
    assert "vocab_test.txt: " in elmo_zh("convert", source, "--output", tmp_path / "new", *named).only_error()


@pytest.mark.parametrize("characters", MODES)
@pytest.mark.parametrize(("vocab", "told"), [(None, "--vocab FILE"), ([*VOCAB[3:], "很", "好", "了"], "vocab.data: ")])
def test_rows_without_their_words_are_refused(
    tmp_path: Path, out: Path, characters: bool, vocab: list[str] | None, told: str
) -> None:
    """In character mode those of a softmax: what they predict is not known."""
    model = Published(characters=characters, softmax=characters, vocab=vocab)
    source = model.write(tmp_path / "source")
    assert told in elmo_zh("convert", source, "--output", out).only_error()
    convert(source, out, "--vocab", write_lines(tmp_path / "words", VOCAB))
    assert_same_vectors(out, model)


# How the text was segmented


def test_raw_text_needs_a_known_segmenter(tmp_path: Path, out: Path) -> None:
    """Given at once or later; what a bundle knows already is not overruled."""
    first, raw, words = tmp_path / "first", tmp_path / "raw.txt", tmp_path / "words.txt"
    raw.write_text("今天 吃 　苹果手机。\n", encoding="utf-8")
    convert(CHARACTERS().write(tmp_path / "source"), first)
    (told,) = elmo_zh("embed", raw, "--model", first).errors
    assert told.endswith("--set text.segmenter=jieba")
    words.write_text("苹果手机 100000 n\n", encoding="utf-8")
    for name, expected in (("whitespace", ["今天", "吃", "苹果手机。"]), ("jieba", ["今天", "吃", "苹果手机", "。"])):
        dictionary = ["--set", f"text.user_dictionary={words}"] if name == "jieba" else []
        convert(first, out, "--force", "--set", f"text.segmenter={name}", *dictionary)
        # U+3000 is white space too, and made a space.
        assert ElmoEmbedder.load(out).tokens("今天 吃 　苹果手机。") == expected
        info = info_of(out)
        assert (info["segmenter"]["name"], info["text"]["segmenter"]) == (name, name)
        assert info["origin"] == info_of(first)["origin"]
    convert(out, tmp_path / "again")
    assert (tmp_path / "again" / "user_dictionary.txt").read_bytes() == words.read_bytes()
    told = elmo_zh("convert", out, "--output", tmp_path / "x", "--set", "text.segmenter=character").only_error()
    assert str(out) in told


# A warm state


def test_a_bundle_again_with_a_warm_state(tmp_path: Path, out: Path) -> None:
    """Which state a text gives, and the vectors from it, are seen in tests/bundle."""
    bundle, warmed = tmp_path / "bundle", tmp_path / "warmed"
    text, empty = write_lines(tmp_path / "text", map(" ".join, SENTENCES)), write_lines(tmp_path / "empty", ["", " "])
    convert(Published(characters=True).write(tmp_path / "source"), bundle)
    answer = convert(bundle, warmed, "--warm-on", text, "--segmented", "--json")
    assert answer.result()["warm_state"] is True
    # Everything else of the bundle stays.
    before, after = info_of(bundle)["digests"], info_of(warmed)["digests"]
    assert after == before | {name: after[name] for name in ("warm_state.hdf5", "golden.hdf5")}
    cold, warm = (ElmoEmbedder.load(path).embed_tokens(SENTENCES) for path in (bundle, warmed))
    assert min(np.abs(a - b).max() for a, b in zip(cold, warm, strict=True)) > 0.01
    # A text or a layout that cannot give or hold one.
    typed = ("convert", bundle, "--output", out, "--warm-on", empty, "--segmented")
    assert str(empty) in elmo_zh(*typed).only_error()
    answer = elmo_zh("convert", warmed, "--output", out, "--layout", "safetensors", "--json")
    assert answer.result()["warm_state"] is False
    assert "warm_state.hdf5" in answer.stderr


# Other layouts


def test_a_bundle_for_simple_elmo(tmp_path: Path, out: Path) -> None:
    model = Published(characters=True, softmax=True)
    convert(model.write(tmp_path / "source"), tmp_path / "bundle")
    again = ("convert", tmp_path / "bundle", "--output", out, "--layout", "simple_elmo", "--force")
    assert succeed(*again).stderr == ""
    assert {"model.hdf5", "options.json", "vocab.txt"} == {path.name for path in out.iterdir()} - {MARK}
    # It is a source as good as the first.
    convert(out, tmp_path / "back")
    assert_same_vectors(tmp_path / "back", model)
    # A model, which --force replaces; with a file of somebody else's in it, it is none.
    succeed(*again)
    (out / "notes.txt").touch()
    assert str(out) in elmo_zh(*again).only_error()


@pytest.mark.parametrize("characters", MODES)
def test_safetensors_under_the_published_names(tmp_path: Path, out: Path, characters: bool) -> None:
    model = Published(characters=characters, softmax=True)
    convert(model.write(tmp_path / "source"), out, "--layout", "safetensors")
    tensors = load_file(out / "model.safetensors")
    assert set(tensors) == set(model.arrays)
    for name, array in model.arrays.items():
        np.testing.assert_array_equal(tensors[name], array.astype(np.float32), err_msg=name)


def test_a_bundle_of_our_own_stays_what_it_is(sample_run: SampleRun, out: Path) -> None:
    """Trained from zero state, so that nothing is said of a warm state."""
    assert convert(sample_run.model, out).stderr == ""
    before, after = info_of(sample_run.model), info_of(out)
    assert before.pop("digests") == after.pop("digests")
    assert before == after
    assert set(contents_alone(out)) == {*info_of(out)["digests"], "bundle.json", "history.json"}
    assert (out / "history.json").read_bytes() == (sample_run.model / "history.json").read_bytes()
    assert load_bundle(out).weights.has_softmax


# Files of the original programs


@pytest.fixture(scope="module", params=SENTENCE_FILES)
def golden(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path]]:
    """One of the stored models, and the bundle that the command line makes of it."""
    source = golden_dir(request.param)
    bundle = tmp_path_factory.mktemp(request.param) / "bundle"
    answer = convert(source, bundle)
    assert answer.stderr.startswith("vocab_test.txt was not used")
    return source, bundle


def embedded(source: Path, bundle: Path, folder: Path, row: int, *options: str) -> list[Array]:
    """Return the top layer of one stored stream's sentences by `elmo-zh embed`."""
    sentences = json.loads((source / SENTENCE_FILES[source.name]).read_text(encoding="utf-8"))[row]
    text = write_lines(folder / "text.txt", sentences)
    arguments = ("--model", bundle, "--output", folder / "out.hdf5", "--layers", "top", "--segmented", *options)
    succeed("embed", text, *arguments)
    with h5py.File(folder / "out.hdf5") as file:
        return [read_array(file, str(line)) for line in range(len(sentences))]


@pytest.mark.interop
@needs_golden
@pytest.mark.parametrize("row", [0, 1, 2])
def test_the_stored_vectors_of_the_originals(golden: tuple[Path, Path], tmp_path: Path, row: int) -> None:
    """Without the carried state that of the first sentence of each stream alone."""
    source, bundle = golden
    expected = stored_top_layers(source.name, row)
    assert_all_close(embedded(source, bundle, tmp_path, row, "--stateful", "--force"), expected, TOLERANCE)
    found = embedded(source, bundle, tmp_path, row, "--force")
    differences = [np.abs(ours - theirs).max() for ours, theirs in zip(found, expected, strict=True)]
    assert differences[0] < TOLERANCE
    assert min(differences[1:]) > 100 * TOLERANCE
