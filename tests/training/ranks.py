"""Run commands one after another as two ranks, without torchrun: `python ranks.py JOBS TOLD`, JOBS in JSON.

The ranks are processes forked from this one, which has imported torch. They write how each job ended to TOLD-0 and
TOLD-1.
"""

import contextlib
import errno
import importlib
import io
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn
from unittest.mock import patch

import torch

from elmo_zh.cli import main
from elmo_zh.training import checkpoint, train_run
from elmo_zh.training.learner import Learner
from elmo_zh.training.streams import StreamBatch

Change = Callable[[torch.Tensor], torch.Tensor]


@contextlib.contextmanager
def changed_loss(step: int, change: Change) -> Iterator[None]:
    """Change the loss in the step after `step`. The first three steps also run before as trial steps."""
    real = Learner._loss

    def _loss(learner: Learner, batch: StreamBatch, number: int) -> tuple[torch.Tensor, Any]:
        loss, state = real(learner, batch, number)
        return change(loss) if number == step else loss, state

    with patch.object(Learner, "_loss", _loss):
        yield


class KilledError(Exception):
    """Stands for the end of a process that can do nothing more."""


def kill(_: torch.Tensor) -> torch.Tensor:
    raise KilledError


def sending(number: signal.Signals) -> Change:
    def change(loss: torch.Tensor) -> torch.Tensor:
        os.kill(os.getpid(), number)
        return loss

    return change


def not_a_number(loss: torch.Tensor) -> torch.Tensor:
    return loss * torch.nan


def once(change: Change) -> Change:
    changes = iter([change])
    return lambda loss: next(changes, lambda same: same)(loss)


@contextlib.contextmanager
def mishap(what: str, step: int) -> Iterator[None]:
    def fail(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "a checkpoint")

    change = sending(signal.Signals.__members__.get(what, signal.SIGTERM))
    with patch.object(checkpoint, "save_tensors", fail) if what == "full disk" else changed_loss(step, once(change)):
        yield


def run_job(job: dict[str, Any]) -> tuple[int, str]:
    told = io.StringIO()
    os.environ["MASTER_PORT"] = str(job["port"])
    with contextlib.ExitStack() as changes:
        changes.enter_context(contextlib.redirect_stderr(told))
        # The next step is printed to stdout, where this program answers.
        changes.enter_context(contextlib.redirect_stdout(io.StringIO()))
        changes.enter_context(patch.object(sys, "argv", ["elmo-zh", *job["arguments"]]))
        # Drawing the picture takes longer than training.
        changes.enter_context(patch.object(train_run, "can_draw", lambda: False))
        if job.get("rank") == int(os.environ["RANK"]):
            changes.enter_context(mishap(job["what"], job["step"]))
        try:
            main()
        except SystemExit as ended:
            return int(ended.code or 0), told.getvalue()
    raise AssertionError("main always exits")


def run_as(rank: int, jobs: list[dict[str, Any]], told: str) -> NoReturn:
    """Run the jobs in this process as one of the ranks, and end it."""
    os.environ["RANK"] = os.environ["LOCAL_RANK"] = str(rank)
    try:
        with Path(f"{told}-{rank}").open("w", encoding="utf-8") as answers:
            for job in jobs:
                answers.write(json.dumps(run_job(job)) + "\n")
                answers.flush()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(0)


if __name__ == "__main__":
    # torch itself imports it for every training, and here once for both ranks.
    importlib.import_module("torch._dynamo")
    ranks = []
    for rank in range(2):
        child = os.fork()
        if not child:
            run_as(rank, json.loads(sys.argv[1]), sys.argv[2])
        ranks.append(child)
    for child in ranks:
        os.waitpid(child, 0)
