"""The checks of `gpu_checks`: with `-m gpu` on a GPU, else through the code for GPUs on a processor."""

import pytest
import torch
from gpu_checks import checks

# A processor always trains twice the same.
NAMES = [
    pytest.param(name, marks=[pytest.mark.slow] if name.startswith("same bytes") else []) for name in checks("cpu")
]


@pytest.mark.parametrize("name", NAMES)
def test_on_a_processor(name: str) -> None:
    checks("cpu")[name]()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
@pytest.mark.parametrize("name", checks("cuda"))
def test_on_a_gpu(name: str) -> None:
    checks("cuda")[name]()
