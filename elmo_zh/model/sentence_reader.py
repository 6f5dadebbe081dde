"""A biLM that only reads whole sentences, on a processor: weights made ready once, no step spent on padding.

Sentences of a batch stand longest first, and rows are packed by time step: first the first token of every sentence,
then the second one of every sentence that has two, and so on. The two directions never meet, so each runs through all
its layers on its own half of the cores.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from elmo_zh.model.bilm import BiLM, State
from elmo_zh.model.kernels.reading_loop import read_layer
from elmo_zh.model.kernels.reading_product import ReadingProduct, build_product
from elmo_zh.model.kernels.scripted import scripted
from elmo_zh.model.kernels.side_by_side import side_by_side
from elmo_zh.model.projected_lstm import LSTMState, ProjectedLSTM


@dataclass(frozen=True, eq=False)
class PackedSentences:
    """Sentences of a batch, packed by time step; N rows, as many as they have tokens, marks included.

    Attributes:
        counts: Sentences that have a token at each step.
        words: Which word each row reads, of the forward LM and of the backward LM, int64, shape (2, N).
        places: The row of each token but the marks, sentence by sentence, likewise, int64, shape (2, M).
    """

    counts: list[int]
    words: NDArray[np.int64]
    places: NDArray[np.int64]

    @classmethod
    def pack(cls, sentences: Sequence[NDArray[np.int64]]) -> "PackedSentences":
        """Pack sentences of word numbers, each with its marks at the ends, longest first."""
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


@dataclass(frozen=True, eq=False)
class _ReadyLayer:
    gates: ReadingProduct
    projection: ReadingProduct | None


class SentenceReader:
    """A biLM's LSTM layers, made ready for reading; later changes of the biLM do not reach it."""

    def __init__(self, bilm: BiLM, precision: str) -> None:
        """Make the weights ready.

        Args:
            bilm: The model, on the CPU.
            precision: Of matrix products: float32, bfloat16 or int8.
        """
        self._shape = bilm.shape
        self._read_dtype = torch.bfloat16 if precision == "bfloat16" else torch.float32
        self._layers = [
            [_make_ready(layer, direction, precision) for direction in range(2)] for layer in bilm.lstm_layers()
        ]

    @torch.no_grad()
    def read(self, word_vectors: Tensor, sentences: PackedSentences, state: State) -> tuple[Tensor, State]:
        """Return every layer's output.

        Args:
            word_vectors: What the token layer gives for the batch's words, float32, shape (W, P).
            sentences: Of numbers of those words.
            state: What they start from, one entry a layer, each for all of the B sentences.

        Returns:
            Shape (L + 1, M, 2P), float32, for all tokens but the marks, sentence by sentence, and the state after each
            sentence's last step. The token layer comes first, written twice; then the LSTM layers upward, forward LM
            first in the last axis.
        """
        P, places = self._shape.projection_dim, torch.from_numpy(sentences.places)
        layers = torch.empty(len(self._layers) + 1, places.shape[1], 2 * P)
        after = [LSTMState(carried.output.clone(), carried.cell.clone()) for carried in state]

        def run(direction: int) -> None:
            words = torch.from_numpy(sentences.words[direction])
            hidden = word_vectors.index_select(0, words)
            half = layers[:, :, direction * P : (direction + 1) * P]
            half[0] = hidden.index_select(0, places[direction])
            for index, carried in enumerate(after):
                output, cell = carried.output[direction], carried.cell[direction]
                hidden = self._run_layer(index, direction, hidden, sentences.counts, output, cell)
                half[index + 1] = hidden.index_select(0, places[direction])

        side_by_side(run)
        return layers, after

    def _run_layer(
        self, index: int, direction: int, hidden: Tensor, counts: list[int], output: Tensor, cell: Tensor
    ) -> Tensor:
        ready, shape = self._layers[index][direction], self._shape
        outputs = torch.empty(len(hidden), output.shape[1])
        scripted(read_layer)(
            hidden, counts, ready.gates, ready.projection, self._read_dtype, output, cell, shape.cell_clip,
            shape.projection_clip, outputs,
        )  # fmt: skip
        return outputs.add_(hidden) if index > 0 and shape.skip_connections else outputs


def _make_ready(layer: ProjectedLSTM, direction: int, precision: str) -> _ReadyLayer:
    weight = torch.cat([layer.input_weight[direction], layer.recurrent_weight[direction]])
    bias = layer.bias[direction].detach().clone()
    bias[2 * layer.cell_dim : 3 * layer.cell_dim] += 1.0
    projection = None if layer.projection is None else build_product(layer.projection[direction], None, precision)
    return _ReadyLayer(build_product(weight, bias, precision), projection)
