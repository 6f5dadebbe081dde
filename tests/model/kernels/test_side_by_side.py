"""Two pieces of work at the same time: their results, their errors, their threads."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from elmo_zh.model.kernels.side_by_side import side_by_side


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


def test_each_piece_has_half_of_the_threads_and_no_gradient(num_threads: int) -> None:
    weight = torch.ones(3, requires_grad=True)

    def work(piece: int) -> tuple[int, int, bool, bool]:
        return piece, torch.get_num_threads(), (weight * 2).requires_grad, torch.is_inference_mode_enabled()

    half = max(1, num_threads // 2)
    for _ in range(2):
        assert side_by_side(work) == ((0, half, False, False), (1, half, False, False))
        assert torch.get_num_threads() == num_threads
        assert torch.is_grad_enabled()


def test_inference_mode_reaches_both(num_threads: int) -> None:
    def work(piece: int) -> torch.Tensor:
        return torch.full((3,), float(piece))

    with torch.inference_mode():
        made = side_by_side(work)
        assert torch.is_inference_mode_enabled()
    assert [tensor.is_inference() for tensor in made] == [True, True]
    assert not any(tensor.is_inference() for tensor in side_by_side(work))


@pytest.mark.parametrize("failing", [(0,), (1,), (0, 1)])
def test_errors_of_either_piece_travel_and_leave_all_as_it_was(num_threads: int, failing: tuple[int, ...]) -> None:
    def work(piece: int) -> int:
        if piece in failing:
            raise OddError(piece)
        return piece

    for _ in range(2):
        with pytest.raises(OddError) as caught:
            side_by_side(work)
        assert caught.value.args == (failing[0],)
        assert torch.get_num_threads() == num_threads
        assert torch.is_grad_enabled()
    assert side_by_side(lambda piece: 7 * piece) == (0, 7)


@pytest.mark.usefixtures("_two_threads")
def test_both_are_at_work_at_the_same_time_and_an_error_waits_for_the_other() -> None:
    both, ended = threading.Barrier(2), threading.Event()

    def work(piece: int) -> None:
        both.wait()
        if piece == 0:
            raise OddError
        time.sleep(0.05)
        ended.set()

    with pytest.raises(OddError):
        side_by_side(work)
    assert ended.is_set()


@pytest.mark.usefixtures("_two_threads")
def test_two_threads_may_ask_for_it_at_once() -> None:
    with ThreadPoolExecutor(2) as callers:
        results = list(callers.map(lambda caller: side_by_side(lambda piece: (caller, piece)), range(23)))
    assert results == [((caller, 0), (caller, 1)) for caller in range(23)]


FORK = """
import os, torch
from elmo_zh.model.kernels.side_by_side import side_by_side
torch.set_num_threads(2)
expected = ((0, 1), (1, 1))
work = lambda piece: (piece, torch.get_num_threads())
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
