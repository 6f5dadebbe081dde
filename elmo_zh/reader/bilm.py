"""The bidirectional language model (biLM) of Peters et al. (2018), "Deep contextualized word representations".

Shape letters: B sentences, T steps, N rows of a packed batch, M tokens without the marks, W words, P projection,
D cell, L layers, V vocabulary. A first axis of 2 is the direction: 0 the forward LM, which reads <S> w1 .. wn </S>,
and 1 the backward LM, which reads </S> wn .. w1 <S>. The two never interact, so they run in two threads if
`num_threads` allows that.
"""

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from elmo_zh.reader.lstm import (
    Floats,
    Ids,
    LSTMState,
    LSTMWeights,
    PackedSentences,
    pack_both_ways,
    prepare,
    run_layer,
)

Result = TypeVar("Result")

# The limit of BLAS is one for the process. If two threads set and restored it crosswise, it would stay at 1 for good.
_turn = threading.Lock()


def num_threads() -> int:
    """Return how many threads to use: OMP_NUM_THREADS if it is a positive number, else one per available core."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    return int(wanted) if wanted.isdecimal() and int(wanted) else cores


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def threads(count: int) -> Iterator[Callable[[list[Callable[[], Result]]], list[Result]]]:
    """Yield a function that runs tasks in up to `count` threads and returns their results in order.

    Each matrix product runs on one thread, so that results do not depend on `count`. Callers in several threads take
    turns.
    """
    with _turn, _controller().limit(limits=1, user_api="blas"):
        if count == 1:
            yield lambda tasks: [task() for task in tasks]
        else:
            with ThreadPoolExecutor(count) as pool:
                yield lambda tasks: list(pool.map(lambda task: task(), tasks))


@dataclass(frozen=True, kw_only=True)
class CharacterShape:
    """The architecture of a character CNN."""

    num_characters: int  # Number of character ids; the last one is padding
    num_slots: int  # Number of character ids of each word (C), including marks and padding
    embedding_dim: int  # Width of a character's embedding (c)
    filters: tuple[tuple[int, int], ...]  # (width in characters, number of filters) of each convolution
    num_highways: int  # Number of highway layers
    activation: str  # relu or tanh, applied to the largest response of each filter
    # Width of a word's own embedding, which precedes the filters' output (ELMoForManyLangs); 0 in the published
    # architecture.
    word_dim: int = 0
    is_published: bool = True  # Whether the characters are UTF-8 bytes under the published numbers

    @property
    def num_filters(self) -> int:
        """Total number of filters of all widths."""
        return sum(count for _, count in self.filters)

    def has_projection(self, output_dim: int) -> bool:
        """Return whether a projection follows: with word embeddings, or if `num_filters` differs from `output_dim`."""
        return self.word_dim > 0 or output_dim != self.num_filters


@dataclass(frozen=True, kw_only=True)
class BiLMShape:
    """The architecture of a biLM. A clip of 0 disables clipping; in token mode, `characters` is None."""

    num_tokens: int
    cell_dim: int
    projection_dim: int
    num_layers: int
    cell_clip: float
    projection_clip: float
    skip_connections: bool
    characters: CharacterShape | None = None

    @property
    def mode(self) -> str:
        """The kind of token layer: token or character."""
        return "character" if self.characters else "token"


class LayerState(NamedTuple):
    """The state that a layer carries from token to token, in both directions."""

    output: Floats  # Shape (2, B, P)
    cell: Floats  # Shape (2, B, D)


State = list[LayerState]
# Reads batches like `BiLMReader.read`.
BatchReader = Callable[[Floats, Sequence[Ids], State], tuple[Floats, State]]
# Called with a layer, a direction and its outputs, shape (N, P).
Keep = Callable[[int, int, Floats], None]


class BiLMReader:
    """A trained biLM that reads whole sentences.

    Attributes:
        shape: The architecture.
    """

    def __init__(self, shape: BiLMShape, weights: Mapping[str, Floats], warm_state: State | None = None) -> None:
        """Prepare the weights for reading.

        Args:
            shape: The architecture.
            weights: By name, as in `ModelWeights.arrays`; the token layer and the softmax are not used.
            warm_state: The state that `start_state` repeats for each sentence (B = 1); zeros if None.
        """
        self.shape, self._warm_state = shape, warm_state
        self._layers: list[tuple[LSTMWeights, LSTMWeights]] = []
        for layer in range(shape.num_layers):
            name = f"bilm.layers.{layer}"
            inputs, recurrent, bias = (
                weights[f"{name}.{part}"] for part in ("input_weight", "recurrent_weight", "bias")
            )
            projection = weights.get(f"{name}.projection")
            forward, backward = (
                prepare(inputs[way], recurrent[way], bias[way], None if projection is None else projection[way])
                for way in range(2)
            )
            self._layers.append((forward, backward))

    def zero_state(self, num_sentences: int) -> State:
        """Return an all-zero state."""
        P, D = self.shape.projection_dim, self.shape.cell_dim
        return [
            LayerState(np.zeros((2, num_sentences, P), np.float32), np.zeros((2, num_sentences, D), np.float32))
            for _ in self._layers
        ]

    def start_state(self, num_sentences: int) -> State:
        """Return the state to start sentences from: the warm state if there is one, otherwise zeros."""
        if self._warm_state is None:
            return self.zero_state(num_sentences)
        return [LayerState(*(np.repeat(part, num_sentences, axis=1) for part in layer)) for layer in self._warm_state]

    def read(self, word_vectors: Floats, sentences: Sequence[Ids], state: State) -> tuple[Floats, State]:
        """Return every layer's output, shape (L + 1, M, 2P), and the state after each sentence's last mark.

        The token layer comes first, written twice so that all layers have one width; then the LSTM layers from the
        bottom up, forward LM first on the last axis. The M rows are the sentences' tokens without their marks,
        one sentence after the other.

        Args:
            word_vectors: One row per word, shape (W, P).
            sentences: Rows of `word_vectors`, marks included, longest sentence first.
            state: The state that each sentence starts from.
        """
        counts, words, places = pack_both_ways(sentences)
        layers = np.empty((len(self._layers) + 1, places.shape[1], 2 * self.shape.projection_dim), np.float32)

        def keep(layer: int, way: int, outputs: Floats) -> None:
            P = self.shape.projection_dim
            np.take(outputs, places[way], axis=0, out=layers[layer, :, way * P : (way + 1) * P], mode="clip")

        return layers, self._run(word_vectors, words, counts, state, keep)[1]

    def top_outputs(self, word_vectors: Floats, sentences: Sequence[Ids], state: State) -> tuple[Floats, State]:
        """Return the outputs from which the LMs predict words, shape (2, N, P), and the state after the last word.

        `sentences` are as for `read`. Each LM reads all but its last mark, which it predicts; the N rows of both are
        packed like `PackedSentences.of_lengths([len(sentence) - 1 for sentence in sentences])`, each in its own
        reading order.
        """
        packed = PackedSentences.of_lengths([len(sentence) - 1 for sentence in sentences])
        words = np.stack(
            [packed.pack([sentence[:-1] for sentence in sentences]), packed.pack([s[:0:-1] for s in sentences])]
        )
        return self._run(word_vectors, words, packed.counts, state, lambda *_: None)

    def _run(
        self, word_vectors: Floats, words: Ids, counts: Sequence[int], state: State, keep: Keep
    ) -> tuple[Floats, State]:
        """Run all layers over packed rows of `word_vectors`, (2, N); return the top outputs (2, N, P) and the state."""
        distinct, numbers = np.unique(words, return_inverse=True)
        vectors, numbers = word_vectors[distinct], numbers.reshape(words.shape)

        def run(way: int) -> tuple[Floats, list[LSTMState]]:
            hidden, rows, after = vectors, numbers[way], []
            keep(0, way, vectors[rows])
            for index, (weights, carried) in enumerate(zip(self._layers, state, strict=True)):
                before = LSTMState(carried.output[way], carried.cell[way])
                clips = self.shape.cell_clip, self.shape.projection_clip
                read_rows = None if index else rows  # The first layer reads words, the others a row of their own
                outputs, last = run_layer(hidden, read_rows, counts, weights[way], before, *clips)
                # All layers but the first have a skip connection.
                hidden = outputs + hidden if index and self.shape.skip_connections else outputs
                keep(index + 1, way, hidden)
                after.append(last)
            return hidden, after

        with threads(min(2, num_threads())) as run_all:
            (forward, after_forward), (backward, after_backward) = run_all([lambda: run(0), lambda: run(1)])
        states = [
            LayerState(np.stack([one.output, other.output]), np.stack([one.cell, other.cell]))
            for one, other in zip(after_forward, after_backward, strict=True)
        ]
        return np.stack([forward, backward]), states
