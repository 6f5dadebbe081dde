"""What the time loops compute is tested with the layers that they belong to; here, that TorchScript takes them."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from elmo_zh.model.kernels import loops, next_token_loss
from elmo_zh.model.kernels.execution import scripted


@pytest.mark.parametrize(
    "function",
    [loops.loop_forward, loops.loop_backward, loops.infer_layer, next_token_loss.score_row_chunks],
    ids=lambda function: function.__name__,
)
def test_torchscript_takes_it(function: Callable[..., Any]) -> None:
    """Otherwise nothing would fail: it would run as plain Python, and slower."""
    assert isinstance(scripted(function), torch.jit.ScriptFunction)
