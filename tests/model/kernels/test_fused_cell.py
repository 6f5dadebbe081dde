"""Triton's kernels, under its interpreter on a processor, against the cell in torch's operations."""

import os

import pytest
import torch
from gpu_layers import check_cells_equal_torchs

from elmo_zh.model.kernels.gpu_loop import CellSteps

HAS_GPU = torch.cuda.is_available()
if not HAS_GPU:
    os.environ["TRITON_INTERPRET"] = "1"  # read when kernels are defined
pytest.importorskip("triton", reason="Triton is not installed")

from elmo_zh.model.kernels import fused_cell  # noqa: E402

DEVICE = torch.device("cuda" if HAS_GPU else "cpu")
FUSED = CellSteps("triton", fused_cell.fused_forward, fused_cell.fused_backward)


@pytest.mark.parametrize("has_keep", [False, True])
@pytest.mark.parametrize("clip", [0.0, 0.4, 50.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_steps_equal_those_in_torch(dtype: torch.dtype, clip: float, has_keep: bool) -> None:
    check_cells_equal_torchs(FUSED, str(DEVICE), dtype, clip, has_keep)


def test_gates_may_take_the_place_of_z() -> None:
    z, bias, before = torch.randn(2, 3, 20, device=DEVICE), torch.randn(2, 20, device=DEVICE), None
    before = torch.randn(2, 3, 5, device=DEVICE)
    elsewhere, others = torch.empty_like(z), [torch.empty_like(before) for _ in range(3)]
    fused_cell.fused_forward(z, bias, before, None, 0.3, elsewhere, *others)
    fused_cell.fused_forward(z, bias, before, None, 0.3, z, *others)
    assert torch.equal(z, elsewhere)


def test_what_is_not_a_number_stays_so() -> None:
    z = torch.full((2, 3, 20), float("nan"), device=DEVICE)
    cell, tanh_cell, given = (torch.zeros(2, 3, 5, device=DEVICE) for _ in range(3))
    fused_cell.fused_forward(z, z[:, 0].contiguous(), cell.clone(), None, 0.3, z, cell, tanh_cell, given)
    assert cell.isnan().all()
    assert given.isnan().all()
