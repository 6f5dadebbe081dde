"""Fork for each program that a line on standard input describes in JSON, and run it in the fork: see warm_python.py."""

import gc
import importlib
import json
import os
import sys
from typing import Any


def next_program() -> dict[str, Any] | None:
    """Fork for each program; return it in the process that is to run it, and None at the end in this one."""
    jobs, answers = os.fdopen(os.dup(0), encoding="utf-8"), os.fdopen(os.dup(1), "w", encoding="utf-8")
    for line in jobs:
        child = os.fork()
        if not child:
            return dict(json.loads(line))
        answers.write(f"{child}\n")
        answers.flush()
        answers.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")
        answers.flush()
    return None


def become(program: dict[str, Any]) -> None:
    """Take the streams, the folder and the arguments of a program."""
    opened = [os.open(os.devnull, os.O_RDONLY)]
    opened += [os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) for path in program["told"]]
    for stream, number in enumerate(opened):
        os.dup2(number, stream)
        os.close(number)
    os.chdir(program["cwd"])
    sys.argv = ["-c", *program["arguments"]]


if __name__ == "__main__":
    # As for a program given with -c.
    sys.path[0] = ""
    # torch itself imports the last one for every training.
    for name in ("elmo_zh.embed.dump", "elmo_zh.training.train_run", "torch._dynamo"):
        importlib.import_module(name)
    # What is there now stays: looking through it for garbage would copy its memory in each fork.
    gc.freeze()
    if chosen := next_program():
        become(chosen)
        exec(chosen["program"], {"__name__": "__main__"})
