"""Products of many rows with one matrix, which is prepared once for use at every time step, or used as is.

On a CPU, products in oneDNN's own blocked layout are up to 1.5 times as fast as torch's at the shapes of an LSTM step.
Without instructions for bfloat16, a CPU multiplies bfloat16 factors as float32 (`computed_dtype`).

The module calls private parts of torch, measured with torch 2.13 (docs/log.md, 2026-11-24; `make bench` shows the rates
of packed and of torch's own products). Measure again when constraints.txt pins another torch, and remove whatever a
public call can do as fast.

- `mkldnn._reorder_linear_weight` and `mkldnn._linear_pointwise`, which torch's compiler calls: oneDNN's own layout of a
  matrix. A product of few rows takes a third of the time of the public `torch.utils.mkldnn.to_mkldnn`, which computes
  the same bits but converts at each call. In torch's own product, a row's last bits depend on its neighbours.
- `onednn.qlinear_prepack` and `onednn.qlinear_pointwise`: the product of 8-bit numbers. torch's public quantised
  modules are deprecated.

If an operator is missing or fails, a RuntimeWarning says that computing is slower, and public calls take its place. If
only the processor lacks it, they do so silently. The functions on tensors are compatible with TorchScript.
"""

import functools
import os
import warnings

import torch
from torch import Tensor

MEASURED_WITH = "2.13"
# oneDNN is fast only with unsigned rows, so 128 is added to them.
ZERO_POINT, LARGEST_INT8 = 128, 127


# Instruction sets without bfloat16 products to which a user can limit oneDNN (ONEDNN_MAX_CPU_ISA).
_WITHOUT_BFLOAT16 = {"SSE41", "AVX", "AVX2", "AVX2_VNNI", "AVX512_CORE", "AVX512_CORE_VNNI"}


def has_bfloat16(device: torch.device) -> bool:
    """Return whether a device has instructions for bfloat16 products, which may still be slower than float32."""
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= (8, 0)
    return _processor_multiplies_bfloat16()


@functools.cache
def _processor_multiplies_bfloat16() -> bool:
    limits = {os.environ.get(name, "").upper() for name in ("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA")}
    capabilities = torch.cpu.get_capabilities()
    has_instructions = any(capabilities.get(name, False) for name in ("avx512_bf16", "amx_bf16"))
    return has_instructions and not limits & _WITHOUT_BFLOAT16


def computed_dtype(dtype: torch.dtype, device: torch.device) -> torch.dtype:
    """Return the dtype that a device really uses to multiply numbers of the given dtype.

    A CPU without bfloat16 instructions uses float32 instead: torch's emulation is three times slower, and makes each
    row of a product depend on its neighbours.
    """
    if dtype == torch.bfloat16 and device.type == "cpu" and not has_bfloat16(device):
        return torch.float32
    return dtype


def packed(matrix: Tensor) -> Tensor:
    """Return a matrix, shape (I, O), in oneDNN's own layout."""
    result: Tensor = torch.ops.mkldnn._reorder_linear_weight(matrix.mT.contiguous())
    return result


def packed_product(rows: Tensor, matrix: Tensor, bias: Tensor | None) -> Tensor:
    """Return rows x matrix + bias, for a matrix made by `packed`."""
    result: Tensor = torch.ops.mkldnn._linear_pointwise(rows, matrix, bias, "none", [], "")
    return result


def packed_int8(matrix: Tensor) -> Tensor:
    """Return an int8 matrix, shape (I, O), in oneDNN's own layout."""
    result: Tensor = torch.ops.onednn.qlinear_prepack(matrix.mT.contiguous(), None)
    return result


def int8_product(rows: Tensor, matrix: Tensor, scales: Tensor) -> Tensor:
    """Return (rows - 128) x matrix x scales, float32, for uint8 rows and a matrix made by `packed_int8`."""
    zeros = torch.zeros(scales.size(0), dtype=torch.int32)
    result: Tensor = torch.ops.onednn.qlinear_pointwise(
        rows, 1.0, 128, matrix, scales, zeros, None, 1.0, 0, torch.float32, "none", [], ""
    )
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
        ]
        return all(torch.allclose(found.double(), expected, rtol=0.01) for found, expected in tried) or give_up(
            "packed products", "wrong results"
        )
    except NotImplementedError:
        return False
    except (AttributeError, RuntimeError) as error:
        # In bfloat16 it is more likely that the processor lacks instructions.
        return dtype == torch.float32 and give_up("packed products", str(error))


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
        return give_up("products of 8-bit numbers", str(error))
    return bool(torch.equal(found.double(), (rows.double() - ZERO_POINT) @ matrix.double()))


def give_up(missing: str, problem: str) -> bool:
    """Warn that a part of torch does not work and that computing is slower; return False."""
    first_line = problem.partition("\n")[0]
    warnings.warn(
        f"The {missing} of torch {torch.__version__} do not work here ({first_line}), so elmo-zh will run more slowly."
        f" Installing torch {MEASURED_WITH} may help.",
        RuntimeWarning,
        stacklevel=2,
    )
    return False


def can_pack(state: Tensor, dtype: torch.dtype) -> bool:
    """Return whether packed products in `dtype` work with the device and the dtype of a state or bias."""
    is_known = state.dtype == torch.float32 and dtype in (torch.float32, torch.bfloat16)
    return state.device.type == "cpu" and is_known and packing_works(computed_dtype(dtype, state.device))


def pack(matrix: Tensor, is_packed: bool) -> Tensor:
    """Prepare a matrix for `multiply`, in oneDNN's layout if `is_packed`; shape (I, O), otherwise also (2, I, O)."""
    matrix = matrix.to(computed_dtype(matrix.dtype, matrix.device))
    return packed(matrix) if is_packed else matrix


def multiply(rows: Tensor, matrix: Tensor, bias: Tensor | None, is_packed: bool) -> Tensor:
    """Return rows x matrix + bias, shape (..., n, O), in the product's dtype; TorchScript-compatible.

    `rows` have the dtype that the matrix had before `pack`; `bias` has shape (..., O), or is None.
    """
    rows = rows.to(matrix.dtype)
    if is_packed:
        return packed_product(rows, matrix, bias)
    if bias is None:
        return torch.matmul(rows, matrix)
    added = bias.to(rows.dtype).unsqueeze(-2)
    return torch.addmm(added, rows, matrix) if rows.dim() == 2 else torch.baddbmm(added, rows, matrix)


def multiply_once(left: Tensor, right: Tensor) -> Tensor:
    """Return left x right with torch's own product, which suits a single product of two large tensors of one dtype."""
    dtype = computed_dtype(left.dtype, left.device)
    return torch.matmul(left.to(dtype), right.to(dtype))


def affine(x: Tensor, weight: Tensor, bias: Tensor, dtype: torch.dtype) -> Tensor:
    """Return x W + b, shape (n, O), with the product in `dtype` and the sum in the weights' dtype."""
    if dtype == weight.dtype:
        return torch.addmm(bias, x, weight)
    return multiply_once(x.to(dtype), weight.to(dtype)).to(weight.dtype) + bias
