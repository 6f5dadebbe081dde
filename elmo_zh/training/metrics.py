"""Write and read metrics.jsonl, which has the figures from training steps and held-out evaluations."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmo_zh.errors import RunError
from elmo_zh.invocation import install_line
from elmo_zh.run.files import atomic_path, make_folder, remove, sync_file

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

_NO_CURVES = ("step", "tokens", "event", "heldout_set", "failed_step")


class MetricsFile:
    """One JSON object per line, appended during training, and the same figures as TensorBoard events if requested."""

    def __init__(self, path: Path, events: Path | None = None, *, is_used: bool = True) -> None:
        """Name the file and a folder for events; ranks other than 0 use neither.

        Raises RunError if TensorBoard is not installed.
        """
        self.path, self._events, self._is_used = path, events, is_used
        self._writer: SummaryWriter | None = None
        if events and importlib.util.find_spec("tensorboard") is None:
            raise RunError(
                "train.tensorboard = true requires the package tensorboard. Turn it off with --set"
                f" train.tensorboard=false, or install the package with: {install_line('tensorboard')}"
            )

    def append(self, **figures: Any) -> None:
        """Append one line with these figures."""
        if not self._is_used:
            return
        make_folder(self.path.parent)
        with self.path.open("a", encoding="utf-8", newline="\n") as file:
            file.write(json.dumps(figures) + "\n")
        self._write_events([figures])

    def sync(self) -> None:
        """Flush the lines to disk, before writing a checkpoint or a record that depends on them."""
        if self._is_used and self.path.exists():
            sync_file(self.path)

    def lines(self) -> list[dict[str, Any]]:
        """Return all complete lines, ignoring a last line that a killed process left unfinished."""
        if not (self._is_used and self.path.exists()):
            return []
        *complete, _ = self.path.read_bytes().split(b"\n")
        return [self._read(line, number) for number, line in enumerate(complete, start=1) if line]

    def _read(self, line: bytes, number: int) -> dict[str, Any]:
        try:
            figures = dict(json.loads(line))
            if isinstance(figures["step"], int):
                return figures
            problem = "step is not a number"
        except (ValueError, TypeError, KeyError) as error:
            problem = repr(error)
        raise RunError(
            f"{self.path}: line {number} is damaged ({problem}). Remove the line, and run the command again."
        )

    def cut_after(self, step: int) -> None:
        """Delete the lines for steps later than `step`, which will be trained again."""
        if self._is_used:
            self._replace([line for line in self.lines() if line["step"] <= step])

    def discard(self, **figures: Any) -> None:
        """Delete the lines that contain these figures, such as those written just before the process was killed."""
        lines = self.lines()
        kept = [line for line in lines if not figures.items() <= line.items()]
        if len(kept) < len(lines):
            self._replace(kept)

    def _replace(self, lines: Sequence[Mapping[str, Any]]) -> None:
        with atomic_path(self.path) as unfinished, unfinished.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
        # Single events cannot be removed from an event file, so all are written again.
        self._remove_events()
        self._write_events(lines)

    def remove(self) -> None:
        """Delete the file and the events if they exist."""
        if self._is_used:
            self.path.unlink(missing_ok=True)
            self._remove_events()

    def _write_events(self, lines: Sequence[Mapping[str, Any]]) -> None:
        """Add one point to the curve of each figure, over the training tokens."""
        for line in lines if self._events else ():
            section = f"heldout_{line['heldout_set']}" if "heldout_set" in line else "train"
            for name in (name for name in line if "tokens" in line and name not in _NO_CURVES):
                short = name.removeprefix("heldout_").removeprefix("train_")
                self._open_events().add_scalar(f"{section}/{short}", line[name], line["tokens"])
        if self._writer:
            self._writer.flush()

    def _open_events(self) -> SummaryWriter:
        if self._writer is None:
            from torch.utils.tensorboard import SummaryWriter

            self._writer = SummaryWriter(str(self._events))
        return self._writer

    def _remove_events(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        if self._events:
            remove(self._events)
