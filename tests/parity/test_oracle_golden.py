"""The oracle itself against vectors that the original readers stored: AllenNLP's test model and one without skips.

Each `lm_embeddings_{row}.hdf5` is one stream: its sentences were run one after another with the state carried, and
dataset "i" holds the top layer of sentence i, shape (2, n, P), forward LM first.
"""

import json
import os
from pathlib import Path

import h5py
import numpy as np
import pytest
from parity.numpy_bilm import Array, load_bilm, read_array, run_bilm
from parity.numpy_character_cnn import load_character_cnn, sentence_vectors, token_vector
from parity.numpy_oracle import read_lines

TEST_DATA = os.environ.get("ELMO_ZH_TEST_DATA")
TOLERANCE = 2e-6
SENTENCE_FILES = {"allennlp_skip": "sentences.json", "bilm_no_skip": "lm_embeddings_sentences.json"}

needs_golden = pytest.mark.skipif(not TEST_DATA, reason="set ELMO_ZH_TEST_DATA to the folder that holds golden/")
pytestmark = [pytest.mark.interop, needs_golden]


def golden_dir(model: str) -> Path:
    return Path(TEST_DATA or "") / "golden" / model


def top_layers(model: str, row: int, *, is_carried: bool = True) -> list[Array]:
    """Return the oracle's top layer for each sentence of one stream, shapes (n, 2P)."""
    folder = golden_dir(model)
    options = json.loads((folder / "options.json").read_text(encoding="utf-8"))
    with h5py.File(folder / "lm_weights.hdf5", "r") as weights:
        bilm = load_bilm(weights, options["lstm"])
        cnn = load_character_cnn(weights, options)
    sentences = json.loads((folder / SENTENCE_FILES[model]).read_text(encoding="utf-8"))[row]
    state = None
    tops = []
    for sentence in sentences:
        activations, last = run_bilm(bilm, sentence_vectors(cnn, sentence.split(" ")), state)
        state = last if is_carried else None
        tops.append(activations[-1, 1:-1])
    return tops


def stored_top_layers(model: str, row: int) -> list[Array]:
    """Return the stored top layer for each sentence of one stream, shapes (n, 2P)."""
    with h5py.File(golden_dir(model) / f"lm_embeddings_{row}.hdf5", "r") as stored:
        return [np.concatenate(list(read_array(stored, str(i))), axis=1) for i in range(len(stored))]


@pytest.mark.parametrize("row", [0, 1, 2])
@pytest.mark.parametrize("model", list(SENTENCE_FILES))
def test_top_layer_equals_the_stored_vectors(model: str, row: int) -> None:
    found, expected = top_layers(model, row), stored_top_layers(model, row)
    assert [top.shape for top in found] == [top.shape for top in expected]
    assert max(np.abs(a - b).max() for a, b in zip(found, expected, strict=True)) < TOLERANCE


@pytest.mark.parametrize("model", list(SENTENCE_FILES))
def test_only_the_first_sentence_agrees_from_zero_state(model: str) -> None:
    found, expected = top_layers(model, 0, is_carried=False), stored_top_layers(model, 0)
    differences = [np.abs(a - b).max() for a, b in zip(found, expected, strict=True)]
    assert differences[0] < TOLERANCE
    assert min(differences[1:]) > 100 * TOLERANCE


def test_character_cnn_equals_the_stored_token_vectors() -> None:
    folder = golden_dir("allennlp_skip")
    options = json.loads((folder / "options.json").read_text(encoding="utf-8"))
    with h5py.File(folder / "lm_weights.hdf5", "r") as weights:
        cnn = load_character_cnn(weights, options)
    found = np.stack([token_vector(cnn, token) for token in read_lines(folder / "vocab_test.txt")])
    with h5py.File(folder / "elmo_token_embeddings.hdf5", "r") as stored:
        assert np.abs(found - read_array(stored, "embedding")).max() < TOLERANCE
