"""Checkpoints without pickle, from which training resumes, and metrics.jsonl.

A checkpoint is a folder `step-00001200` with `model.safetensors`, `optimizer.safetensors` and `state.json`.
"""

import functools
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import msgspec
import torch
from msgspec import Struct
from safetensors import SafetensorError
from torch import Tensor

from elmo_zh.bundle.weights import load_tensors, save_tensors
from elmo_zh.errors import RunError
from elmo_zh.run.files import UNFINISHED, atomic_path, make_folder, read_json, remove, sync_file, write_json
from elmo_zh.training.distributed import SINGLE_PROCESS, ProcessGroup

CHECKPOINT_FORMAT = 1


class _State(Struct):
    """The values that training and export need from every state.json, with their types."""

    step: int
    tokens: int
    interrupted: bool
    model: dict[str, Any]
    streams: dict[str, Any]
    elapsed_seconds: float
    heldout_sample: dict[str, float] | None = None
    heldout_full: dict[str, float] | None = None


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """The contents of a checkpoint."""

    state: Mapping[str, Any]  # JSON values: step, position in the streams, held-out figures, description of the model
    model: Mapping[str, Tensor]  # Parameters by name
    optimizer: Mapping[str, Tensor]  # Optimiser state and carried LSTM states by name


Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def _on_rank_0(
    method: Callable[Concatenate["CheckpointFolder", Arguments], Result],
) -> Callable[Concatenate["CheckpointFolder", Arguments], Result]:
    """Run a method only on rank 0, but return its result on all ranks, which must all call it in the same order."""

    @functools.wraps(method)
    def run(folder: "CheckpointFolder", /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        alone = CheckpointFolder(folder.path, folder.num_kept)
        return folder.group.on_rank_0(lambda: method(alone, *args, **kwargs))

    return run


class CheckpointFolder:
    """The checkpoints of a run: the last few scheduled ones, the best one, and one saved when interrupted."""

    def __init__(self, path: Path, num_kept: int = 2, group: ProcessGroup = SINGLE_PROCESS) -> None:
        self.path, self.num_kept, self.group = path, num_kept, group

    @_on_rank_0
    def save(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint atomically, then delete those that are no longer needed."""
        with atomic_path(self.folder(checkpoint.state["step"])) as unfinished:
            unfinished.mkdir()
            save_tensors(checkpoint.model, unfinished / "model.safetensors")
            save_tensors(checkpoint.optimizer, unfinished / "optimizer.safetensors")
            write_json(unfinished / "state.json", {"format": CHECKPOINT_FORMAT, **checkpoint.state})
        self._remove_old()

    def _remove_old(self) -> None:
        for left_over in self.path.glob(f"*{UNFINISHED}"):
            remove(left_over)
        steps = self.steps()
        keep = {*self.regular_steps()[-self.num_kept :], self.best_step(), steps[-1]}
        for step in steps:
            if step not in keep:
                remove(self.folder(step))

    @_on_rank_0
    def steps(self) -> list[int]:
        """Return the steps of the checkpoints in ascending order."""
        names = (path.name.removeprefix("step-") for path in self.path.glob("step-*"))
        return sorted(int(name) for name in names if name.isdecimal())

    @_on_rank_0
    def regular_steps(self) -> list[int]:
        """Return the steps of the scheduled checkpoints, without any saved because of an interruption."""
        return [step for step in self.steps() if not self.state(step)["interrupted"]]

    @_on_rank_0
    def best_step(self) -> int | None:
        """Return the step with the lowest perplexity on the latest held-out sample; ties go to the later step.

        A checkpoint saved because of an interruption counts only while it is the last one. Without held-out figures,
        return None.
        """
        states = {step: self.state(step) for step in self.steps()}
        rated = {
            step: state["heldout_sample"]
            for step, state in states.items()
            if state.get("heldout_sample") and (not state["interrupted"] or step == max(states))
        }
        if not rated:
            return None
        size = rated[max(rated)]["num_predictions"]
        comparable = (step for step, heldout in rated.items() if heldout["num_predictions"] == size)
        return min(comparable, key=lambda step: (rated[step]["perplexity"], -step))

    def folder(self, step: int) -> Path:
        """Return the path of a checkpoint."""
        return self.path / f"step-{step:08d}"

    def files(self, step: int) -> list[Path]:
        """Return the files with the weights and the figures of a checkpoint."""
        return [self.folder(step) / name for name in ("model.safetensors", "state.json")]

    @_on_rank_0
    def state(self, step: int) -> dict[str, Any]:
        """Return the values in a checkpoint's state.json; raise RunError if it is damaged or has another format."""
        path = self.folder(step) / "state.json"
        try:
            state: dict[str, Any] = read_json(path, dict[str, Any])
            if state.get("format") == CHECKPOINT_FORMAT:
                msgspec.convert(state, _State)
        except (OSError, ValueError) as error:
            raise RunError.unusable(path.parent, f"{path.name}: {error}") from None
        if state.get("format") != CHECKPOINT_FORMAT:
            raise RunError.of_format(path, state.get("format"))
        return state

    @_on_rank_0
    def update_state(self, step: int, values: Mapping[str, Any]) -> None:
        """Add values to a checkpoint's state.json, replacing any that have the same name."""
        write_json(self.folder(step) / "state.json", {**self.state(step), **values})

    def load(self, step: int, *, with_optimizer: bool = True) -> Checkpoint:
        """Load a checkpoint on rank 0 and send it to all ranks, with or without the tensors for further training."""
        loaded: list[Checkpoint] = []

        def read() -> dict[str, Any]:
            checkpoint = self._read(step, with_optimizer=with_optimizer)
            loaded.append(checkpoint)
            layouts = {"model": _layout(checkpoint.model), "optimizer": _layout(checkpoint.optimizer)}
            return {"state": checkpoint.state, **layouts}

        values = self.group.on_rank_0(read)
        if not loaded:
            model, optimizer = _empty(values["model"]), _empty(values["optimizer"])
            loaded.append(Checkpoint(state=values["state"], model=model, optimizer=optimizer))
        [checkpoint] = loaded
        self.group.broadcast([*checkpoint.model.values(), *checkpoint.optimizer.values()])
        return checkpoint

    def _read(self, step: int, *, with_optimizer: bool) -> Checkpoint:
        tensors: dict[str, Mapping[str, Tensor]] = {"optimizer": {}}
        for name in ("model", "optimizer") if with_optimizer else ("model",):
            path = self.folder(step) / f"{name}.safetensors"
            try:
                tensors[name] = load_tensors(path)
            except (SafetensorError, FileNotFoundError) as error:
                raise RunError.unusable(path.parent, f"{path.name}: {error}") from None
        state = CheckpointFolder(self.path).state(step)
        return Checkpoint(state=state, model=tensors["model"], optimizer=tensors["optimizer"])


# Name of each tensor to its dtype and shape.
_Layout = Mapping[str, tuple[str, list[int]]]


def _layout(tensors: Mapping[str, Tensor]) -> _Layout:
    return {name: (str(tensor.dtype).removeprefix("torch."), list(tensor.shape)) for name, tensor in tensors.items()}


def _empty(layout: _Layout) -> dict[str, Tensor]:
    return {name: torch.empty(shape, dtype=getattr(torch, dtype)) for name, (dtype, shape) in layout.items()}


class MetricsFile:
    """metrics.jsonl: one JSON object per line, appended during training; ranks other than 0 do not use it."""

    def __init__(self, path: Path, *, is_used: bool = True) -> None:
        self.path, self._is_used = path, is_used

    def append(self, **figures: Any) -> None:
        """Append one line with these figures."""
        if not self._is_used:
            return
        make_folder(self.path.parent)
        with self.path.open("a", encoding="utf-8", newline="\n") as file:
            file.write(json.dumps(figures) + "\n")

    def sync(self) -> None:
        """Flush the lines to disk, before writing a checkpoint or a record that depends on them."""
        if self._is_used and self.path.exists():
            sync_file(self.path)

    def lines(self) -> list[dict[str, Any]]:
        """Return all complete lines, without an unfinished last one; raise RunError if a complete line is damaged."""
        if not (self._is_used and self.path.exists()):
            return []
        *complete, __ = self.path.read_bytes().split(b"\n")
        lines: list[dict[str, Any]] = []
        for number, line in enumerate(complete, start=1):
            try:
                figures: dict[str, Any] = dict(json.loads(line))
                if not isinstance(figures["step"], int):
                    raise TypeError("step is not a number")
            except (ValueError, TypeError, KeyError) as error:
                raise RunError.unusable(f"{self.path}:{number}", f"line {number}: {error!r}") from None
            lines.append(figures)
        return lines

    def cut_after(self, step: int) -> None:
        """Delete the lines for steps later than `step`, which will be trained again."""
        self._keep(lambda line: line["step"] <= step)

    def discard(self, **figures: Any) -> None:
        """Delete the lines that contain these figures, such as those written just before the process was killed."""
        self._keep(lambda line: not figures.items() <= line.items())

    def _keep(self, is_kept: Callable[[Mapping[str, Any]], bool]) -> None:
        if not (self._is_used and self.path.exists()):
            return
        lines = filter(is_kept, self.lines())
        with atomic_path(self.path) as unfinished, unfinished.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
