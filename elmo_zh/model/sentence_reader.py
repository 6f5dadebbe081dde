"""Read sentences with PyTorch: in bfloat16 or int8 on a CPU, or in float32 or bfloat16 on a GPU.

On a CPU, weights are prepared once, and no step computes padding. Sentences of a batch come longest first, and rows are
packed by time step: first every sentence's first token, then the second tokens, and so on. The two directions never
interact, so each runs through all its layers on its own half of the cores. `reader` computes float32 on a CPU.

int8 is dynamic quantisation: each matrix column has a scale, determined once, and each input row its own, so that
neighbouring rows have no effect. Sums are integers and exact; results are float32.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from elmo_zh.model.bilm import BiLM, skip_connection
from elmo_zh.model.bilm import State as TorchState
from elmo_zh.model.kernels.execution import scripted, side_by_side, with_half_of_the_threads
from elmo_zh.model.kernels.products import (
    LARGEST_INT8,
    can_pack,
    int8_product,
    int8_product_works,
    multiply,
    pack,
    packed_int8,
)
from elmo_zh.model.kernels.recurrence import Clips, LSTMState, step_forward
from elmo_zh.model.precision import PRECISIONS, Precision
from elmo_zh.model.projected_lstm import ProjectedLSTM
from elmo_zh.model.token_layer import pad_sentences
from elmo_zh.reader.bilm import BatchReader, LayerState, State
from elmo_zh.reader.lstm import BothWays, Floats, Ids, pack_both_ways


class InferenceProduct(NamedTuple):
    """A matrix and its bias, prepared for inference."""

    matrix: Tensor  # As `multiply`, or the quantised product, takes it; shape (I, O)
    bias: Tensor | None  # One number per column, float32, shape (O,), or None
    scales: Tensor | None  # One number per column, float32, shape (O,); int8 only
    is_packed: bool  # Whether the matrix is in the library's own layout
    rows_dtype: torch.dtype  # dtype of the rows that it is multiplied with


def build_inference_product(matrix: Tensor, bias: Tensor | None, precision: Precision) -> InferenceProduct:
    """Prepare a matrix, shape (I, O), and its bias for `inference_product`, quantising it for int8."""
    matrix = matrix.detach()
    bias = None if bias is None else bias.detach()
    dtype = precision.dtype
    if not precision.is_quantised:
        is_packed = can_pack(matrix[:1], dtype)
        prepared = pack(matrix.to(dtype, copy=not is_packed), is_packed)
        return InferenceProduct(prepared, bias, None, is_packed, dtype)
    quantised, scales = quantise_columns(matrix)
    if int8_product_works():
        return InferenceProduct(packed_int8(quantised), bias, scales, True, dtype)
    return InferenceProduct(quantised.float(), bias, scales, False, dtype)


def quantise_columns(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Quantise a matrix to integers from -127 to 127, int8, shape (I, O), and a scale per column, shape (O,)."""
    scales = matrix.abs().amax(dim=0).clamp(min=torch.finfo(matrix.dtype).tiny) / LARGEST_INT8
    return (matrix / scales).round().to(torch.int8), scales


def inference_product(rows: Tensor, product: InferenceProduct) -> Tensor:
    """Return rows x matrix + bias, float32, shape (n, O); TorchScript-compatible."""
    scales = product.scales
    if scales is None:
        return multiply(rows, product.matrix, product.bias, product.is_packed).to(torch.float32)
    row_scales = rows.abs().amax(dim=1, keepdim=True).clamp_(min=1e-30).div_(127.0)
    shifted = torch.div(rows, row_scales).round_().add_(128.0)
    if product.is_packed:
        sums = int8_product(shifted.to(torch.uint8), product.matrix, scales)
    else:
        sums = torch.matmul(shifted.sub_(128.0), product.matrix).mul_(scales)
    bias, scaled = product.bias, torch.mul(sums, row_scales)
    return scaled if bias is None else scaled.add_(bias)


class InferenceWeights(NamedTuple):
    """The weights of one direction of a layer, prepared for inference."""

    # For input and previous output together, (I + P, 4D), with a bias that holds the forget gate's 1.
    gates: InferenceProduct
    projection: InferenceProduct | None  # (D, P), or None


