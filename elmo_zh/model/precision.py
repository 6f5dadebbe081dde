"""Precisions of matrix products, the device that computes them, and the precision in which a machine trains faster.

A CPU that has bfloat16 instructions is not always fast at them: on some they reach half the rate of float32.
"""

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from elmo_zh.errors import ElmoZhError
from elmo_zh.language import _
from elmo_zh.model.kernels.execution import with_half_of_the_threads
from elmo_zh.model.kernels.products import can_pack, has_bfloat16, multiply, multiply_once, pack


@dataclass(frozen=True, kw_only=True)
class Precision:
    """A precision of matrix products; states, weights and sums keep the weights' dtype."""

    name: str  # Its name in settings, commands and records
    dtype: torch.dtype  # dtype that the factors of products are rounded to; float32 keeps the dtype of the weights
    # Whether products are of 8-bit integers instead (`kernels.products`), for inference on a CPU only.
    is_quantised: bool = False

    def product_dtype(self, weight: Tensor) -> torch.dtype:
        """Return the dtype of products with a weight; float32 means the weight's own, or the one that autocast sets."""
        if self.dtype != torch.float32:
            return self.dtype
        kind = weight.device.type
        return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else weight.dtype


FLOAT32 = Precision(name="float32", dtype=torch.float32)
BFLOAT16 = Precision(name="bfloat16", dtype=torch.bfloat16)
INT8 = Precision(name="int8", dtype=torch.float32, is_quantised=True)
# By name; settings and commands offer the same names (`elmo_zh.choices`).
PRECISIONS = {precision.name: precision for precision in (FLOAT32, BFLOAT16, INT8)}


def choose_device(name: str) -> torch.device:
    """Return the device for a name in `choices.DEVICES`; raise ElmoZhError for cuda if torch finds no GPU."""
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        # The version says whether this is a build with CUDA, as in 2.13.0+cpu.
        message = _(
            "device cuda: torch {version} finds no CUDA device. Choose device cpu or auto, or install a CUDA build of"
            " torch and NVIDIA's driver."
        )
        raise ElmoZhError(message.format(version=torch.__version__))
    return torch.device("cuda" if name != "cpu" and available else "cpu")


# bfloat16 is less exact, so it has to be clearly faster.
WORTHWHILE_SPEEDUP = 1.15
_MOST_SECONDS, _ROUNDS = 0.35, 5
# Most floating-point operations in one timed product. More columns would not change the rate.
_MOST_FLOPS = 5e8


@functools.cache
def choose_precision(device: torch.device, num_rows: int, width: int, num_columns: int) -> Precision:
    """Return bfloat16 if it is clearly faster for products (num_rows, width) x (width, num_columns), else float32."""
    if not has_bfloat16(device):
        return FLOAT32
    num_columns = max(1, min(num_columns, int(_MOST_FLOPS / (2 * num_rows * width))))
    work = {precision: _products(precision, device, num_rows, width, num_columns) for precision in (FLOAT32, BFLOAT16)}
    seconds = _shortest_seconds(work)
    return BFLOAT16 if seconds[FLOAT32] >= WORTHWHILE_SPEEDUP * seconds[BFLOAT16] else FLOAT32


def _products(
    precision: Precision, device: torch.device, num_rows: int, width: int, num_columns: int
) -> Callable[[], object]:
    """Return a function that computes one step's products: outputs, and gradients of the inputs and the weights."""
    rows, d_z = (torch.ones(num_rows, size, device=device).to(precision.dtype) for size in (width, num_columns))
    matrix = torch.ones(width, num_columns, device=device).to(precision.dtype)
    is_packed = can_pack(torch.empty(0, device=device), precision.dtype)
    forward, back = pack(matrix, is_packed), pack(matrix.mT, is_packed)

    def compute() -> tuple[Tensor, Tensor, Tensor]:
        found = multiply(rows, forward, None, is_packed), multiply(d_z, back, None, is_packed)
        gradient = multiply_once(rows.mT, d_z)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        return (*found, gradient)

    return compute


@with_half_of_the_threads()
def _shortest_seconds(work: dict[Precision, Callable[[], object]]) -> dict[Precision, float]:
    """Return each function's shortest time; they run in turns, so that other programs slow all of them down alike."""
    started_at = time.perf_counter()
    seconds = dict.fromkeys(work, float("inf"))
    for compute in work.values():
        compute()  # the first run makes the library's kernels
    for _round in range(_ROUNDS):
        for precision, compute in work.items():
            before = time.perf_counter()
            compute()
            seconds[precision] = min(seconds[precision], time.perf_counter() - before)
        if time.perf_counter() - started_at > _MOST_SECONDS:
            break
    return seconds
