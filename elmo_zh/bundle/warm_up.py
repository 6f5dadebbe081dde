"""The warm state: what sentences of a model trained with carried state start from, so that order does not matter.

Such a model has learned to begin a sentence from where the one before ended, never from zeros. The mean of the states
at many sentence ends is a start like that, and the same for every sentence.
"""

from collections.abc import Iterable
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from elmo_zh.model.batches import build_inputs, mark_sentence, pad_sentences
from elmo_zh.model.bilm import BiLM, State, read_both_ways
from elmo_zh.model.token_encoder import TokenInputs
from elmo_zh.vocabulary.lexicon import Lexicon

# Streams read side by side; each carries its state from sentence to sentence.
_STREAMS = 32
_MOST_TOKENS = 100_000
# A stream's first sentences start from zeros, which is what they are to be freed from.
_UNCOUNTED_SENTENCES = 2


@torch.no_grad()
def warm_up(bilm: BiLM, lexicon: Lexicon, sentences: Iterable[NDArray[Any]]) -> int:
    """Give a biLM the mean state at the ends of sentences; return how many were averaged.

    The state is taken after the last token that each LM reads in training: the last word, not the mark after it.

    Args:
        bilm: Changed: its `warm_output` and `warm_cell`.
        lexicon: Of the ids.
        sentences: Input ids, int64, shape (n,) each, in the order of the text; at most 100,000 tokens are read.

    Raises:
        ValueError: If there is no sentence.
    """
    chosen = _take(sentences)
    if not chosen:
        raise ValueError("a warm state needs sentences")
    # Neighbours in the text stay neighbours in a stream.
    length = -(-len(chosen) // _STREAMS)
    streams = [chosen[start : start + length] for start in range(0, len(chosen), length)]
    uncounted = min(_UNCOUNTED_SENTENCES, length - 1)
    state = bilm.zero_state(len(streams))
    output_sum, cell_sum = (torch.zeros_like(part) for part in _stack(bilm.zero_state(1)))
    count = 0
    for turn in range(length):
        # All streams but the last few are of equal length, and these come last.
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
    """Return outputs, shape (L, 2, B, P), and cells, shape (L, 2, B, D), of all layers."""
    return torch.stack([layer.output for layer in state]), torch.stack([layer.cell for layer in state])
