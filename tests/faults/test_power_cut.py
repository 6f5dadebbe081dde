"""What a power cut may leave of a command's work is never taken for finished."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from faults.check import Trial, contents
from faults.commands import COMMANDS, Command, prepare
from faults.layer import COMPILER, WarmProcess, warm_process
from faults.power_cut import Call, Disk, iter_calls

Warm = tuple[WarmProcess, Path]
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler for faults.c")
QUICK = ("vocab", "train", "embed packed", "index", "score")
# Commands that write nothing.
READERS = ("evaluate",)
WRITERS = [command for command in COMMANDS if command.name not in READERS]


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warm]:
    folder = tmp_path_factory.mktemp("power")
    with warm_process(folder) as process:
        prepare(process, folder)
        yield process, folder


def try_moments(warm: Warm, command: Command, num_moments: int, variants: int) -> None:
    trial = Trial(*warm, command)
    trial.try_power_cuts(warm[1] / "log", num_moments, variants, seed=7)
    assert not trial.tally.wrong, "\n".join(trial.tally.wrong)
    assert trial.tally.points.total() >= variants


@needs_compiler
@pytest.mark.parametrize("command", [each for each in WRITERS if each.name in QUICK], ids=lambda each: each.name)
def test_a_power_cut_at_some_moments(warm: Warm, command: Command) -> None:
    try_moments(warm, command, 3, 1)


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("command", WRITERS, ids=lambda each: each.name)
def test_a_power_cut_at_many_moments(warm: Warm, command: Command) -> None:
    if not command.can_run:
        pytest.skip(f"{command.needs} is not installed")
    try_moments(warm, command, 40, 3)


@needs_compiler
def test_the_recorded_calls_make_the_folder_that_the_command_made(warm: Warm) -> None:
    """Otherwise a call would be missing from the record."""
    process, folder = warm
    for command in WRITERS:
        if command.name in QUICK:
            trial = Trial(process, folder, command)
            assert trial.replayed(folder / "log") == trial.after


def call(name: str, inode: int, path: Path, *, other: str = "", first: int = 0, data: bytes = b"") -> Call:
    return Call(name, inode, first, len(data), path, other, data)


def outcomes(disk: Disk, folder: Path, start: Path) -> set[frozenset[tuple[str, bytes]]]:
    """Return every content that a disk may have after a power cut now, as found in a hundred tries."""
    found = set()
    for seed in range(100):
        made = folder / f"{seed}"
        disk.rebuild(made, random.Random(seed), start)
        found.add(frozenset((path.name, path.read_bytes()) for path in made.iterdir()))
    return found


def test_what_may_be_left_of_a_file_that_is_written_synced_and_renamed(tmp_path: Path) -> None:
    """Worked out by hand."""
    start = tmp_path / "start"
    start.mkdir()
    (start / "a").write_bytes(b"old")
    disk, inode, new = Disk(start), start.stat().st_ino, start / "a.unfinished"

    def left(*found: dict[str, bytes]) -> bool:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        return outcomes(disk, folder, start) == {frozenset(names.items()) for names in found}

    old = {"a": b"old"}
    empty, zeros, whole = ({**old, "a.unfinished": content} for content in (b"", b"\0\0\0", b"new"))
    disk.call(call("create", 1_000_001, new))
    assert left(old, empty)
    disk.call(call("write", 1_000_001, new, data=b"new"))
    assert left(old, empty, zeros, whole)
    disk.call(call("sync", 1_000_001, new))
    assert left(old, whole)
    disk.call(call("rename", 1_000_001, new, other=str(start / "a")))
    assert left(old, whole, {"a": b"new"})
    disk.call(call("sync", inode, start))
    assert left({"a": b"new"})
    disk.call(call("remove", 0, start / "a"))
    assert left({"a": b"new"}, {})


def test_without_syncing_a_renamed_file_may_be_empty(tmp_path: Path) -> None:
    start = tmp_path / "start"
    start.mkdir()
    disk, inode, new = Disk(start), start.stat().st_ino, start / "a.unfinished"
    disk.call(call("create", 1_000_001, new))
    disk.call(call("write", 1_000_001, new, data=b"new"))
    disk.call(call("rename", 1_000_001, new, other=str(start / "a")))
    disk.call(call("sync", inode, start))
    (tmp_path / "made").mkdir()
    found = outcomes(disk, tmp_path / "made", start)
    assert {frozenset({("a", content)}) for content in (b"", b"\0\0\0", b"new")} == found


@pytest.fixture(scope="module")
def training(warm: Warm) -> list[Call]:
    """The calls of a training, which keeps two checkpoints and removes the others."""
    process, folder = warm
    trial = Trial(process, folder, next(each for each in COMMANDS if each.name == "train"))
    trial.try_power_cuts(folder / "log", 0, 0, seed=7)
    return list(iter_calls(folder / "log"))


@needs_compiler
def test_no_folder_is_emptied_before_its_new_name_is_safe(training: list[Call]) -> None:
    """A power cut would leave a checkpoint without some of its files."""
    unsafe: set[Path] = set()
    num_folders = 0
    for each in training:
        if each.name == "rename" and each.path.name.startswith("step-") and each.other.endswith(".unfinished"):
            unsafe.add(Path(each.other))
            num_folders += 1
        elif each.name == "sync":
            unsafe -= {path for path in unsafe if path.parent == each.path}
        assert each.name != "remove" or each.path.parent not in unsafe, each.path
    assert num_folders > 1


@needs_compiler
def test_lines_of_metrics_are_safe_before_the_checkpoint_after_them(training: list[Call]) -> None:
    """They would be missing for good: training goes on after the checkpoint."""
    is_safe, num_checkpoints = True, 0
    for each in training:
        if each.path.name == "metrics.jsonl" and each.name in ("write", "sync"):
            is_safe = each.name == "sync"
        if each.name == "rename" and each.path.name.startswith("step-") and not each.other.endswith(".unfinished"):
            assert is_safe, each.other
            num_checkpoints += 1
    assert num_checkpoints > 2


@needs_compiler
def test_the_log_has_the_calls_of_a_command_in_order(warm: Warm) -> None:
    process, folder = warm
    trial = Trial(process, folder, next(each for each in COMMANDS if each.name == "vocab"))
    trial.try_power_cuts(folder / "log", 0, 0, seed=7)
    assert contents(process.folder) == trial.after
    names = [(each.name, each.path.name) for each in iter_calls(folder / "log")]
    made = names.index(("create", "vocab.data.unfinished"))
    synced, renamed = names.index(("sync", "vocab.data.unfinished")), names.index(("rename", "vocab.data.unfinished"))
    assert made < synced < renamed
    assert names[renamed + 1] == ("sync", "run")
