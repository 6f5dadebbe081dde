"""Inference with a biLM over whole sentences on a CPU: weights are prepared once, and no step computes padding.

Sentences of a batch come longest first, and rows are packed by time step: first every sentence's first token, then the
second tokens, and so on. The two directions never interact, so each runs through all its layers on its own half of the
cores.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from elmo_zh.model.bilm import BiLM, State, skip_connection
from elmo_zh.model.kernels.cells import Clips, InferenceWeights, LSTMState, infer_layer
from elmo_zh.model.kernels.execution import side_by_side
from elmo_zh.model.kernels.products import build_inference_product
from elmo_zh.model.kernels.torch_internals import scripted
from elmo_zh.model.precision import Precision
from elmo_zh.model.projected_lstm import ProjectedLSTM
from elmo_zh.run.reporter import report_steps

# Longer sentences are read in blocks of this many steps. Between blocks, signals take effect and progress is shown.
BLOCK_STEPS = 2048


@dataclass(frozen=True, eq=False)
class PackedSentences:
    """A batch of sentences packed by time step: N rows, one per token, boundary markers included."""

    counts: list[int]  # Number of sentences that have a token at each step
    # The word that each row reads, for the forward LM and for the backward LM, int64, shape (2, N).
    words: NDArray[np.int64]
    # The row of each token except the markers, sentence by sentence, for both LMs, int64, shape (2, M).
    places: NDArray[np.int64]

    @classmethod
    def pack(cls, sentences: Sequence[NDArray[np.int64]]) -> "PackedSentences":
        """Pack sentences of word numbers, which must be sorted, longest first, and have markers at both ends."""
        lengths = np.array([len(sentence) for sentence in sentences])
        assert (np.diff(lengths) <= 0).all(), "the longest sentence comes first"
        counts = np.searchsorted(-lengths, -np.arange(lengths[0]), side="left")
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
        words = np.empty((2, int(lengths.sum())), np.int64)
        places = []
        for number, sentence in enumerate(sentences):
            rows = starts[: len(sentence)] + number
            words[0, rows], words[1, rows] = sentence, sentence[::-1]
            places.append(np.stack([rows[1:-1], rows[::-1][1:-1]]))
        return cls([int(count) for count in counts], words, np.concatenate(places, axis=1))


class SentenceReader:
    """A biLM's LSTM layers prepared for inference; later changes to the biLM have no effect on it."""

    def __init__(self, bilm: BiLM, precision: Precision) -> None:
        self._shape = bilm.shape
        self._layers = [
            [_prepare(layer, direction, precision) for direction in range(2)] for layer in bilm.lstm_layers()
        ]

    @torch.no_grad()
    def read(self, word_vectors: Tensor, sentences: PackedSentences, state: State) -> tuple[Tensor, State]:
        """Return every layer's output, float32, shape (L + 1, M, 2P), and the state after each sentence's last step.

        The layers are as in `BiLM.layer_activations`. Sentences refer to rows of `word_vectors`, float32, shape (W, P).
        """
        P, places = self._shape.projection_dim, torch.from_numpy(sentences.places)
        layers = torch.empty(len(self._layers) + 1, places.shape[1], 2 * P)
        after = [LSTMState(carried.output.clone(), carried.cell.clone()) for carried in state]
        blocks = list(_step_blocks(sentences.counts))

        def run(counts: list[int], first: int, last: int, direction: int) -> None:
            half, rows = layers[:, :, direction * P : (direction + 1) * P], places[direction]
            # The tokens (not the boundary markers) that have their rows in this block.
            tokens = slice(None) if len(blocks) == 1 else ((rows >= first) & (rows < last)).nonzero()[:, 0]
            rows = rows[tokens] - first
            hidden = word_vectors.index_select(0, torch.from_numpy(sentences.words[direction, first:last]))
            half[0, tokens] = hidden.index_select(0, rows)
            for index, carried in enumerate(after):
                own = LSTMState(carried.output[direction], carried.cell[direction])
                hidden = self._run_layer(index, direction, hidden, counts, own)
                half[index + 1, tokens] = hidden.index_select(0, rows)

        for block in blocks:
            side_by_side(partial(run, *block))
            if len(blocks) > 1:
                report_steps(block[-1])
        return layers, after

    def _run_layer(self, index: int, direction: int, hidden: Tensor, counts: list[int], state: LSTMState) -> Tensor:
        weights, clips = self._layers[index][direction], Clips(self._shape.cell_clip, self._shape.projection_clip)
        outputs = torch.empty(len(hidden), self._shape.projection_dim)
        scripted(infer_layer)(hidden, counts, weights, state, clips, outputs)
        return skip_connection(self._shape, index, hidden, outputs)


def _step_blocks(counts: list[int]) -> Iterator[tuple[list[int], int, int]]:
    """Yield the counts of each block of steps, its first row, and the row after its last."""
    first = 0
    for start in range(0, len(counts), BLOCK_STEPS):
        block = counts[start : start + BLOCK_STEPS]
        yield block, first, first + sum(block)
        first += sum(block)


def _prepare(layer: ProjectedLSTM, direction: int, precision: Precision) -> InferenceWeights:
    weight = torch.cat([layer.input_weight[direction], layer.recurrent_weight[direction]])
    bias = layer.bias[direction].detach().clone()
    bias[2 * layer.cell_dim : 3 * layer.cell_dim] += 1.0
    gates, projection = build_inference_product(weight, bias, precision), None
    if layer.projection is not None:
        projection = build_inference_product(layer.projection[direction], None, precision)
    return InferenceWeights(gates, projection)
