"""A layer by torch's own operator against ours; where there is no GPU, the operator's version for processors."""

from unittest.mock import Mock

import pytest
import torch
from gpu_layers import CELL, INPUT, NO_CLIPS, OUTPUT, STEPS, STREAMS, build_layer, require_close, run_twice

from elmo_zh.model import projected_lstm
from elmo_zh.model.kernels.library_lstm import suits_library


@pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN")
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
@pytest.mark.parametrize("output", [OUTPUT, CELL])
def test_values_gradients_and_states_equal_ours(
    monkeypatch: pytest.MonkeyPatch, output: int, dtype: torch.dtype, tolerance: float
) -> None:
    layer = build_layer((0.0, 0.0), output, dtype)
    expected = run_twice(layer, "cpu")
    monkeypatch.setattr(projected_lstm, "suits_library", lambda *_: True)
    monkeypatch.setattr(projected_lstm, "run_recurrence", Mock(side_effect=AssertionError))
    require_close(run_twice(layer, "cpu"), expected, tolerance)


def test_a_processor_keeps_to_ours() -> None:
    values = torch.zeros(2, STEPS, STREAMS, INPUT)
    assert not suits_library(values, values, None, NO_CLIPS)
