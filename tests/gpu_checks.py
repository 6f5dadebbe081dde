"""The list of checks that a GPU has to pass: `pytest -m gpu` and `benchmarks/gpu.py` run the same ones."""

import itertools
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import gpu_layers
import gpu_trainings
import torch

from elmo_zh.model.kernels.gpu_loop import choose_steps
from elmo_zh.model.precision import BFLOAT16, FLOAT32

Check = Callable[[], None]
YES_OR_NO = (False, True)


def _check_cells(device: str, dtype: torch.dtype, clip: float, has_keep: bool) -> None:
    steps = choose_steps(torch.device(device), torch.float32)
    assert device == "cpu" or steps.name == "triton", "Triton's kernels do not work"
    gpu_layers.check_cells_equal_torchs(steps, device, dtype, clip, has_keep)


def _in_a_folder(check: Callable[[Path], None]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        check(Path(folder))


def cell_checks(device: str) -> dict[str, Check]:
    """Return the checks of Triton's kernels by name."""
    settings = itertools.product((torch.float32, torch.bfloat16), (0.0, 0.4, 50.0), YES_OR_NO)
    cells = {f"cells {each}": partial(_check_cells, device, *each) for each in settings}
    return {"kernels": partial(gpu_layers.check_kernels_work, device), **cells}


def layer_checks(device: str) -> dict[str, Check]:
    """Return the checks of one layer by name."""
    precisions = ((FLOAT32, 1e-5), (BFLOAT16, 0.05))
    return {
        **{
            f"layers {precision.name}, starts {with_starts}": partial(
                gpu_layers.check_layers_train_as_on_a_processor, device, precision, tolerance, with_starts
            )
            for (precision, tolerance), with_starts in itertools.product(precisions, YES_OR_NO)
        },
        **{
            f"graphs {precision.name}": partial(gpu_layers.check_graphs_change_no_bit, device, precision)
            for precision, _ in precisions
        },
        "captured loops": partial(gpu_layers.check_two_layers_share_two_captured_loops, device),
        "inference": partial(gpu_layers.check_layer_embeds_as_on_a_processor, device),
        "embedding": partial(gpu_trainings.check_embeds_as_a_processor, device),
        **{
            f"cuDNN output {output}": partial(gpu_layers.check_library_equals_a_processor, device, output)
            for output in (gpu_layers.OUTPUT, gpu_layers.CELL)
        },
    }


# Each goes another way through the code: tables with sparse gradients, all words scored, the published optimiser.
TRAININGS: dict[str, dict[str, object]] = {
    "default": {},
    "full softmax": {"softmax": "full"},
    "carried state": {"carry_state": True},
    "Adagrad": {"optimizer": "adagrad", "learning_rate": 0.2},
}


def training_checks(device: str) -> dict[str, Check]:
    """Return the checks of whole trainings by name."""
    checks: dict[str, Callable[[Path], None]] = {
        f"as a processor: {name}": partial(gpu_trainings.check_trains_as_a_processor, device=device, changes=changes)
        for name, changes in TRAININGS.items()
    }
    for use_graphs, precision, softmax in itertools.product(YES_OR_NO, ("float32", "bfloat16"), ("sampled", "full")):
        checks[f"twice the same: {precision}, {softmax}, graphs {use_graphs}"] = partial(
            gpu_trainings.check_training_repeats,
            device=device,
            use_graphs=use_graphs,
            precision=precision,
            softmax=softmax,
        )
    return {name: partial(_in_a_folder, check) for name, check in checks.items()}
