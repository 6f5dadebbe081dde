"""Inference in bfloat16 or int8 on a CPU: weights are prepared once, and no step computes padding. float32: `reader`.

Sentences of a batch come longest first, and rows are packed by time step: first every sentence's first token, then the
second tokens, and so on. The two directions never interact, so each runs through all its layers on its own half of the
cores.
"""

import torch
from torch import Tensor

from elmo_zh.model.bilm import BiLM, State, skip_connection
from elmo_zh.model.kernels.cells import Clips, InferenceWeights, LSTMState, infer_layer
from elmo_zh.model.kernels.execution import side_by_side
from elmo_zh.model.kernels.products import build_inference_product
from elmo_zh.model.kernels.torch_internals import scripted
from elmo_zh.model.precision import Precision
from elmo_zh.model.projected_lstm import ProjectedLSTM
from elmo_zh.reader.batches import BothWays


class SentenceReader:
    """A biLM's LSTM layers prepared for inference; later changes to the biLM have no effect on it."""

    def __init__(self, bilm: BiLM, precision: Precision) -> None:
        self._shape = bilm.shape
        self._layers = [
            [_prepare(layer, direction, precision) for direction in range(2)] for layer in bilm.lstm_layers()
        ]

    @torch.no_grad()
    def read(self, word_vectors: Tensor, sentences: BothWays, state: State) -> tuple[Tensor, State]:
        """Return every layer's output, float32, shape (L + 1, M, 2P), and the state after each sentence's last step.

        The layers are as in `BiLM.layer_activations`. Sentences refer to rows of `word_vectors`, float32, shape (W, P).
        """
        P, places = self._shape.projection_dim, torch.from_numpy(sentences.places)
        layers = torch.empty(len(self._layers) + 1, places.shape[1], 2 * P)
        after = [LSTMState(carried.output.clone(), carried.cell.clone()) for carried in state]

        def run(direction: int) -> None:
            half, rows = layers[:, :, direction * P : (direction + 1) * P], places[direction]
            hidden = word_vectors.index_select(0, torch.from_numpy(sentences.words[direction]))
            half[0] = hidden.index_select(0, rows)
            for index, carried in enumerate(after):
                state_here = LSTMState(carried.output[direction], carried.cell[direction])
                hidden = self._run_layer(index, direction, hidden, sentences.counts, state_here)
                half[index + 1] = hidden.index_select(0, rows)

        side_by_side(run)
        return layers, after

    def _run_layer(self, index: int, direction: int, hidden: Tensor, counts: list[int], state: LSTMState) -> Tensor:
        weights, clips = self._layers[index][direction], Clips(self._shape.cell_clip, self._shape.projection_clip)
        outputs = torch.empty(len(hidden), self._shape.projection_dim)
        scripted(infer_layer)(hidden, counts, weights, state, clips, outputs)
        return skip_connection(self._shape, index, hidden, outputs)


def _prepare(layer: ProjectedLSTM, direction: int, precision: Precision) -> InferenceWeights:
    weight = torch.cat([layer.input_weight[direction], layer.recurrent_weight[direction]])
    bias = layer.bias[direction].detach().clone()
    bias[2 * layer.cell_dim : 3 * layer.cell_dim] += 1.0
    gates, projection = build_inference_product(weight, bias, precision), None
    if layer.projection is not None:
        projection = build_inference_product(layer.projection[direction], None, precision)
    return InferenceWeights(gates, projection)