def infer_layer(
    inputs: Tensor, counts: list[int], weights: InferenceWeights, state: LSTMState, clips: Clips, outputs: Tensor
) -> None:
    """Run one direction of a layer over whole sentences; each step skips sentences that have already ended.

    `inputs`, float32, shape (N, I), has the sentences' first tokens, then their second ones and so on, longest sentence
    first; `counts` says how many sentences have a token at each step. `outputs`, shape (N, P), is filled; the state,
    shapes (B, P) and (B, D), is replaced by each sentence's final state.
    """
    output, cell = state.output, state.cell
    width, P = inputs.size(1), output.size(1)
    read = torch.empty([output.size(0), width + P], dtype=weights.gates.rows_dtype)
    tanh_cell = torch.empty_like(cell)
    projection = weights.projection
    first = 0
    for num_sentences in counts:
        read_here, cell_here = read.narrow(0, 0, num_sentences), cell.narrow(0, 0, num_sentences)
        output_here = output.narrow(0, 0, num_sentences)
        read_here.narrow(1, 0, width).copy_(inputs.narrow(0, first, num_sentences))
        read_here.narrow(1, width, P).copy_(output_here)
        z = inference_product(read_here, weights.gates)
        given = step_forward(z, cell_here, clips.cell, z, cell_here, tanh_cell.narrow(0, 0, num_sentences))
        if projection is not None:
            output_here.copy_(inference_product(given.to(projection.rows_dtype), projection))
            if clips.output > 0:
                output_here.clamp_(-clips.output, clips.output)
        else:
            output_here.copy_(given)
        outputs.narrow(0, first, num_sentences).copy_(output_here)
        first += num_sentences


def _prepare(layer: ProjectedLSTM, direction: int, precision: Precision) -> InferenceWeights:
    weight = torch.cat([layer.input_weight[direction], layer.recurrent_weight[direction]])
    bias = layer.bias[direction].detach().clone()
    bias[2 * layer.cell_dim : 3 * layer.cell_dim] += 1.0
    gates, projection = build_inference_product(weight, bias, precision), None
    if layer.projection is not None:
        projection = build_inference_product(layer.projection[direction], None, precision)
    return InferenceWeights(gates, projection)


class SentenceReader:
    """A biLM's LSTM layers prepared for inference on a CPU; later changes to the biLM have no effect on it."""

    def __init__(self, bilm: BiLM, precision: Precision) -> None:
        self._shape = bilm.shape
        self._layers = [
            [_prepare(layer, direction, precision) for direction in range(2)] for layer in bilm.lstm_layers()
        ]

    @torch.no_grad()
    def read(self, word_vectors: Tensor, sentences: BothWays, state: TorchState) -> tuple[Tensor, TorchState]:
        """Return every layer's output, float32, shape (L + 1, M, 2P), and the state after each sentence's last step.

        The layers are as in `BiLM.layer_activations`, for the M tokens without <S> and </S>. Sentences refer to rows of
        `word_vectors`, float32, shape (W, P).
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


def build_torch_reader(bilm: BiLM, precision: str, device: str) -> BatchReader:
    """Return a function that runs the LSTM layers on a batch of sentences, on this device and in this precision."""
    if device != "cpu":
        return build_gpu_reader(bilm, PRECISIONS[precision], torch.device(device))
    reader = SentenceReader(bilm, PRECISIONS[precision])

    @with_half_of_the_threads()
    def read(word_vectors: Floats, sentences: Sequence[Ids], state: State) -> tuple[Floats, State]:
        before = _to_torch(state, torch.device("cpu"))
        layers, after = reader.read(torch.from_numpy(word_vectors), pack_both_ways(sentences), before)
        return layers.numpy(), _to_numpy(after)

    return read


def build_gpu_reader(bilm: BiLM, precision: Precision, device: torch.device) -> BatchReader:
    """Return a function that pads a batch and runs the LSTM layers on a GPU, to which the biLM is moved."""
    bilm.to(device)

    @torch.no_grad()
    def read(word_vectors: Floats, sentences: Sequence[Ids], state: State) -> tuple[Floats, State]:
        numbers, mask = (part.pin_memory().to(device, non_blocking=True) for part in pad_sentences(sentences))
        token_vectors = functional.embedding(numbers, torch.from_numpy(word_vectors).to(device))
        layers, after = bilm.read_sentences(token_vectors, mask, _to_torch(state, device), precision)
        words = mask.clone()
        words[:, 0] = False
        words[torch.arange(len(words), device=device), mask.sum(dim=1) - 1] = False
        chosen = layers[:, words]
        there = torch.empty(chosen.shape, dtype=chosen.dtype, pin_memory=chosen.is_cuda)
        return there.copy_(chosen).numpy(), _to_numpy(after)

    return read


def _to_torch(state: State, device: torch.device) -> TorchState:
    return [LSTMState(*(torch.from_numpy(part).to(device) for part in layer)) for layer in state]


def _to_numpy(state: TorchState) -> State:
    return [LayerState(layer.output.cpu().numpy(), layer.cell.cpu().numpy()) for layer in state]
