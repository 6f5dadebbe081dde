"""Commands survive faults: run again they end with the same bytes, or say what is damaged; table.py tries all calls."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from faults.check import Trial
from faults.commands import COMMANDS, Command, prepare
from faults.layer import COMPILER, FAULTS, WarmProcess, warm_process

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler for faults.c")

Warm = tuple[WarmProcess, Path]

# Others run the same code, or run longer.
QUICK = (
    "segment", "vocab", "word2vec", "encode", "train", "export", "embed hdf5", "convert", "index", "score",
    "drift", "explore", "task predict", "task compare",
)  # fmt: skip


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warm]:
    folder = tmp_path_factory.mktemp("faults")
    with warm_process(folder) as process:
        prepare(process, folder, QUICK)
        yield process, folder


def parameter(command: Command) -> Any:
    reason = f"{command.needs} is not installed"
    return pytest.param(command, id=command.name, marks=pytest.mark.skipif(not command.can_run, reason=reason))


@pytest.mark.parametrize("command", [parameter(command) for command in COMMANDS if command.name in QUICK])
def test_one_fault_of_each_kind(warm: Warm, command: Command) -> None:
    """A call of each command, drawn at random and always the same."""
    trial, chance = Trial(*warm, command), random.Random(command.name)
    for kind in FAULTS:
        assert trial.try_point(kind, chance.randint(1, trial.outcome.num_points(kind)))
    assert not trial.tally.wrong, "\n".join(trial.tally.wrong)
    assert trial.tally.points.total() == trial.tally.results.total() == len(FAULTS)
