"""One layer in one direction over whole sentences, without a gradient; in words that TorchScript knows."""

import torch
from torch import Tensor

from elmo_zh.model.kernels.lstm_cell import step_forward
from elmo_zh.model.kernels.reading_product import ReadingProduct, read_product


def read_layer(
    inputs: Tensor,
    counts: list[int],
    gates: ReadingProduct,
    projection: ReadingProduct | None,
    read_dtype: torch.dtype,
    output: Tensor,
    cell: Tensor,
    cell_clip: float,
    output_clip: float,
    outputs: Tensor,
) -> None:
    """Run over time, at each step for those sentences only that still have a token.

    Args:
        inputs: The sentences' first tokens, then their second ones and so on, longest sentence first; float32, shape
            (N, I).
        counts: How many sentences have a token at each step; their sum is N.
        gates: Of input and output before, together, (I + P, 4D), with a bias that holds the forget gate's 1.
        projection: (D, P), or None.
        read_dtype: That of rows that the gates' product takes.
        output: Carried in, shape (B, P); changed in place to what each sentence carries out.
        cell: Carried in, shape (B, D); likewise.
        cell_clip: 0 means none.
        output_clip: 0 means none.
        outputs: To fill, rows as in the inputs, shape (N, P).
    """
    width, P = inputs.size(1), output.size(1)
    read = torch.empty([output.size(0), width + P], dtype=read_dtype)
    tanh_cell = torch.empty_like(cell)
    first = 0
    for num_sentences in counts:
        read_here, cell_here = read.narrow(0, 0, num_sentences), cell.narrow(0, 0, num_sentences)
        output_here = output.narrow(0, 0, num_sentences)
        read_here.narrow(1, 0, width).copy_(inputs.narrow(0, first, num_sentences))
        read_here.narrow(1, width, P).copy_(output_here)
        z = read_product(read_here, gates)
        given = step_forward(z, cell_here, cell_clip, z, cell_here, tanh_cell.narrow(0, 0, num_sentences))
        if projection is not None:
            if projection.scales is None:
                given = given.to(read_dtype)
            output_here.copy_(read_product(given, projection))
            if output_clip > 0:
                output_here.clamp_(-output_clip, output_clip)
        else:
            output_here.copy_(given)
        outputs.narrow(0, first, num_sentences).copy_(output_here)
        first += num_sentences
