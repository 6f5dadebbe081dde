"""The warm state, from which a model trained with carried state starts every sentence, so that order does not matter.

Such a model has learned to start a sentence from the final state of the previous one, never from zeros. The mean
state at the ends of many sentences is such a start, and it is the same for every sentence.

In warm_state.hdf5 the datasets are `output` (L, 2, P) and `cell` (L, 2, D), float32; the second axis is the direction,
forward LM first.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from elmo_zh.hdf5.create import create_hdf5
from elmo_zh.hdf5.foreign_file import ForeignFile
from elmo_zh.model.batches import build_inputs, mark_sentence, pad_sentences
from elmo_zh.model.bilm import BiLM, State, read_both_ways
from elmo_zh.model.token_encoder import TokenInputs
from elmo_zh.vocabulary.lexicon import Lexicon

# Streams computed together; each carries its state from sentence to sentence.
_STREAMS = 32
_MOST_TOKENS = 100_000
# The first sentences of a stream start from zeros, which the warm state should not depend on.
_UNCOUNTED_SENTENCES = 2


@torch.no_grad()
def warm_up(bilm: BiLM, lexicon: Lexicon, sentences: Iterable[NDArray[Any]]) -> int:
    """Set a biLM's warm state to the mean state after each sentence's last word; return the number of sentences."""
    chosen = _take(sentences)
    if not chosen:
        raise ValueError("a warm state needs sentences")
    # Consecutive sentences of the text stay consecutive in a stream.
    length = -(-len(chosen) // _STREAMS)
    streams = [chosen[start : start + length] for start in range(0, len(chosen), length)]
    uncounted = min(_UNCOUNTED_SENTENCES, length - 1)
    state = bilm.zero_state(len(streams))
    output_sum, cell_sum = (torch.zeros_like(part) for part in _stack(bilm.zero_state(1)))
    count = 0
    for turn in range(length):
        # All streams have the same length except the last, which is shorter.
        reading = [stream[turn] for stream in streams if turn < len(stream)]
        state = [layer.first(len(reading)) for layer in state]
        ids, mask = pad_sentences([mark_sentence(sentence) for sentence in reading])
        inputs = build_inputs(lexicon, read_both_ways(TokenInputs(ids), mask).ids[:, :-1])
        _, state = bilm(inputs, state, lengths=mask.sum(dim=1) - 1)
        if turn >= uncounted:
            output, cell = _stack(state)
            output_sum += output.sum(dim=2, keepdim=True)
            cell_sum += cell.sum(dim=2, keepdim=True)
            count += len(reading)
    bilm.set_warm_state(output_sum[:, :, 0] / count, cell_sum[:, :, 0] / count)
    return count


def _take(sentences: Iterable[NDArray[Any]]) -> list[NDArray[Any]]:
    chosen, num_tokens = [], 0
    for sentence in sentences:
        chosen.append(sentence)
        num_tokens += len(sentence)
        if num_tokens >= _MOST_TOKENS:
            break
    return chosen


def _stack(state: State) -> tuple[Tensor, Tensor]:
    """Return the outputs, shape (L, 2, B, P), and the cell states, shape (L, 2, B, D), of all layers."""
    return torch.stack([layer.output for layer in state]), torch.stack([layer.cell for layer in state])


def save_warm_state(path: Path, bilm: BiLM) -> None:
    """Write the warm state of a biLM, which must have one, to a file."""
    assert bilm.warm_output is not None
    assert bilm.warm_cell is not None
    with create_hdf5(path) as file:
        file.create_dataset("output", data=bilm.warm_output[:, :, 0].cpu().numpy())
        file.create_dataset("cell", data=bilm.warm_cell[:, :, 0].cpu().numpy())


def load_warm_state(path: Path, bilm: BiLM) -> None:
    """Load the warm state of a biLM from a file."""
    L, P, D = bilm.shape.num_layers, bilm.shape.projection_dim, bilm.shape.cell_dim
    shapes = {"output": (L, 2, P), "cell": (L, 2, D)}
    arrays = dict(ForeignFile.open(path).read_arrays(shapes))
    bilm.set_warm_state(torch.from_numpy(arrays["output"]), torch.from_numpy(arrays["cell"]))
