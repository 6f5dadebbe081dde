"""Triton's kernels, under its interpreter on a processor, against the cell in torch's operations."""

import os

import pytest
import torch
from torch import Tensor

from elmo_zh.model.kernels.gpu_loop import PLAIN_STEPS, CellSteps

HAS_GPU = torch.cuda.is_available()
if not HAS_GPU:
    os.environ["TRITON_INTERPRET"] = "1"  # read when kernels are defined
pytest.importorskip("triton", reason="Triton is not installed")

from elmo_zh.model.kernels import fused_cell  # noqa: E402

DEVICE = torch.device("cuda" if HAS_GPU else "cpu")
FUSED = CellSteps("triton", fused_cell.fused_forward, fused_cell.fused_backward)
# More than one block of columns, the last one not full.
STEPS, STREAMS, CELL = 3, 5, 263


@pytest.mark.parametrize("has_keep", [False, True])
@pytest.mark.parametrize("clip", [0.0, 0.4, 50.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_steps_equal_those_in_torch(dtype: torch.dtype, clip: float, has_keep: bool) -> None:
    plain, fused = (run_both_ways(steps, dtype, clip, has_keep) for steps in (PLAIN_STEPS, FUSED))
    for name, value in plain.items():
        # What is rounded to bfloat16 may fall to the other side; cells and gates are float32 all the same.
        rtol = 1e-2 if value.dtype == torch.bfloat16 else 0
        torch.testing.assert_close(
            fused[name], value, rtol=rtol, atol=2e-6, msg=lambda text, name=name: f"{name}: {text}"
        )
    assert (plain["cell"].abs() == 0.4).any() == (clip == 0.4)


def run_both_ways(steps: CellSteps, dtype: torch.dtype, clip: float, has_keep: bool) -> dict[str, Tensor]:
    """One step among three, so that the directions lie apart as they do in a loop."""
    generator = torch.Generator().manual_seed(3)

    def draw(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        return torch.randn(2, STEPS, *shape, generator=generator).to(DEVICE, dtype)[:, 1]

    z, bias, before = draw(STREAMS, 4 * CELL, dtype=dtype), draw(4 * CELL).contiguous(), draw(STREAMS, CELL)
    keep = torch.tensor([1.0, 0, 1, 1, 0], device=DEVICE)[:, None] if has_keep else None
    gates, cell, tanh_cell = draw(STREAMS, 4 * CELL), draw(STREAMS, CELL), draw(STREAMS, CELL)
    given, d_z = draw(STREAMS, CELL, dtype=dtype), draw(STREAMS, 4 * CELL, dtype=dtype)
    steps.forward(z, bias, before, keep, clip, gates, cell, tanh_cell, given)
    d_given, d_cell = draw(STREAMS, CELL, dtype=dtype), draw(STREAMS, CELL).contiguous()
    steps.backward(d_given, d_cell, gates, cell, tanh_cell, before, keep, clip, d_z)
    return {"gates": gates, "cell": cell, "tanh": tanh_cell, "given": given, "d_z": d_z, "d_cell": d_cell}


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
