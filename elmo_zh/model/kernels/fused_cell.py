"""One time step of the cell on a GPU, element by element, in one kernel forward and one backward.

Computes the step of `kernels.cells`, which explains the cell, and the operations around it in the time loop: adding the
bias, the zero state at sentence starts, and rounding to the dtype of products. Importing this module needs Triton.
Every tensor has the two directions first, with any stride; its rows are contiguous. Shape letters: see `model.bilm`.
"""

import triton
import triton.language as tl
from torch import Tensor

_BLOCK = 256


@triton.jit
def _tanh(x):  # type: ignore[no-untyped-def]
    return 2 * tl.sigmoid(2 * x) - 1


@triton.jit  # type: ignore[untyped-decorator]
def _forward_kernel(  # type: ignore[no-untyped-def]
    z, bias, before, keep, gates, cell, tanh_cell, given,
    z_stride, before_stride, gates_stride, cell_stride, tanh_stride, given_stride,
    num_streams, cell_dim, clip, has_clip: tl.constexpr, has_keep: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    direction, stream = tl.program_id(0) // num_streams, tl.program_id(0) % num_streams
    direction, stream = direction.to(tl.int64), stream.to(tl.int64)
    column = tl.program_id(1) * block + tl.arange(0, block)
    inside = column < cell_dim
    row_z = z + direction * z_stride + stream * 4 * cell_dim + column
    row_bias = bias + direction * 4 * cell_dim + column
    row_gates = gates + direction * gates_stride + stream * 4 * cell_dim + column
    at = stream * cell_dim + column

    i = tl.sigmoid(tl.load(row_z, inside).to(tl.float32) + tl.load(row_bias, inside))
    j = _tanh(tl.load(row_z + cell_dim, inside).to(tl.float32) + tl.load(row_bias + cell_dim, inside))
    f = tl.sigmoid(tl.load(row_z + 2 * cell_dim, inside).to(tl.float32) + tl.load(row_bias + 2 * cell_dim, inside))
    o = tl.sigmoid(tl.load(row_z + 3 * cell_dim, inside).to(tl.float32) + tl.load(row_bias + 3 * cell_dim, inside))
    c = tl.load(before + direction * before_stride + at, inside)
    if has_keep:
        c = c * tl.load(keep + stream)
    c = f * c + i * j
    if has_clip:
        # Written so that NaN stays NaN, and training notices.
        c = tl.where(c > clip, clip, tl.where(c < -clip, -clip, c))
    t = _tanh(c)
    tl.store(row_gates, i, inside)
    tl.store(row_gates + cell_dim, j, inside)
    tl.store(row_gates + 2 * cell_dim, f, inside)
    tl.store(row_gates + 3 * cell_dim, o, inside)
    tl.store(cell + direction * cell_stride + at, c, inside)
    tl.store(tanh_cell + direction * tanh_stride + at, t, inside)
    tl.store(given + direction * given_stride + at, o * t, inside)  # rounds to the dtype of products


@triton.jit  # type: ignore[untyped-decorator]
def _backward_kernel(  # type: ignore[no-untyped-def]
    d_given, d_cell, gates, cell, tanh_cell, before, keep, d_z,
    d_given_stride, d_cell_stride, gates_stride, cell_stride, tanh_stride, before_stride, d_z_stride,
    num_streams, cell_dim, clip, has_clip: tl.constexpr, has_keep: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    direction, stream = tl.program_id(0) // num_streams, tl.program_id(0) % num_streams
    direction, stream = direction.to(tl.int64), stream.to(tl.int64)
    column = tl.program_id(1) * block + tl.arange(0, block)
    inside = column < cell_dim
    row_gates = gates + direction * gates_stride + stream * 4 * cell_dim + column
    row_d_z = d_z + direction * d_z_stride + stream * 4 * cell_dim + column
    at = stream * cell_dim + column

    i, j = tl.load(row_gates, inside), tl.load(row_gates + cell_dim, inside)
    f, o = tl.load(row_gates + 2 * cell_dim, inside), tl.load(row_gates + 3 * cell_dim, inside)
    t = tl.load(tanh_cell + direction * tanh_stride + at, inside)
    c_before = tl.load(before + direction * before_stride + at, inside)
    d_m = tl.load(d_given + direction * d_given_stride + at, inside).to(tl.float32)
    d_c = tl.load(d_cell + direction * d_cell_stride + at, inside) + d_m * o * (1 - t * t)
    if has_clip:
        # A clip has no gradient where the value is at the bound.
        c = tl.load(cell + direction * cell_stride + at, inside)
        d_c = tl.where((c <= -clip) | (c >= clip), 0.0, d_c)
    d_before = d_c * f
    if has_keep:
        kept = tl.load(keep + stream)
        c_before = c_before * kept
        d_before = d_before * kept
    tl.store(row_d_z, d_c * j * i * (1 - i), inside)
    tl.store(row_d_z + cell_dim, d_c * i * (1 - j * j), inside)
    tl.store(row_d_z + 2 * cell_dim, d_c * c_before * f * (1 - f), inside)
    tl.store(row_d_z + 3 * cell_dim, d_m * t * o * (1 - o), inside)
    tl.store(d_cell + direction * d_cell_stride + at, d_before, inside)


def fused_forward(
    z: Tensor,
    bias: Tensor,
    before: Tensor,
    keep: Tensor | None,
    clip: float,
    gates: Tensor,
    cell: Tensor,
    tanh_cell: Tensor,
    given: Tensor,
) -> None:
    """Compute one step of both directions.

    Args:
        z: Input of the gates without the bias, float32 or bfloat16, shape (2, B, 4D).
        bias: With the forget gate's 1, float32, shape (2, 4D).
        before: The previous cell state, float32, shape (2, B, D).
        keep: 0 where a sentence starts, else 1, float32, shape (B, 1). None keeps all.
        clip: Largest absolute value of the cell state; 0 means none.
        gates: Filled with the values of the gates, float32, shape (2, B, 4D); may be z itself.
        cell: Filled with the cell state, float32, shape (2, B, D).
        tanh_cell: Filled with its tanh, float32, shape (2, B, D).
        given: Filled with o tanh(c), float32 or bfloat16, shape (2, B, D).
    """
    _require_rows(z, bias, before, gates, cell, tanh_cell, given)
    _, num_streams, D = before.shape
    _forward_kernel[(2 * num_streams, triton.cdiv(D, _BLOCK))](
        z, bias, before, before if keep is None else keep, gates, cell, tanh_cell, given,
        z.stride(0), before.stride(0), gates.stride(0), cell.stride(0), tanh_cell.stride(0), given.stride(0),
        num_streams, D, clip, has_clip=clip > 0, has_keep=keep is not None, block=_BLOCK,
    )  # fmt: skip


def fused_backward(
    d_given: Tensor,
    d_cell: Tensor,
    gates: Tensor,
    cell: Tensor,
    tanh_cell: Tensor,
    before: Tensor,
    keep: Tensor | None,
    clip: float,
    d_z: Tensor,
) -> None:
    """Compute the gradients of one step of both directions.

    Args:
        d_given: Gradient of the cell's output, float32 or bfloat16, shape (2, B, D).
        d_cell: Gradient of the cell state from the following step; replaced by that of the previous cell state.
        gates: From the step forward, as the next five arguments.
        cell: As forward.
        tanh_cell: As forward.
        before: As forward.
        keep: As forward.
        clip: As forward.
        d_z: Filled with the gradient of z, float32 or bfloat16, shape (2, B, 4D).
    """
    _require_rows(d_given, d_cell, gates, cell, tanh_cell, before, d_z)
    _, num_streams, D = before.shape
    _backward_kernel[(2 * num_streams, triton.cdiv(D, _BLOCK))](
        d_given, d_cell, gates, cell, tanh_cell, before, before if keep is None else keep, d_z,
        d_given.stride(0), d_cell.stride(0), gates.stride(0), cell.stride(0), tanh_cell.stride(0),
        before.stride(0), d_z.stride(0),
        num_streams, D, clip, has_clip=clip > 0, has_keep=keep is not None, block=_BLOCK,
    )  # fmt: skip


def _require_rows(*tensors: Tensor) -> None:
    """Check that rows are contiguous, as the kernels assume."""
    assert all(tensor[0].is_contiguous() for tensor in tensors)
