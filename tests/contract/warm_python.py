"""Run Python programs in processes of their own that need not import torch first: they are forks of one that has.

Each ends as a process does, with everything that Python and its libraries do at the end.
"""

import json
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from contract.command_line import Answer

# The program of a command; its arguments are those of the program.
COMMAND = "from elmo_zh.cli import main; main()"


@dataclass
class Running:
    """A program that was started; its process id is its own until `wait` has returned."""

    process_id: int
    answers: IO[bytes]
    told: list[Path]

    def poll(self) -> int | None:
        return 0 if select.select([self.answers], [], [], 0)[0] else None

    def wait(self) -> Answer:
        """Return what it left behind when it has ended."""
        status = int(self.answers.readline())
        return Answer(status, *(path.read_text(encoding="utf-8") for path in self.told))


class WarmPython:
    """A process that has imported torch, and forks for each program; one runs at a time."""

    def __init__(self, process: "subprocess.Popen[bytes]", folder: Path) -> None:
        self._process, self._told = process, [folder / "stdout", folder / "stderr"]

    def start(self, program: str, *arguments: str | Path, cwd: Path) -> Running:
        jobs, answers = self._process.stdin, self._process.stdout
        assert jobs is not None
        assert answers is not None
        job = {
            "program": program,
            "arguments": [*map(str, arguments)],
            "cwd": str(cwd),
            "told": [*map(str, self._told)],
        }
        jobs.write(json.dumps(job).encode() + b"\n")
        return Running(int(answers.readline()), answers, self._told)

    def run(self, program: str, *arguments: str | Path, cwd: Path) -> Answer:
        return self.start(program, *arguments, cwd=cwd).wait()


@contextmanager
def warm_python(folder: Path) -> Iterator[WarmPython]:
    """Start the process, which keeps what programs print in a folder."""
    command, pipe = [sys.executable, Path(__file__).with_name("warm_server.py")], subprocess.PIPE
    # Without a buffer, so that `poll` sees each answer.
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, bufsize=0) as process:
        yield WarmPython(process, folder)
        assert process.stdin is not None
        process.stdin.close()
