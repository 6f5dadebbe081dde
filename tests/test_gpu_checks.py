"""The checks of `gpu_checks`: with `-m gpu` on a GPU, else through the GPU's code on a processor."""

from collections.abc import Callable

import pytest
import torch
from gpu_checks import Check, cell_checks, layer_checks, training_checks

GROUPS: list[Callable[[str], dict[str, Check]]] = [cell_checks, layer_checks, training_checks]
CASES = [(group, name) for group in GROUPS for name in group("cpu")]
# A processor always trains twice the same.
ON_A_PROCESSOR = [
    pytest.param(group, name, id=name, marks=[pytest.mark.slow] if name.startswith("twice") else [])
    for group, name in CASES
]


@pytest.mark.parametrize(("group", "name"), ON_A_PROCESSOR)
@pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN")
def test_on_a_processor(group: Callable[[str], dict[str, Check]], name: str) -> None:
    group("cpu")[name]()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
@pytest.mark.parametrize(("group", "name"), [pytest.param(*case, id=case[1]) for case in CASES])
def test_on_a_gpu(group: Callable[[str], dict[str, Check]], name: str) -> None:
    group("cuda")[name]()
