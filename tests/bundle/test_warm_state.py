"""The warm state against the NumPy oracle, and what a bundle that has one does."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch
from contract.command_line import SampleRun
from messages import message_of
from numpy.typing import NDArray
from parity import numpy_oracle as oracle
from parity.numpy_bilm import Array, Bilm, BilmState, load_bilm, run_bilm
from parity.numpy_character_cnn import load_character_cnn, sentence_vectors

from elmo_zh.bundle import warm_state
from elmo_zh.bundle.options import options_of
from elmo_zh.bundle.read import load_bundle
from elmo_zh.bundle.warm_state import load_warm_state, save_warm_state, warm_up
from elmo_zh.bundle.weights import save_weights
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.errors import BundleError
from elmo_zh.model import projected_lstm
from elmo_zh.model.batches import build_inputs, mark_sentence, pad_sentences
from elmo_zh.model.bilm import BiLM, BiLMShape
from elmo_zh.model.character_cnn import CharacterShape
from elmo_zh.run.files import file_digest
from elmo_zh.vocabulary.lexicon import Lexicon
from elmo_zh.vocabulary.vocabulary import SPECIALS, Vocabulary

VOCABULARY = Vocabulary((*SPECIALS, "我们", "今天", "吃", "苹果"))
SENTENCES = (
    ["今天", "吃"],
    ["我们"],
    [],
    ["梨", "今天", "我们", "苹果", "吃"],
    ["苹果"],
    ["吃", "桃", "吃"],
    ["今天"] * 11,
)
P, D, L, SLOTS = 5, 13, 3, 11
TOKENS = BiLMShape(
    num_tokens=len(VOCABULARY),
    cell_dim=D,
    projection_dim=P,
    num_layers=L,
    cell_clip=0.7,
    projection_clip=0.4,
    skip_connections=True,
)
CHARACTERS = CharacterShape(
    num_characters=261, num_slots=SLOTS, embedding_dim=2, filters=((1, 3), (2, 7)), num_highways=1, activation="relu"
)
SHAPES = {"token": TOKENS, "character": replace(TOKENS, characters=CHARACTERS)}


class Model:
    """A random biLM with large weights, and the same as the oracle reads it from its file."""

    def __init__(self, shape: BiLMShape, folder: Path) -> None:
        self.bilm = BiLM(shape)
        generator = torch.Generator().manual_seed(7)
        with torch.no_grad():
            for parameter in self.bilm.parameters():
                parameter.normal_(0.0, 0.6, generator=generator)
        self.lexicon = Lexicon(VOCABULARY, SLOTS if shape.characters else None)
        save_weights(folder / "weights.hdf5", self.bilm, None)
        options = options_of(shape, {}, len(VOCABULARY))
        with h5py.File(folder / "weights.hdf5") as weights:
            self.reference: Bilm = load_bilm(weights, options["lstm"])
            self.token_layer: Any = (
                load_character_cnn(weights, options) if shape.characters else weights["embedding"][()].astype(float)
            )

    def vectors(self, words: list[str]) -> Array:
        """The oracle's token vectors of <S>, the words, </S>."""
        if self.lexicon.num_slots is not None:
            return sentence_vectors(self.token_layer, words)
        known = {word: row for row, word in enumerate(VOCABULARY.tokens)}
        return np.asarray(self.token_layer[[0, *(known.get(word, 2) for word in words), 1]])

    def read(self, words: list[str], state: BilmState | None) -> BilmState:
        """The oracle's state after the last word: the forward LM has not read </S>, nor the backward LM <S>."""
        vectors = self.vectors(words)
        _, (forward, _) = run_bilm(self.reference, vectors[:-1], state)
        _, (_, backward) = run_bilm(self.reference, vectors[1:], state)
        return [forward, backward]

    def mean_state(self, streams: list[list[list[str]]], uncounted: int) -> tuple[Array, Array]:
        """The mean outputs, (L, 2, P), and cells, (L, 2, D), over streams that carry their state."""
        found = []
        for stream in streams:
            state = None
            for number, words in enumerate(stream):
                state = self.read(words, state)
                if number >= uncounted:
                    found.append(state)
        parts = [[[[state[d][i][part] for d in range(2)] for i in range(L)] for state in found] for part in (1, 0)]
        output, cell = (np.array(part).mean(axis=0) for part in parts)
        return output, cell

    def ids(self) -> list[NDArray[Any]]:
        return [np.asarray(self.lexicon.encode(words), np.int64) for words in SENTENCES]

    def assert_warm(self, output: Array, cell: Array) -> None:
        assert self.bilm.warm_output is not None
        assert self.bilm.warm_cell is not None
        np.testing.assert_allclose(self.bilm.warm_output[:, :, 0].numpy(), output, rtol=0, atol=1e-6)
        np.testing.assert_allclose(self.bilm.warm_cell[:, :, 0].numpy(), cell, rtol=0, atol=1e-6)


