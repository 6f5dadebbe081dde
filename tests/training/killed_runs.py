"""Run commands one after another, each in a process that can be killed: `python killed_runs.py`, jobs as JSON lines.

Each process is forked from this one, which has imported everything, so that training is killed and not its imports.
Prints the process id of each job when it starts, and its exit status when it has ended.
"""

import json
import os
import shutil
import signal
import sys
import traceback
from pathlib import Path
from typing import Any, NoReturn

from elmo_zh.cli import main
from elmo_zh.model.kernels import cells, next_token_loss
from elmo_zh.model.kernels.torch_internals import scripted
from elmo_zh.training import checkpoint, train_run
from elmo_zh.training.metrics import MetricsFile


def die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


class Place:
    """Replace a function by one that stops half-way and kills the process at its n-th call."""

    def __init__(self, owner: Any, name: str, call: int) -> None:
        self._real, self._left = getattr(owner, name), call
        setattr(owner, name, lambda *arguments, **more: self(*arguments, **more))

    def __call__(self, *arguments: Any, **more: Any) -> Any:
        self._left -= 1
        if self._left == 0:
            self.leave_half_done(*arguments, **more)
            die()
        return self._real(*arguments, **more)

    def leave_half_done(self, *arguments: Any, **more: Any) -> None:
        """By default, do nothing."""


class HalfAFile(Place):
    def leave_half_done(self, *arguments: Any, **more: Any) -> None:
        self._real(*arguments, **more)
        path = Path(arguments[1])
        os.truncate(path, path.stat().st_size // 2)


class HalfALine(Place):
    def leave_half_done(self, *arguments: Any, **more: Any) -> None:
        self._real(*arguments, **more)
        path = arguments[0].path
        os.truncate(path, path.stat().st_size - 23)


class Done(Place):
    def leave_half_done(self, *arguments: Any, **more: Any) -> None:
        self._real(*arguments, **more)


class HalfAFolder(Place):
    def leave_half_done(self, *arguments: Any, **more: Any) -> None:
        sorted(Path(arguments[0]).iterdir())[0].unlink()


PLACES: dict[str, tuple[type[Place], Any, str]] = {
    "half of the weights or the optimiser": (HalfAFile, checkpoint, "save_file"),
    "checkpoint without its state": (Place, checkpoint, "write_json"),
    "complete but not in place": (Place, Path, "replace"),
    "checkpoint in place": (Done, checkpoint.CheckpointFolder, "save"),
    "before old ones are removed": (Place, checkpoint.CheckpointFolder, "_remove_old"),
    "an old one half removed": (HalfAFolder, shutil, "rmtree"),
    "half a line of metrics": (HalfALine, MetricsFile, "append"),
    "after a line of metrics": (Done, MetricsFile, "append"),
    "metrics cut": (Done, MetricsFile, "cut_after"),
    "before the best one's figures are kept": (Place, checkpoint.CheckpointFolder, "update_state"),
}


def run(job: dict[str, Any]) -> NoReturn:
    """Run the job in this process."""
    told = Path(job["told"]).open("a", encoding="utf-8")  # noqa: SIM115
    os.dup2(told.fileno(), 1)
    os.dup2(told.fileno(), 2)
    status = 70
    try:
        if job.get("place"):
            kind, owner, name = PLACES[job["place"]]
            kind(owner, name, job["call"])
        sys.argv = ["elmo-zh", *job["arguments"]]
        main()
    except SystemExit as ended:
        status = int(ended.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    for loop in (cells.loop_forward, cells.loop_backward, next_token_loss.score_row_chunks):
        scripted(loop)
    # Drawing the picture takes longer than training.
    train_run.can_draw = lambda: False
    for line in sys.stdin:
        child = os.fork()
        if not child:
            run(json.loads(line))
        sys.stdout.write(f"{child}\n")
        sys.stdout.flush()
        sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")
        sys.stdout.flush()
