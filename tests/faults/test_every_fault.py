"""Every command survives every fault: run again it ends with the same bytes, or says in one line what is damaged."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from faults.check import Trial
from faults.commands import COMMANDS, Command, prepare
from faults.layer import COMPILER, FAULTS, WarmProcess, warm_process
from faults.table import try_command

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler for faults.c")

Warm = tuple[WarmProcess, Path]

# Others run the same code, or run longer.
QUICK = (
    "segment", "vocab", "word2vec", "encode", "train", "export", "embed hdf5", "convert", "index", "score",
    "drift", "explore", "task predict", "task compare",
)  # fmt: skip
ALL = tuple(command.name for command in COMMANDS)
# Its stages are tried one by one: here a few of its thousands of calls.
EVERY = {"pipeline": 97}


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warm]:
    folder = tmp_path_factory.mktemp("faults")
    with warm_process(folder) as process:
        prepare(process, folder, QUICK)
        yield process, folder


def with_each(names: tuple[str, ...]) -> pytest.MarkDecorator:
    """Parametrize a test with the commands of these names."""
    return pytest.mark.parametrize("command", [each(command) for command in COMMANDS if command.name in names])


def each(command: Command) -> Any:
    reason = f"{command.needs} is not installed"
    return pytest.param(command, id=command.name, marks=pytest.mark.skipif(not command.can_run, reason=reason))


@with_each(QUICK)
def test_one_fault_of_each_kind(warm: Warm, command: Command) -> None:
    """A call of each command, drawn at random and always the same."""
    trial, chance = Trial(*warm, command), random.Random(command.name)
    for kind in FAULTS:
        assert trial.try_point(kind, chance.randint(1, trial.outcome.num_points(kind)))
    assert not trial.tally.wrong, "\n".join(trial.tally.wrong)
    assert trial.tally.points.total() == trial.tally.results.total() == len(FAULTS)


@pytest.mark.slow
@with_each(ALL)
def test_a_fault_at_every_call(warm: Warm, command: Command) -> None:
    tally = try_command(*warm, command, EVERY.get(command.name, 1))
    assert not tally.wrong, "\n".join(tally.wrong)
    assert tally.points.total() > 20
