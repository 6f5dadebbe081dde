"""The private and deprecated parts of torch that the kernels use, and why they use them.

Measured with torch 2.13 (docs/log.md, 2026-11-24). `make bench` shows the rates of packed and of torch's own products.
Measure again when constraints.txt pins another torch, and remove whatever a public call can do as fast.

- `mkldnn._reorder_linear_weight` and `mkldnn._linear_pointwise`, which torch's compiler calls: oneDNN's own layout of a
  matrix. A product of few rows takes a third of the time of the public `torch.utils.mkldnn.to_mkldnn`, which computes
  the same bits but converts at each call. In torch's own product, a row's last bits depend on its neighbours.
- `onednn.qlinear_prepack` and `onednn.qlinear_pointwise`: the product of 8-bit numbers. torch's public quantised
  modules are deprecated.
- `aten.*_backward`: the derivatives that autograd itself uses, in one pass over memory.
- `torch.jit.script`: public, but deprecated. A time loop is hundreds of short operations. Compiled, it runs without
  Python's lock, so that two directions on two threads do not keep each other waiting: up to an eighth of a training
  step. Its successor, torch.compile, needs a C++ compiler on the user's machine.

The functions on tensors are compatible with TorchScript. If an operator is missing or gives other results, a
RuntimeWarning says once that computing is slower, and public calls take its place. If only the processor lacks it, they
do so silently.
"""

import functools
import threading
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

MEASURED_WITH = "2.13"
# oneDNN is fast only with unsigned rows, so 128 is added to them.
ZERO_POINT, LARGEST_INT8 = 128, 127


def packed(matrix: Tensor) -> Tensor:
    """Return a matrix, shape (I, O), in oneDNN's own layout."""
    result: Tensor = torch.ops.mkldnn._reorder_linear_weight(matrix.mT.contiguous())
    return result


def packed_product(rows: Tensor, matrix: Tensor, bias: Tensor | None) -> Tensor:
    """Return rows x matrix + bias, for a matrix made by `packed` or the transpose of a plain one."""
    result: Tensor = torch.ops.mkldnn._linear_pointwise(rows, matrix, bias, "none", [], "")
    return result


def packed_int8(matrix: Tensor) -> Tensor:
    """Return a matrix of int8, shape (I, O), in oneDNN's own layout."""
    result: Tensor = torch.ops.onednn.qlinear_prepack(matrix.mT.contiguous(), None)
    return result


def int8_product(rows: Tensor, matrix: Tensor, scales: Tensor) -> Tensor:
    """Return (rows - 128) x matrix x scales, float32, for uint8 rows and a matrix made by `packed_int8`."""
    zeros = torch.zeros(scales.size(0), dtype=torch.int32)
    result: Tensor = torch.ops.onednn.qlinear_pointwise(
        rows, 1.0, 128, matrix, scales, zeros, None, 1.0, 0, torch.float32, "none", [], ""
    )
    return result


def fill_sigmoid_gradient(d_output: Tensor, output: Tensor, out: Tensor) -> None:
    """Fill `out` with the gradient with respect to a sigmoid's input."""
    torch.ops.aten.sigmoid_backward(d_output, output, grad_input=out)


def fill_tanh_gradient(d_output: Tensor, output: Tensor, out: Tensor) -> None:
    """Fill `out` with the gradient with respect to a tanh's input."""
    torch.ops.aten.tanh_backward(d_output, output, grad_input=out)


def tanh_gradient(d_output: Tensor, output: Tensor) -> Tensor:
    """Return the gradient with respect to a tanh's input."""
    result: Tensor = torch.ops.aten.tanh_backward(d_output, output)
    return result


def clip_gradient(d_output: Tensor, value: Tensor, clip: float) -> Tensor:
    """Return the gradient with respect to a value before clipping: zero where the value is at the bound."""
    result: Tensor = torch.ops.aten.hardtanh_backward(d_output, value, -clip, clip)
    return result


@functools.cache
def packing_works(dtype: torch.dtype) -> bool:
    """Return whether packed products give correct results in a dtype."""
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return False
    rows, matrix = torch.arange(15.0, dtype=dtype).view(3, 5), torch.arange(35.0, dtype=dtype).view(5, 7)
    bias, exact = torch.arange(7.0), rows.double() @ matrix.double()
    try:
        tried = [
            (packed_product(rows, packed(matrix), None), exact),
            (packed_product(rows, packed(matrix), bias), exact + bias),
            (packed_product(rows, matrix.mT, bias), exact + bias),
        ]
        return all(torch.allclose(found.double(), expected, rtol=0.01) for found, expected in tried) or _give_up(
            "packed products", "wrong results"
        )
    except NotImplementedError:
        return False
    except (AttributeError, RuntimeError) as error:
        # In bfloat16 it is more likely that the processor lacks instructions.
        return dtype == torch.float32 and _give_up("packed products", str(error))


@functools.cache
def int8_product_works() -> bool:
    """Return whether products of 8-bit numbers are correct; without VNNI, oneDNN saturates sums of large numbers."""
    matrix = torch.arange(-17, 18, dtype=torch.int8).view(5, 7)
    matrix[:, 0], matrix[:, 1] = LARGEST_INT8, -LARGEST_INT8
    rows = torch.arange(15, dtype=torch.uint8).view(3, 5) * 17
    rows[0] = ZERO_POINT + LARGEST_INT8
    try:
        found = int8_product(rows, packed_int8(matrix), torch.ones(7))
    except NotImplementedError:
        return False
    except (AttributeError, RuntimeError) as error:
        return _give_up("products of 8-bit numbers", str(error))
    return bool(torch.equal(found.double(), (rows.double() - ZERO_POINT) @ matrix.double()))


def _give_up(missing: str, problem: str) -> bool:
    first_line = problem.partition("\n")[0]
    warnings.warn(
        f"The {missing} of torch {torch.__version__} do not work here ({first_line}), so elmo-zh will run more slowly."
        f" Installing torch {MEASURED_WITH} may help.",
        RuntimeWarning,
        stacklevel=2,
    )
    return False


_compilation_lock = threading.Lock()
_CPU = torch.device("cpu")


def scripted(function: Callable[..., Any], device: torch.device = _CPU) -> Callable[..., Any]:
    """Return the function, compiled by TorchScript if it runs on a CPU; only one thread compiles at a time."""
    if device.type != "cpu":
        return function
    with _compilation_lock:
        return _compile(function)


@functools.cache
def _compile(function: Callable[..., Any]) -> Callable[..., Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            compiled: Callable[..., Any] = torch.jit.script(function)
            return compiled
        except (AttributeError, RuntimeError) as error:
            problem = str(error)
    _give_up("TorchScript functions", problem)
    return function


def forget_compilation_lock() -> None:
    """Replace the lock in a forked process, where no thread would ever release it."""
    global _compilation_lock
    _compilation_lock = threading.Lock()
