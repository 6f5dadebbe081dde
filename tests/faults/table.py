"""Try every command with a fault at every call, and print a table: `PYTHONPATH=.:tests python tests/faults/table.py`.

With `--every N` only every N-th call; names of commands choose some.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from faults.check import Tally, Trial
from faults.commands import COMMANDS, Command, prepare
from faults.layer import FAULTS, WarmProcess, warm_process

HEADINGS = (
    "command", "every", "calls that fail", "full disk", "killed", "states left", "same bytes", "already finished",
    "one line", "wrong",
)  # fmt: skip


def try_command(warm: WarmProcess, folder: Path, command: Command, every: int = 1) -> Tally:
    trial = Trial(warm, folder, command)
    for kind in FAULTS:
        at = every
        while trial.try_point(kind, at):
            at += every
    return trial.tally


def row(command: Command, every: int, tally: Tally) -> str:
    points = [tally.points[name] for name in (kind.name for kind in FAULTS)]
    results = [tally.results[name] for name in ("same bytes", "already finished", "one line")]
    return f"| {' | '.join([command.name, *map(str, [every, *points, tally.states, *results, len(tally.wrong)])])} |"


def tell(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commands", nargs="*")
    parser.add_argument("--every", type=int, default=1)
    chosen = parser.parse_args()
    tell(f"| {' | '.join(HEADINGS)} |\n|{'---|' * len(HEADINGS)}")
    names = chosen.commands or [command.name for command in COMMANDS]
    with tempfile.TemporaryDirectory() as made, warm_process(Path(made)) as warm:
        prepare(warm, Path(made), names)
        for command in COMMANDS:
            if command.can_run and command.name in names:
                tally = try_command(warm, Path(made), command, chosen.every)
                tell("\n".join([row(command, chosen.every, tally), *tally.wrong]))


if __name__ == "__main__":
    main()
