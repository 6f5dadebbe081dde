"""Run commands with faults: `LD_PRELOAD=faults.so python warm_process.py`, one job as a JSON line after another.

Each command runs in a process that is forked from this one, which has imported everything and compiled the model's
loops, so that it takes a fraction of a second. A job with "here" runs in this process and so warms it up. Answers each
job with one JSON line.
"""

import ctypes
import gc
import json
import os
import signal
import sys
import traceback
from functools import partial
from pathlib import Path
from typing import Any

# A command that waits for ever is ended by a signal, which counts as wrong.
SECONDS_UNTIL_HUNG = 600


class State(ctypes.Structure):
    """What faults.c counts, in memory that the forked process shares."""

    _fields_ = (
        ("num_met", ctypes.c_long * 4),
        ("num_calls", ctypes.c_long),
        ("num_fired", ctypes.c_long),
        ("call", ctypes.c_char * 24),
        ("path", ctypes.c_char * 4096),
    )


def run_command(arguments: list[str]) -> int:
    from elmo_zh.cli import main

    sys.argv = ["elmo-zh", *arguments]
    try:
        main()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 1
    except BaseException:
        traceback.print_exc()
    return 70


def make_small() -> None:
    """Let small inputs have several shards, parts and windows, as large ones do."""
    from elmo_zh.contexts import build_index, score_texts
    from elmo_zh.embed import dump
    from elmo_zh.segmenting import segment_corpus
    from elmo_zh.text import sentences
    from elmo_zh.training import train_run

    segment_corpus._LEAST_SHARD_BYTES = 3001
    for module, name in ((dump, "DumpJob"), (build_index, "IndexJob"), (score_texts, "ScoreJob")):
        setattr(module, name, partial(getattr(module, name), part_lines=3))
    sentences.WINDOW_ITEMS = 7
    # Drawing the picture takes longer than training.
    train_run.can_draw = lambda: False


def run_here(job: dict[str, Any]) -> int:
    """Run the job in this process, with what it prints in a file."""
    make_small()
    kept = [os.dup(number) for number in (1, 2)]
    redirect(job["told"])
    os.chdir(job["folder"])
    status = run_command(job["arguments"])
    sys.stdout.flush()
    for number, stream in enumerate(kept, start=1):
        os.dup2(stream, number)
        os.close(stream)
    gc.collect()
    # What is there now stays: looking through it for garbage would copy its memory in each fork.
    gc.freeze()
    return status


def run_forked(job: dict[str, Any], library: ctypes.CDLL) -> int:
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    redirect(job["told"])
    os.chdir(job["folder"])
    signal.alarm(SECONDS_UNTIL_HUNG)
    calls: list[tuple[int, str]] = []
    watch = Watch(lambda call, need: calls.append((need, f"{call.decode()} {place()}")))
    if job["places"]:
        library.faults_watch(watch)
    library.faults_arm(os.fsencode(job["folder"]), job["kind"], job["at"])
    status = run_command(job["arguments"])
    sys.stdout.flush()
    sys.stderr.flush()
    if job["places"]:
        Path(job["places"]).write_text(json.dumps(calls), encoding="utf-8")
    os._exit(status)


Watch = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_int)


def place() -> str:
    """Return the lines of elmo_zh through which the running thread came here, from the inside."""
    lines, frame = [], sys._getframe()
    while frame is not None:
        _, package, name = frame.f_code.co_filename.rpartition("/elmo_zh/")
        if package:
            lines.append(f"{name}:{frame.f_lineno}")
        frame = frame.f_back
    return " ".join(lines)


def redirect(told: str) -> None:
    """Send both streams of messages to a file, and read nothing."""
    opened = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, source in ((0, nothing), (1, opened), (2, opened)):
        os.dup2(source, number)
    os.close(opened)
    os.close(nothing)


def main() -> None:
    library = ctypes.CDLL(os.environ.pop("LD_PRELOAD"))
    library.faults_arm.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_long]
    library.faults_state.restype = ctypes.POINTER(State)
    state = library.faults_state().contents
    # Jobs come and answers go by copies: commands have the streams for themselves.
    jobs, answers = os.fdopen(os.dup(0), encoding="utf-8"), os.fdopen(os.dup(1), "w", encoding="utf-8")
    for line in jobs:
        job = json.loads(line)
        library.faults_reset()
        status = run_here(job) if job["here"] else run_forked(job, library)
        answer = {
            "status": status,
            "told": Path(job["told"]).read_text(encoding="utf-8", errors="replace"),
            "num_met": list(state.num_met),
            "num_fired": state.num_fired,
            "call": state.call.decode(),
            "path": os.fsdecode(state.path),
        }
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