@pytest.fixture(params=list(SHAPES))
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Model:
    return Model(SHAPES[request.param], tmp_path)


@pytest.mark.parametrize(
    ("num_streams", "lengths", "uncounted", "count"),
    [
        # Few sentences: each is a stream of its own, and starts from zeros.
        (32, [1, 1, 1, 1, 1, 1, 1], 0, 7),
        (7, [1, 1, 1, 1, 1, 1, 1], 0, 7),
        (5, [2, 2, 2, 1], 1, 3),
        (3, [3, 3, 1], 2, 2),
        (2, [4, 3], 2, 3),
        (1, [7], 2, 5),
    ],
)
def test_the_mean_is_that_of_streams_that_carry_their_state(
    model: Model, monkeypatch: pytest.MonkeyPatch, num_streams: int, lengths: list[int], uncounted: int, count: int
) -> None:
    monkeypatch.setattr(warm_state, "_STREAMS", num_streams)
    assert warm_up(model.bilm, model.lexicon, iter(model.ids())) == count
    text = iter(SENTENCES)
    streams = [[next(text) for _ in range(length)] for length in lengths]
    model.assert_warm(*model.mean_state(streams, uncounted))


def test_a_sentence_longer_than_is_computed_at_once(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(projected_lstm, "_INFERENCE_STEPS", 3)
    monkeypatch.setattr(warm_state, "_STREAMS", 2)
    warm_up(model.bilm, model.lexicon, model.ids())
    model.assert_warm(*model.mean_state([list(SENTENCES[:4]), list(SENTENCES[4:])], 2))


def test_a_warm_state_of_before_has_no_influence(model: Model) -> None:
    for _ in range(2):
        warm_up(model.bilm, model.lexicon, model.ids())
        model.assert_warm(*model.mean_state([[words] for words in SENTENCES], 0))


def test_no_more_text_is_read_than_is_needed(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight words in four sentences; the third is empty."""
    monkeypatch.setattr(warm_state, "_MOST_TOKENS", 8)

    def sentences() -> Iterator[NDArray[Any]]:
        yield from model.ids()[:4]
        pytest.fail("read on")

    assert warm_up(model.bilm, model.lexicon, sentences()) == 4
    model.assert_warm(*model.mean_state([[words] for words in SENTENCES[:4]], 0))


def test_every_sentence_starts_from_the_warm_state(model: Model) -> None:
    warm_up(model.bilm, model.lexicon, model.ids())
    output, cell = model.mean_state([[words] for words in SENTENCES], 0)
    warm: BilmState = [[(cell[i, d], output[i, d]) for i in range(L)] for d in range(2)]
    ids, mask = pad_sentences([mark_sentence(ids) for ids in model.ids()])
    found = model.bilm.layer_activations(build_inputs(model.lexicon, ids), mask).numpy()
    for row, words in enumerate(SENTENCES):
        expected, _ = run_bilm(model.reference, model.vectors(words), warm)
        np.testing.assert_allclose(found[:, row, : len(words) + 2], expected, rtol=0, atol=1e-5)
        from_zeros, _ = run_bilm(model.reference, model.vectors(words))
        assert np.abs(expected - from_zeros).max() > 0.01


def test_there_and_back_through_the_file(model: Model, tmp_path: Path) -> None:
    warm_up(model.bilm, model.lexicon, model.ids())
    path = tmp_path / "warm_state.hdf5"
    save_warm_state(path, model.bilm)
    with h5py.File(path) as file:
        assert {name: (array.shape, array.dtype) for name, array in file.items()} == {
            "output": ((L, 2, P), np.dtype("float32")),
            "cell": ((L, 2, D), np.dtype("float32")),
        }
    other = BiLM(model.bilm.shape)
    load_warm_state(path, other)
    for name in ("warm_output", "warm_cell"):
        assert torch.equal(getattr(other, name), getattr(model.bilm, name))


def test_a_warm_state_that_does_not_fit(tmp_path: Path) -> None:
    path, bilm = tmp_path / "warm_state.hdf5", BiLM(TOKENS)
    with h5py.File(path, "w") as file:
        file["output"], file["cell"] = np.zeros((L, 2, P), "f4"), np.zeros((L, 2, D + 1), "f4")
    found = message_of(BundleError, lambda: load_warm_state(path, bilm))
    assert found == f"{path}: cell is float32 (3, 2, 14), expected float32 (3, 2, 13)."
    with h5py.File(path, "a") as file:
        del file["output"]
    assert message_of(BundleError, lambda: load_warm_state(path, bilm)).startswith(f"{path}: dataset output is missing")
    path.write_bytes(b"no HDF5")
    assert message_of(BundleError, lambda: load_warm_state(path, bilm)).startswith(f"{path} cannot be read as HDF5")
    assert bilm.warm_output is bilm.warm_cell is None


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_warm_state_without_finite_numbers(tmp_path: Path, value: float) -> None:
    path = tmp_path / "warm_state.hdf5"
    with h5py.File(path, "w") as file:
        file["output"], file["cell"] = np.zeros((L, 2, P), "f4"), np.full((L, 2, D), value, "f4")
    found = message_of(BundleError, lambda: load_warm_state(path, BiLM(TOKENS)))
    assert found.startswith(f"{path}: cell holds numbers that are not finite.")


@pytest.fixture
def warm_model(sample_run: SampleRun, tmp_path: Path) -> Path:
    """A bundle as if trained with carried state, warmed up on its held-out text."""
    folder = shutil.copytree(sample_run.model, tmp_path / "warm model")
    bundle = load_bundle(sample_run.model)
    lexicon = bundle.build_lexicon()
    lines = sample_run.heldout.read_text(encoding="utf-8").splitlines()
    warm_up(bundle.bilm, lexicon, (np.asarray(lexicon.encode(line.split(" "))) for line in lines))
    save_warm_state(folder / "warm_state.hdf5", bundle.bilm)
    info = json.loads((folder / "bundle.json").read_text(encoding="utf-8"))
    info["digests"]["warm_state.hdf5"] = file_digest(folder / "warm_state.hdf5")
    (folder / "bundle.json").write_text(json.dumps({**info, "carry_state": True}), encoding="utf-8")
    return folder


def test_vectors_of_a_bundle_with_a_warm_state_do_not_depend_on_the_order(
    warm_model: Path, sample_run: SampleRun
) -> None:
    lines = [line.split(" ") for line in sample_run.heldout.read_text(encoding="utf-8").splitlines()[:13]]
    bundle = load_bundle(warm_model)
    assert not bundle.needs_warm_state()
    embedder = ElmoEmbedder(bundle)
    vectors = embedder.embed_tokens(lines)
    for found, expected in zip(embedder.embed_tokens(lines[::-1])[::-1], vectors, strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
    for line, expected in zip(lines, vectors, strict=True):
        np.testing.assert_allclose(embedder.embed_tokens([line])[0], expected, rtol=0, atol=1e-6)
    # The oracle starts from the file's state.
    reference = oracle.load_bundle(warm_model)
    with h5py.File(warm_model / "warm_state.hdf5") as file:
        output, cell = (file[name][()].astype(float) for name in ("output", "cell"))
    warm: BilmState = [[(c, h) for c, h in zip(cell[:, d], output[:, d], strict=True)] for d in range(2)]
    for line, vector in zip(lines, vectors, strict=True):
        expected, _ = run_bilm(reference.bilm, oracle.token_vectors(reference, line), warm)
        np.testing.assert_allclose(vector, expected[:, 1:-1], rtol=0, atol=1e-5)
    from_zeros = ElmoEmbedder.load(sample_run.model).embed_tokens(lines)
    assert min(np.abs(a - b).max() for a, b in zip(vectors, from_zeros, strict=True)) > 1e-3


def test_a_bundle_whose_warm_state_is_damaged_or_gone_is_refused(warm_model: Path) -> None:
    path = warm_model / "warm_state.hdf5"
    content = path.read_bytes()
    path.write_bytes(content + b"\0")
    found = message_of(BundleError, lambda: load_bundle(warm_model))
    assert found.startswith(f"{path} is not the file that bundle.json was written with: found ")
    path.unlink()
    assert message_of(BundleError, lambda: load_bundle(warm_model)).startswith(f"{path} is missing.")
