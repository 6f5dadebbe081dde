"""Functions compiled once, and two tasks at the same time: their results, their errors, their threads."""

import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from torch import Tensor

from elmo_zh.model.kernels import execution
from elmo_zh.model.kernels.execution import scripted, side_by_side, with_half_of_the_threads


def test_a_compiled_function_computes_the_same() -> None:
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
        found = list(pool.map(scripted, [test_a_compiled_function_computes_the_same] * 5))
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


@pytest.fixture(params=[1, 2, 5])
def num_threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@pytest.fixture
def _two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


class OddError(Exception):
    pass


def test_each_half_has_half_of_the_threads_and_no_gradient(num_threads: int) -> None:
    weight = torch.ones(3, requires_grad=True)

    def work(half: int) -> tuple[int, int, bool, bool]:
        return half, torch.get_num_threads(), (weight * 2).requires_grad, torch.is_inference_mode_enabled()

    half = max(1, num_threads // 2)
    for _ in range(2):
        assert side_by_side(work) == ((0, half, False, False), (1, half, False, False))
        assert torch.get_num_threads() == num_threads
        assert torch.is_grad_enabled()


def test_inference_mode_reaches_both(num_threads: int) -> None:
    def work(half: int) -> torch.Tensor:
        return torch.full((3,), float(half))

    with torch.inference_mode():
        made = side_by_side(work)
        assert torch.is_inference_mode_enabled()
    assert [tensor.is_inference() for tensor in made] == [True, True]
    assert not any(tensor.is_inference() for tensor in side_by_side(work))


@pytest.mark.parametrize("failing", [(0,), (1,), (0, 1)])
def test_errors_of_either_half_travel_and_leave_all_as_it_was(num_threads: int, failing: tuple[int, ...]) -> None:
    def work(half: int) -> int:
        if half in failing:
            raise OddError(half)
        return half

    for _ in range(2):
        with pytest.raises(OddError) as caught:
            side_by_side(work)
        assert caught.value.args == (failing[0],)
        assert torch.get_num_threads() == num_threads
        assert torch.is_grad_enabled()
    assert side_by_side(lambda half: 7 * half) == (0, 7)


@pytest.mark.usefixtures("_two_threads")
def test_both_are_at_work_at_the_same_time_and_an_error_waits_for_the_other() -> None:
    both, ended = threading.Barrier(2), threading.Event()

    def work(half: int) -> None:
        both.wait()
        if half == 0:
            raise OddError
        time.sleep(0.05)
        ended.set()

    with pytest.raises(OddError):
        side_by_side(work)
    assert ended.is_set()


@pytest.mark.usefixtures("_two_threads")
def test_two_threads_may_ask_for_it_at_once() -> None:
    with ThreadPoolExecutor(2) as callers:
        results = list(callers.map(lambda caller: side_by_side(lambda half: (caller, half)), range(23)))
    assert results == [((caller, 0), (caller, 1)) for caller in range(23)]


@pytest.fixture
def _helper_is_kept_away(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As where another program has its core: it does not start before the test is over."""
    is_over = threading.Event()
    with ThreadPoolExecutor(1) as helper:
        helper.submit(is_over.wait)
        monkeypatch.setattr(execution, "_helper", helper)
        yield
        is_over.set()


@pytest.mark.usefixtures("_two_threads", "_helper_is_kept_away")
def test_a_half_that_the_helper_has_not_begun_is_computed_here() -> None:
    here = threading.get_ident()

    def work(half: int) -> tuple[int, int, int, bool]:
        return half, threading.get_ident(), torch.get_num_threads(), torch.is_grad_enabled()

    for _ in range(2):
        assert side_by_side(work) == ((0, here, 1, False), (1, here, 1, False))
        assert torch.get_num_threads() == 2
        assert torch.is_grad_enabled()


@pytest.mark.parametrize("failing", [0, 1])
@pytest.mark.usefixtures("_two_threads", "_helper_is_kept_away")
def test_errors_of_either_half_travel_without_the_helper_too(failing: int) -> None:
    def work(half: int) -> None:
        if half == failing:
            raise OddError(half)

    for _ in range(2):
        with pytest.raises(OddError, match=str(failing)):
            side_by_side(work)
        assert torch.get_num_threads() == 2


def test_half_of_the_threads_between_the_halves_and_all_for_both_together(num_threads: int) -> None:
    half, both = max(1, num_threads // 2), threading.Barrier(1 if num_threads == 1 else 2)

    def work(_: int) -> tuple[int, int]:
        both.wait()  # each half has a thread
        return torch.get_num_threads(), threading.get_ident()

    @with_half_of_the_threads()
    def step() -> tuple[Any, ...]:
        found = torch.get_num_threads(), side_by_side(work)
        assert torch.get_num_threads() == half
        return found

    for _ in range(2):
        outside, ((threads, here), (threads_too, there)) = step()
        assert (outside, threads, threads_too) == (half, half, half)
        assert (here == there) is (num_threads == 1)
        assert torch.get_num_threads() == num_threads


def test_half_of_the_threads_is_not_halved_again(num_threads: int) -> None:
    """As where a network that trains asks a biLM for vectors."""

    @with_half_of_the_threads()
    def inner() -> tuple[Any, ...]:
        return torch.get_num_threads(), side_by_side(lambda _: torch.get_num_threads())

    with with_half_of_the_threads():
        half = max(1, num_threads // 2)
        assert inner() == (half, (half, half))
        assert torch.get_num_threads() == half


def test_a_half_may_ask_for_halves_and_has_no_more_threads_for_them(num_threads: int) -> None:
    def work(half: int) -> list[tuple[int, int]]:
        return [(half, inner) for inner in side_by_side(lambda inner: inner)]

    with with_half_of_the_threads():
        assert side_by_side(work) == ([(0, 0), (0, 1)], [(1, 0), (1, 1)])
    assert torch.get_num_threads() == num_threads


FORK = """
import os, torch
from elmo_zh.model.kernels.execution import side_by_side
torch.set_num_threads(2)
expected = ((0, 1), (1, 1))
work = lambda half: (half, torch.get_num_threads())
assert side_by_side(work) == expected
child = os.fork()
if not child:
    os._exit(0 if [side_by_side(work), side_by_side(work)] == [expected] * 2 else 3)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert side_by_side(work) == expected
"""


def test_a_forked_process_gets_a_helper_of_its_own() -> None:
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", FORK], capture_output=True)
    assert done.returncode == 0, done.stderr
