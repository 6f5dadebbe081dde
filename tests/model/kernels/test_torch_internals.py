"""Private and deprecated parts of torch: used while they work, noticed where they do not, measured again in time."""

import functools
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from contract.command_line import ROOT
from torch import Tensor

from elmo_zh.model.kernels import cells, next_token_loss, torch_internals
from elmo_zh.model.kernels.products import can_pack
from elmo_zh.model.kernels.torch_internals import MEASURED_WITH, packing_works, scripted


def test_they_are_measured_again_with_another_torch() -> None:
    """With the new torch run `make bench`; keep in torch_internals.py what no public call does as fast, and say so."""
    pinned = re.search(r"^torch==(.*)$", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    assert pinned is not None
    assert pinned[1].startswith(f"{MEASURED_WITH}.")


@pytest.mark.parametrize(
    "function",
    [cells.loop_forward, cells.loop_backward, cells.infer_layer, next_token_loss.score_row_chunks],
    ids=lambda function: function.__name__,
)
def test_torchscript_takes_it(function: Callable[..., Any]) -> None:
    """Otherwise nothing would fail: it would run as plain Python, and slower."""
    assert isinstance(scripted(function), torch.jit.ScriptFunction)


@pytest.mark.parametrize("error", [AttributeError, RuntimeError])
def test_without_torchscript_it_is_the_function_itself(monkeypatch: pytest.MonkeyPatch, error: type[Exception]) -> None:
    def refuse(_: object) -> object:
        raise error("no TorchScript here")

    def nothing() -> None:
        pass

    monkeypatch.setattr(torch.jit, "script", refuse)
    with pytest.warns(
        RuntimeWarning, match=r"The TorchScript functions of torch .*no TorchScript here.*will run more slowly"
    ):
        assert scripted(nothing) is nothing


def missing(*_: object, **__: object) -> Tensor:
    raise AttributeError("'_OpNamespace' 'mkldnn' object has no attribute '_reorder_linear_weight'")


def wrong(rows: Tensor, *_: object, **__: object) -> Tensor:
    return rows.new_ones(3, 7)


@pytest.mark.parametrize(
    ("name", "stand_in"), [("packed", missing), ("packed_product", missing), ("packed_product", wrong)]
)
def test_another_torch_without_the_operators_or_with_others_packs_nothing(
    monkeypatch: pytest.MonkeyPatch, name: str, stand_in: object
) -> None:
    try_it = functools.cache(packing_works.__wrapped__)
    monkeypatch.setattr("elmo_zh.model.kernels.products.packing_works", try_it)
    monkeypatch.setattr(torch_internals, name, stand_in)
    with pytest.warns(RuntimeWarning, match="The packed products of torch") as caught:
        found = [can_pack(torch.zeros(1), torch.float32) for _ in range(2)]
    assert (found, len(caught)) == ([False, False], 1)
