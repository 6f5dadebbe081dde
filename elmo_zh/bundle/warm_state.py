"""The warm state, from which a model trained with carried state starts every sentence, so that order does not matter.

Such a model has learned to start a sentence from the final state of the previous one, never from zeros. The mean
state at the ends of many sentences is such a start, and it is the same for every sentence.

In warm_state.hdf5 the datasets are `output` (L, 2, P) and `cell` (L, 2, D), float32; the second axis is the direction,
forward LM first.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.hdf5.create import create_hdf5
from elmo_zh.hdf5.foreign_file import ForeignFile
from elmo_zh.reader.bilm import LayerState, State
from elmo_zh.reader.shape import BiLMShape
from elmo_zh.reader.weights import ModelWeights
from elmo_zh.vocabulary.lexicon import Lexicon

# Streams computed together; each carries its state from sentence to sentence.
_STREAMS = 32
_MOST_TOKENS = 100_000
# The first sentences of a stream start from zeros, which the warm state should not depend on.
_UNCOUNTED_SENTENCES = 2


def warm_up(weights: ModelWeights, lexicon: Lexicon, sentences: Iterable[NDArray[Any]]) -> tuple[State, int]:
    """Return the mean state after the last word of sentences of input ids, and the number of sentences."""
    chosen = _take(sentences)
    if not chosen:
        raise ValueError("a warm state needs sentences")
    # Consecutive sentences of the text stay consecutive in a stream.
    length = -(-len(chosen) // _STREAMS)
    streams = [chosen[start : start + length] for start in range(0, len(chosen), length)]
    uncounted = min(_UNCOUNTED_SENTENCES, length - 1)
    state = weights.reader.zero_state(len(streams))
    sums = [[np.zeros(part.shape[::2]) for part in layer] for layer in state]
    count = 0
    for turn in range(length):
        # All streams have the same length except the last, which is shorter.
        reading = [stream[turn] for stream in streams if turn < len(stream)]
        state = _read_on(
            weights, lexicon, reading, [LayerState(*(part[:, : len(reading)] for part in layer)) for layer in state]
        )
        if turn >= uncounted:
            for layer_sums, layer in zip(sums, state, strict=True):
                for total, part in zip(layer_sums, layer, strict=True):
                    total += part.sum(axis=1, dtype=np.float64)
            count += len(reading)
    means = [[(total / count).astype(np.float32)[:, None] for total in layer_sums] for layer_sums in sums]
    return [LayerState(*layer) for layer in means], count


def _read_on(weights: ModelWeights, lexicon: Lexicon, sentences: Sequence[NDArray[Any]], state: State) -> State:
    """Return each stream's state after the last word of its sentence, given the state before it."""
    order = sorted(range(len(sentences)), key=lambda stream: -len(sentences[stream]))
    vectors, numbered = weights.number_words(lexicon, [sentences[stream] for stream in order])
    before = [LayerState(*(part[:, order] for part in layer)) for layer in state]
    _, after = weights.reader.top_outputs(vectors, numbered, before)
    back = np.argsort(order)
    return [LayerState(*(part[:, back] for part in layer)) for layer in after]


def _take(sentences: Iterable[NDArray[Any]]) -> list[NDArray[Any]]:
    chosen, num_tokens = [], 0
    for sentence in sentences:
        chosen.append(sentence)
        num_tokens += len(sentence)
        if num_tokens >= _MOST_TOKENS:
            break
    return chosen


def save_warm_state(path: Path, state: State) -> None:
    """Write a warm state, for one sentence, to a file."""
    with create_hdf5(path) as file:
        file.create_dataset("output", data=np.stack([layer.output[:, 0] for layer in state]))
        file.create_dataset("cell", data=np.stack([layer.cell[:, 0] for layer in state]))


def load_warm_state(path: Path, shape: BiLMShape) -> State:
    """Load a warm state from a file."""
    L, P, D = shape.num_layers, shape.projection_dim, shape.cell_dim
    shapes = {"output": (L, 2, P), "cell": (L, 2, D)}
    arrays = dict(ForeignFile.open(path).read_arrays(shapes))
    return [
        LayerState(output[:, None].astype(np.float32), cell[:, None].astype(np.float32))
        for output, cell in zip(arrays["output"], arrays["cell"], strict=True)
    ]
