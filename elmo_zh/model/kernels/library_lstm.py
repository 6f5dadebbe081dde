"""One LSTM layer by torch's own operator, cuDNN's on a GPU, where our cell is a plain LSTM with projection.

The operator can neither clip nor start a sentence within the steps. Its gates are in the order input, forget,
candidate, output (ours: input, candidate, forget, output), its matrices are transposed, and it adds nothing to the
forget gate.
"""

import warnings

import torch
from torch import Tensor

from elmo_zh.model.kernels.cells import Clips, LayerWeights, LSTMState


def suits_library(inputs: Tensor, bias: Tensor, keep: Tensor | None, clips: Clips) -> bool:
    """Return whether training a layer can be left to cuDNN.

    cuDNN has states in the dtype of products, may sum in any order, and rounds factors to TF32 unless that is off.
    """
    return (
        inputs.device.type == "cuda"
        and torch.is_grad_enabled()
        and not torch.compiler.is_compiling()
        and keep is None
        and clips.cell == clips.output == 0
        and inputs.dtype == bias.dtype
        and bool(torch.backends.cudnn.is_acceptable(inputs))  # type: ignore[no-untyped-call]
        and torch.backends.cudnn.allow_tf32 == torch.backends.cuda.matmul.allow_tf32
        and not torch.are_deterministic_algorithms_enabled()
    )


def run_library_lstm(inputs: Tensor, weights: LayerWeights, state: LSTMState) -> tuple[Tensor, Tensor]:
    """Run over time, one direction after the other.

    Args:
        inputs: Shape (2, T, B, I).
        weights: The layer's weights.
        state: Carried in; no gradient reaches it.

    Returns:
        Outputs, shape (2, T, B, P), and the last cells, shape (2, B, D), without a gradient.
    """
    D = state.cell.shape[2]
    plus_one = weights.bias.new_zeros(4 * D)
    plus_one[2 * D : 3 * D] = 1
    w_ih, w_hh, b = (_reorder(each) for each in (weights.input.mT, weights.recurrent.mT, weights.bias + plus_one))
    all_outputs, cells = [], []
    for d in range(2):
        matrices = [w_ih[d], w_hh[d], b[d], torch.zeros_like(b[d])]
        if weights.projection is not None:
            matrices.append(weights.projection[d].mT.contiguous())
        before = tuple(part[d : d + 1].detach().contiguous() for part in state)
        with warnings.catch_warnings():
            # cuDNN copies the weights into contiguous memory; ours are reordered at every call anyway.
            warnings.filterwarnings("ignore", message="RNN module weights are not part of single contiguous")
            outputs, _, last = torch._VF.lstm(
                inputs[d], before, matrices, True, 1, 0.0, True, False, False
            )  # has biases, layers, dropout, training, bidirectional, batch first
        all_outputs.append(outputs)
        cells.append(last[0].detach())
    return torch.stack(all_outputs), torch.stack(cells)


def _reorder(gates: Tensor) -> Tensor:
    """Return i, f, j, o of i, j, f, o, shape (2, 4D, ...)."""
    i, j, f, o = gates.chunk(4, dim=1)
    return torch.cat([i, f, j, o], dim=1)
