"""Every command survives every fault: run again it ends with the same bytes, or says in one line what is damaged."""

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from faults.check import Trial, contents
from faults.commands import COMMANDS, Command, prepare
from faults.layer import COMPILER, FAULTS, WarmProcess, warm_process
from faults.power_cut import Call, iter_calls
from faults.table import try_command

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler for faults.c")

Warm = tuple[WarmProcess, Path]

# Others run the same code, or run longer.
QUICK = (
    "segment", "vocab", "word2vec", "encode", "train", "export", "embed hdf5", "convert", "index", "score",
    "drift", "explore", "task predict", "task compare",
)  # fmt: skip
# Power cuts are tried with these.
CUT = ("vocab", "train", "embed packed", "score")
ALL = tuple(command.name for command in COMMANDS)
# The others write nothing.
WRITERS = tuple(name for name in ALL if name != "evaluate")
# Its stages are tried one by one: here a few of its thousands of calls.
EVERY = {"pipeline": 97}


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warm]:
    folder = tmp_path_factory.mktemp("faults")
    with warm_process(folder) as process:
        prepare(process, folder, {*QUICK, *CUT})
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


# Power cuts


def try_moments(warm: Warm, command: Command, num_moments: int, variants: int) -> None:
    trial = Trial(*warm, command)
    trial.try_power_cuts(warm[1] / "log", num_moments, variants, seed=7)
    assert not trial.tally.wrong, "\n".join(trial.tally.wrong)
    assert trial.tally.points.total() >= variants


@with_each(CUT)
def test_a_power_cut_at_some_moments(warm: Warm, command: Command) -> None:
    try_moments(warm, command, 3, 1)


@pytest.mark.slow
@with_each(WRITERS)
def test_a_power_cut_at_many_moments(warm: Warm, command: Command) -> None:
    try_moments(warm, command, 40, 3)


@with_each(("encode", "index"))
def test_the_recorded_calls_make_the_folder_that_the_command_made(warm: Warm, command: Command) -> None:
    """Otherwise a call would be missing from the record."""
    process, folder = warm
    trial = Trial(process, folder, command)
    assert trial.replayed(folder / "log") == trial.after


@pytest.fixture(scope="module")
def training(warm: Warm) -> list[Call]:
    """The calls of a training, which keeps two checkpoints and removes the others."""
    process, folder = warm
    trial = Trial(process, folder, next(each for each in COMMANDS if each.name == "train"))
    trial.try_power_cuts(folder / "log", 0, 0, seed=7)
    return list(iter_calls(folder / "log"))


def test_no_folder_is_emptied_before_its_new_name_is_safe(training: list[Call]) -> None:
    """A power cut would leave a checkpoint without some of its files."""
    unsafe: set[Path] = set()
    num_folders = 0
    for call in training:
        if call.name == "rename" and call.path.name.startswith("step-") and call.other.endswith(".unfinished"):
            unsafe.add(Path(call.other))
            num_folders += 1
        elif call.name == "sync":
            unsafe -= {path for path in unsafe if path.parent == call.path}
        assert call.name != "remove" or call.path.parent not in unsafe, call.path
    assert num_folders > 1


def test_lines_of_metrics_are_safe_before_the_checkpoint_after_them(training: list[Call]) -> None:
    """They would be missing for good: training goes on after the checkpoint."""
    is_safe, num_checkpoints = True, 0
    for call in training:
        if call.path.name == "metrics.jsonl" and call.name in ("write", "sync"):
            is_safe = call.name == "sync"
        if call.name == "rename" and Path(call.other).name == "train.json":
            assert is_safe, "the record says that they are there"
        if call.name == "rename" and call.path.name.startswith("step-") and not call.other.endswith(".unfinished"):
            assert is_safe, call.other
            num_checkpoints += 1
    assert num_checkpoints > 2


def test_the_log_has_the_calls_of_a_command_in_order(warm: Warm) -> None:
    process, folder = warm
    trial = Trial(process, folder, next(each for each in COMMANDS if each.name == "vocab"))
    trial.try_power_cuts(folder / "log", 0, 0, seed=7)
    assert contents(process.folder) == trial.after
    names = [(call.name, re.sub(r"\.[0-9a-f]{32}", "", call.path.name)) for call in iter_calls(folder / "log")]
    made = names.index(("create", "vocab.data.unfinished"))
    synced, renamed = names.index(("sync", "vocab.data.unfinished")), names.index(("rename", "vocab.data.unfinished"))
    assert made < synced < renamed
    assert names[renamed + 1] == ("sync", "run")
