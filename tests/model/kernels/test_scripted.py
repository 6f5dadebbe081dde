"""Functions compiled once, whoever asks for them at the same time."""

import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from torch import Tensor

from elmo_zh.model.kernels.scripted import scripted


def test_it_computes_the_same() -> None:
    def add_twice(left: Tensor, right: Tensor) -> Tensor:
        return left + 2 * right

    left, right = torch.arange(3.0), torch.arange(3.0) + 5
    assert scripted(add_twice)(left, right).tolist() == [10, 13, 16]
    assert scripted(add_twice) is scripted(add_twice)


def test_threads_that_ask_at_once_compile_once_and_hear_no_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def script(function: Callable[..., Any]) -> Callable[..., Any]:
        asked.append(function)
        time.sleep(0.02)
        warnings.warn("`torch.jit.script` is deprecated", DeprecationWarning, stacklevel=1)
        return lambda: "compiled"

    monkeypatch.setattr(torch.jit, "script", script)
    with ThreadPoolExecutor(5) as pool:
        found = list(pool.map(scripted, [test_it_computes_the_same] * 5))
    assert [each() for each in found] == ["compiled"] * 5
    assert len(asked) == 1


@pytest.mark.parametrize("error", [AttributeError, RuntimeError])
def test_without_torchscript_it_is_the_function_itself(monkeypatch: pytest.MonkeyPatch, error: type[Exception]) -> None:
    def refuse(_: object) -> object:
        raise error("no TorchScript here")

    def nothing() -> None:
        pass

    monkeypatch.setattr(torch.jit, "script", refuse)
    assert scripted(nothing) is nothing
