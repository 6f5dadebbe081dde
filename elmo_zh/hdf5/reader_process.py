"""The process in which foreign HDF5 files are read: it waits for files, and reads each in a copy of itself with limits.

A file that makes the HDF5 library crash, allocate or loop ends the copy, and nothing else. torch is not imported here.
"""

import importlib
import io
import json
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Any, BinaryIO

# Imported before the first file is there, so that each copy has them already: h5py and NumPy.
from elmo_zh.errors import ElmoZhError
from elmo_zh.hdf5 import readers as readers
from elmo_zh.hdf5.foreign import CRASHED, MOST_BYTES, TOO_SLOW
from elmo_zh.hdf5.messages import Message, write_message

try:
    import resource
except ImportError:  # not a Unix: without limits on memory
    resource = None  # type: ignore[assignment]

# A process that has nothing to do ends after this time, by SIGALRM.
_IDLE_SECONDS = 10
_MOST_OPEN_FILES = 64
_CAN_FORK = hasattr(os, "fork")
# Exceptions that h5py raises for damaged files.
_DAMAGE = (OSError, RuntimeError, LookupError, ValueError, TypeError, AttributeError, ArithmeticError, SystemError)


def serve() -> None:
    """Read the files that standard input names, until it is closed or none has come for a while."""
    answers = io.BufferedWriter(io.FileIO(1, "wb", closefd=False))
    while request := _next_request():
        # Imported here, so that each copy has it already.
        importlib.import_module(request["module"])
        if not _CAN_FORK:
            _answer(request, answers)
            return
        process = os.fork()
        if process == 0:
            _answer_as_copy(request, answers)
        _, status = os.waitpid(process, 0)
        if status:
            is_late = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM
            raise SystemExit(TOO_SLOW if is_late else CRASHED)


def _next_request() -> dict[str, Any] | None:
    _set_alarm(_IDLE_SECONDS)
    line = sys.stdin.buffer.readline()
    _set_alarm(0)
    return json.loads(line) if line else None


def _answer_as_copy(request: dict[str, Any], answers: BinaryIO) -> None:
    """Answer and end; this is the copy, which must never return to the loop."""
    status = 1
    try:
        # The C library writes there as it crashes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        _limit()
        _answer(request, answers)
        status = 0
    finally:
        os._exit(status)


def _limit() -> None:
    if resource is None:
        return
    for limit, value in (
        (resource.RLIMIT_AS, MOST_BYTES),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, _MOST_OPEN_FILES),
    ):
        _, hard = resource.getrlimit(limit)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(limit, (value, value))


def _answer(request: dict[str, Any], answers: BinaryIO) -> None:
    """Write the messages of the reader that is asked for, then how it ended."""
    path, seconds = Path(request["path"]), request["seconds"]
    try:
        os.chdir(request["folder"])
        reader = getattr(importlib.import_module(request["module"]), request["function"])
        _set_alarm(seconds)
        for message in reader(path, **request["arguments"]):
            _set_alarm(0)
            write_message(answers, message)
            _set_alarm(seconds)
        _set_alarm(0)
        end: dict[str, Any] = {"end": "done"}
    except ElmoZhError as error:
        end = {"end": "refused", "error": type(error).__name__, "messages": error.messages}
    except MemoryError:
        end = {"end": "too large"}
    except BrokenPipeError:
        raise
    except _DAMAGE as error:
        end = {"end": "damaged", "problem": " ".join(str(error).split())[:500]}
    except Exception:
        end = {"end": "failed", "problem": traceback.format_exc()}
    write_message(answers, Message(end))


def _set_alarm(seconds: float) -> None:
    """Let the kernel end this process after some time, whatever it does then; 0 for never."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)
