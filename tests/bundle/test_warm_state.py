"""The warm state against the NumPy oracle, and files of one that do not fit."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawn_bundles import SHAPES, write_model
from numpy.typing import NDArray
from parity import numpy_oracle as oracle
from parity.numpy_bilm import Array, BilmState, run_bilm

from elmo_zh.bundle import weights
from elmo_zh.bundle.read import load_bundle
from elmo_zh.bundle.weights import warm_up
from elmo_zh.reader.bilm import BiLMShape

SENTENCES = (
    ["今天", "吃"],
    ["我们"],
    [],
    ["梨", "今天", "我们", "苹果", "吃"],
    ["苹果"],
    ["吃", "桃", "吃"],
    ["今天"] * 11,
)
L = 3


class Model:
    """A drawn biLM, and the same as the oracle reads it from its files."""

    def __init__(self, shape: BiLMShape, folder: Path) -> None:
        words = ("我们", "今天", "吃", "苹果")
        path = write_model(folder / "model", replace(shape, num_layers=L), words=words, with_softmax=True)
        bundle = load_bundle(path)
        self.weights, self.lexicon, self.reference = bundle.weights, bundle.build_lexicon(), oracle.load_bundle(path)

    def read(self, words: list[str], state: BilmState | None) -> BilmState:
        """The oracle's state after the last word: the forward LM has not read </S>, nor the backward LM <S>."""
        vectors = oracle.token_vectors(self.reference, words)
        _, (forward, _) = run_bilm(self.reference.bilm, vectors[:-1], state)
        _, (_, backward) = run_bilm(self.reference.bilm, vectors[1:], state)
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

    def warm_up(self, sentences: Iterable[NDArray[Any]]) -> int:
        self.warm_state, count = warm_up(self.weights, self.lexicon, sentences)
        return count

    def assert_warm(self, output: Array, cell: Array) -> None:
        for layer, outputs, cells in zip(self.warm_state, output, cell, strict=True):
            np.testing.assert_allclose(layer.output[:, 0], outputs, rtol=0, atol=1e-6)
            np.testing.assert_allclose(layer.cell[:, 0], cells, rtol=0, atol=1e-6)


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
    monkeypatch.setattr(weights, "_STREAMS", num_streams)
    assert model.warm_up(iter(model.ids())) == count
    text = iter(SENTENCES)
    streams = [[next(text) for _ in range(length)] for length in lengths]
    model.assert_warm(*model.mean_state(streams, uncounted))
