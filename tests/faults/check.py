"""What a fault may leave behind, and what the same command must then make of it."""

import hashlib
import json
import re
import shutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from faults.commands import Command
from faults.layer import MET, Kind, Outcome, WarmProcess

# Times and memory differ between any two runs, and so do digests of files that hold them.
TIMES = (
    "started_at", "seconds", "modified_ns", "tokens_per_second", "elapsed_seconds", "trained_at", "training_seconds",
    "memory", "vectors_seconds",
)  # fmt: skip
TIMED_FILES = (
    "metrics.jsonl", "history.json", "model_card.md", "state.json", "task.json", "comparison.json", "comparison.md",
)  # fmt: skip
_TIMED = re.compile(rb"(?m)^\| (time|date) \|.*$|\d+\.\d+ minutes|(?<=\| )\d+\.\d\d \|$")
# Names that say of themselves that they are not finished.
UNFINISHED = re.compile(r"\.(unfinished|parts|lock)(/|$)|(^|/)\.lock$")
# Names drawn at random: of files that several workers may write at a time, and of those of safetensors.
_UNIQUE = re.compile(r"(?<=\.)[0-9a-f]{32}(?=\.)|(?<=/\.tmp)\w{6}$")

Contents = Mapping[str, str]


def contents(folder: Path) -> dict[str, str]:
    """Return what is in a folder: a digest of each file without times, by path; "folder" and the target of links."""
    found: dict[str, str] = {}
    for path in sorted(folder.rglob("*")):
        name = _UNIQUE.sub("UNIQUE", str(path.relative_to(folder)))
        if path.is_symlink():
            found[name] = f"link to {path.readlink()}"
        elif path.is_dir():
            found[name] = "folder"
        else:
            found[name] = hashlib.sha256(_without_times(path)).hexdigest()
    return found


def _without_times(path: Path) -> bytes:
    data = path.read_bytes()
    try:
        if path.suffix == ".json":
            record = json.loads(data)
            stripped = _strip(record)
            if stripped != record and isinstance(record, dict):
                stripped.pop("digest", None)  # of itself with its times
            return json.dumps(stripped).encode()
        if path.suffix == ".jsonl":
            return b"\n".join(json.dumps(_strip(json.loads(line))).encode() for line in data.splitlines())
    except ValueError:
        pass
    return _TIMED.sub(b"", data) if path.suffix == ".md" else data


