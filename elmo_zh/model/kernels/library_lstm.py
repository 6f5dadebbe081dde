"""One LSTM layer by torch's own operator, cuDNN's on a GPU, for where our cell is a plain LSTM with projection.

The operator cannot clip, nor start a sentence within the steps. It takes the gates as input, forget, candidate, output,
where ours are input, candidate, forget, output, matrices the other way round, and nothing added to the forget gate.
"""

import warnings

import torch
from torch import Tensor


def suits_library(inputs: Tensor, bias: Tensor, keep: Tensor | None, cell_clip: float, output_clip: float) -> bool:
    """Return whether training a layer can be left to cuDNN.

    It has states in the dtype of products, may sum in any order, and may round factors to TF32 unless told not to.
    """
    return (
        inputs.device.type == "cuda"
        and torch.is_grad_enabled()
        and not torch.compiler.is_compiling()
        and keep is None
        and cell_clip == output_clip == 0
        and inputs.dtype == bias.dtype
        and bool(torch.backends.cudnn.is_acceptable(inputs))  # type: ignore[no-untyped-call]
        and torch.backends.cudnn.allow_tf32 == torch.backends.cuda.matmul.allow_tf32
        and not torch.are_deterministic_algorithms_enabled()
    )


def run_library_lstm(
    inputs: Tensor,
    input_weight: Tensor,
    recurrent_weight: Tensor,
    bias: Tensor,
    projection: Tensor | None,
    output: Tensor,
    cell: Tensor,
) -> tuple[Tensor, Tensor]:
    """Run over time, one direction after the other.

    Args:
        inputs: Shape (2, T, B, I).
        input_weight: Shape (2, I, 4D).
        recurrent_weight: Shape (2, P, 4D).
        bias: Shape (2, 4D), without the forget gate's 1.
        projection: Shape (2, D, P), or None where P = D.
        output: Carried in, shape (2, B, P); no gradient reaches it.
        cell: Carried in, shape (2, B, D); no gradient reaches it.

    Returns:
        Outputs, shape (2, T, B, P), and the last cells, shape (2, B, D), without a gradient.
    """
    D = cell.shape[2]
    plus_one = bias.new_zeros(4 * D)
    plus_one[2 * D : 3 * D] = 1
    w_ih, w_hh, b = (_reorder(each) for each in (input_weight.mT, recurrent_weight.mT, bias + plus_one))
    all_outputs, cells = [], []
    for d in range(2):
        weights = [w_ih[d], w_hh[d], b[d], torch.zeros_like(b[d])]
        if projection is not None:
            weights.append(projection[d].mT.contiguous())
        before = output[d : d + 1].detach().contiguous(), cell[d : d + 1].detach().contiguous()
        with warnings.catch_warnings():
            # cuDNN wants the weights in one piece of memory and puts them there; ours are reordered anew anyway.
            warnings.filterwarnings("ignore", message="RNN module weights are not part of single contiguous")
            outputs, _, last = torch._VF.lstm(
                inputs[d], before, weights, True, 1, 0.0, True, False, False
            )  # has biases, layers, dropout, training, bidirectional, batch first
        all_outputs.append(outputs)
        cells.append(last[0].detach())
    return torch.stack(all_outputs), torch.stack(cells)


def _reorder(gates: Tensor) -> Tensor:
    """Return i, f, j, o of i, j, f, o, shape (2, 4D, ...)."""
    i, j, f, o = gates.chunk(4, dim=1)
    return torch.cat([i, f, j, o], dim=1)
