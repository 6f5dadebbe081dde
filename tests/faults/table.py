"""Try every command with faults, and print a table: `PYTHONPATH=.:tests python tests/faults/table.py`.

It injects a fault of each kind at the first and the last call from each place in the code. Places are told apart by the
lines that led to them; with `--depth N` by the N innermost. Names of commands choose some.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from faults.check import Trial
from faults.commands import COMMANDS, prepare
from faults.layer import FAULTS, Kind, warm_process

HEADINGS = (
    "command", "calls", "calls that fail", "full disk", "killed", "states left", "same bytes", "already finished",
    "one line", "wrong",
)  # fmt: skip


def row(trial: Trial) -> str:
    tally, names = trial.tally, [kind.name for kind in FAULTS]
    num_calls = sum(map(trial.outcome.num_points, FAULTS))
    results = [tally.results[name] for name in ("same bytes", "already finished", "one line")]
    figures = [num_calls, *(tally.points[name] for name in names), tally.states, *results, len(tally.wrong)]
    return f"| {' | '.join([trial.command.name, *map(str, figures)])} |"


def tell(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commands", nargs="*")
    parser.add_argument("--depth", type=int, default=0)
    chosen = parser.parse_args()
    tell(f"| {' | '.join(HEADINGS)} |\n|{'---|' * len(HEADINGS)}")
    tried: set[tuple[Kind, str]] = set()
    names = chosen.commands or [command.name for command in COMMANDS]
    with tempfile.TemporaryDirectory() as made, warm_process(Path(made)) as warm:
        prepare(warm, Path(made), names)
        for command in COMMANDS:
            if command.can_run and command.name in names:
                trial = Trial(warm, Path(made), command)
                for kind, points in trial.points(chosen.depth, tried).items():
                    for at in points:
                        trial.try_point(kind, at)
                tell("\n".join([row(trial), *trial.tally.wrong]))


if __name__ == "__main__":
    main()