def _strip(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {key: each for key, each in value.items() if key not in TIMES}
        return {key: _strip(each) for key, each in kept.items() if key.rpartition("/")[2] not in TIMED_FILES}
    return list(map(_strip, value)) if isinstance(value, list) else value


def _finished_names(found: Contents) -> Contents:
    return {name: content for name, content in found.items() if not UNFINISHED.search(name)}


def _innermost(place: str, depth: int) -> str:
    call, *lines = place.split(" ")
    return " ".join([call, *[line for line in lines if not line.startswith("cli/")][: depth or None]])


@dataclass
class Tally:
    points: Counter[str] = field(default_factory=Counter)  # faults, by kind
    results: Counter[str] = field(default_factory=Counter)  # points, by what the same command did afterwards
    states: int = 0  # different states of the folder that faults have left
    wrong: list[str] = field(default_factory=list)  # one line each


class Trial:
    def __init__(self, warm: WarmProcess, folder: Path, command: Command) -> None:
        self._warm, self._start, self.command = warm, folder / command.start, command
        self._before = contents(self._start)
        self.tally = Tally()
        self._restore()
        self.outcome = warm.run(command.arguments)
        assert self.outcome.status == 0, self.outcome.told
        self.after = contents(warm.folder)
        # By the state that a fault has left: what the same command makes of it.
        self._known: dict[str, str] = {}

    def _restore(self) -> None:
        shutil.rmtree(self._warm.folder)
        shutil.copytree(self._start, self._warm.folder, symlinks=True)

    def points(self, depth: int, tried: set[tuple[Kind, str]]) -> dict[Kind, list[int]]:
        """Return, for each kind of fault, the first and the last call from each place in the code, and add it to those
        that were tried, which are left out.

        Two places are the same if they have the same kind of call, and the `depth` innermost lines of elmo_zh besides
        its command line (0: all lines) are the same.
        """
        self._restore()
        calls = self._warm.calls(self.command.arguments)
        points = {}
        for kind, needs in MET.items():
            places = [(kind, _innermost(place, depth)) for need, place in calls if need in needs]
            numbered = [(at, place) for at, place in enumerate(places, start=1) if place not in tried]
            first, last = {place: at for at, place in reversed(numbered)}, {place: at for at, place in numbered}
            points[kind] = sorted({*first.values(), *last.values()})
            tried.update(places)
        return points

    def try_point(self, kind: Kind, at: int) -> bool:
        self._restore()
        outcome = self._warm.run(self.command.arguments, kind, at)
        left = contents(self._warm.folder)
        if not outcome.num_fired:
            if outcome.status or left != self.after:
                self.tally.wrong.append(f"{self._where(kind, at, outcome)}: no fault, but {self._difference(left)}")
            return False
        self.tally.points[kind.name] += 1
        for problem in (self._judge_message(kind, outcome, left), self._judge_names(left)):
            if problem:
                self.tally.wrong.append(f"{self._where(kind, at, outcome)}: {problem}")
        self._judge_again(left, self._where(kind, at, outcome))
        return True

    def _judge_again(self, left: Contents, where: str) -> None:
        """Run the same command on what was left, and count what came of it."""
        state = hashlib.sha256(json.dumps(left).encode()).hexdigest()
        if state not in self._known:
            self.tally.states += 1
            self._known[state] = self._do_again()
        result = self._known[state]
        if result.startswith("wrong"):
            self.tally.wrong.append(f"{where}: {result}")
        self.tally.results[result.partition(":")[0]] += 1

    def _where(self, kind: Kind, at: int, outcome: Outcome) -> str:
        path = Path(outcome.path).relative_to(self._warm.folder) if outcome.path else ""
        return f"{self.command.name}, {kind.name} at {at} ({outcome.call} {path})"

    def _judge_message(self, kind: Kind, outcome: Outcome, left: Contents) -> str:
        if kind == Kind.KILL:
            return "" if outcome.status == -9 else f"status {outcome.status}: {outcome.told}"
        if outcome.status == 0:
            return f"status 0, but {self._difference(left)}" if left != self.after else ""
        if not outcome.is_one_line:
            return f"status {outcome.status}, told: {outcome.told}"
        if kind == Kind.FULL and "full" not in outcome.errors[0]:
            return f"not told that the disk is full: {outcome.errors[0]}"
        return ""

    def _judge_names(self, left: Contents) -> str:
        """Return which files look finished and are not."""
        for name, content in left.items():
            if UNFINISHED.search(name) or content in (self._before.get(name), self.after.get(name)):
                continue
            if not self.command.is_progress(name):
                return f"{name} looks finished"
        return ""

    def _do_again(self) -> str:
        """Run the same command on what is there now; return what came of it."""
        outcome = self._warm.run(self.command.arguments)
        made = contents(self._warm.folder)
        if outcome.status == 0:
            return "same bytes" if made == self.after else f"wrong: status 0, but {self._difference(made)}"
        if not outcome.is_one_line:
            return f"wrong: again, status {outcome.status}: {outcome.told}"
        is_finished = _finished_names(made) == _finished_names(self.after)
        return f"{'already finished' if is_finished else 'one line'}: {outcome.errors[0]}"

    def _difference(self, found: Contents) -> str:
        names = [name for name in {**found, **self.after} if found.get(name) != self.after.get(name)]
        shown = [
            f"{'new' if name not in self.after else 'no' if name not in found else 'other'} {name}" for name in names
        ]
        return ", ".join(shown[:5])
