"""Commands whose n-th call of the system fails, or kills the process: see faults.c."""

import enum
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
COMPILER = shutil.which("gcc") or shutil.which("cc")


class Kind(enum.IntEnum):
    """What happens at the chosen call; the numbers are those of faults.c."""

    COUNT = 0
    FAIL = 1
    FULL = 2
    KILL = 3


FAULTS = (Kind.FAIL, Kind.FULL, Kind.KILL)
# What the calls do that a fault of a kind can meet, by the numbers of faults.c: read, force to disk, change something
# without and with a need of space.
MET = {Kind.FAIL: (0, 1, 2, 3), Kind.FULL: (1, 3), Kind.KILL: (2, 3)}


@dataclass(frozen=True)
class Outcome:
    """How a command ended, and the first call that met the fault, with its file or folder."""

    status: int  # negative for a signal
    told: str
    num_met: list[int]  # calls by what they do, as in MET
    num_fired: int  # faults met; 0 if the command made fewer calls
    call: str
    path: str

    def num_points(self, kind: Kind) -> int:
        """Return how many of its calls a fault of a kind can meet."""
        return sum(self.num_met[need] for need in MET[kind])

    @property
    def errors(self) -> list[str]:
        """The lines that tell of a known problem."""
        return [line for line in self.told.splitlines() if line.startswith("Error: ")]

    @property
    def is_one_line(self) -> bool:
        """Whether the command ended with one known problem, told in one line and nothing else."""
        clean = "Traceback" not in self.told and "Exception ignored" not in self.told
        return self.status == 1 and len(self.errors) == 1 and clean


class WarmProcess:
    """Runs commands in forks of a process that has imported everything; faults happen below its folder only."""

    def __init__(self, process: "subprocess.Popen[str]", folder: Path) -> None:
        self._process, self.folder = process, folder

    def run(
        self,
        arguments: Sequence[str],
        kind: Kind = Kind.COUNT,
        at: int = 0,
        *,
        here: Path | None = None,
        places: Path | None = None,
    ) -> Outcome:
        """Run a command, with a fault at a call numbered from 1; in `here` without a fork, to warm the process up.

        With `places`, write there what each call does and its place in the code.
        """
        told = self.folder.with_name("told.txt")
        job = {
            "arguments": list(arguments), "folder": str(here or self.folder), "told": str(told), "kind": int(kind),
            "at": at, "here": here is not None, "places": str(places or ""),
        }  # fmt: skip
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        return Outcome(**json.loads(self._process.stdout.readline()))

    def calls(self, arguments: Sequence[str]) -> list[tuple[int, str]]:
        """Return what each call of a command does, and its place: the kind of call and the lines that led to it."""
        path = self.folder.with_name("places.json")
        self.run(arguments, places=path)
        return [(need, place) for need, place in json.loads(path.read_text(encoding="utf-8"))]


def compile_library(folder: Path) -> Path:
    """Compile faults.c into a folder, and return the library."""
    library = folder / "faults.so"
    assert COMPILER is not None
    flags = ("-Wall", "-Wextra", "-Werror", "-O1", "-fno-builtin", "-shared", "-fPIC")
    subprocess.run([COMPILER, *flags, "-o", library, HERE / "faults.c", "-ldl", "-lpthread"], check=True)
    return library


@contextmanager
def warm_process(folder: Path) -> Iterator[WarmProcess]:
    """Start a process that runs commands in the folder `work` of a folder.

    Python keeps its hash seed, and torch one thread, so that the same command makes the same calls.
    """
    work = folder / "work"
    work.mkdir()
    library = compile_library(folder)
    environment = {**os.environ, "LD_PRELOAD": str(library), "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    environment.pop("ELMO_ZH_MODEL", None)
    command = [sys.executable, "-W", "ignore", str(HERE / "warm_process.py")]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, encoding="utf-8", env=environment) as process:
        try:
            yield WarmProcess(process, work)
        finally:
            assert process.stdin is not None
            process.stdin.close()
