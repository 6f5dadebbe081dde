"""Write and read metrics.jsonl, which has the figures from training steps and held-out evaluations."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from elmo_zh.errors import RunError
from elmo_zh.invocation import install_line
from elmo_zh.language import _
from elmo_zh.run.files import atomic_path, make_folder, remove, sync_file

_NO_CURVES = ("step", "tokens", "event", "heldout_set", "failed_step")


class MetricsFile:
    """One JSON object per line, appended during training, and the same figures as TensorBoard events if requested."""

    def __init__(self, path: Path, events: Path | None = None, *, is_used: bool = True) -> None:
        """Name the file and a folder for events; ranks other than 0 use neither.

        Raises RunError if TensorBoard is not installed.
        """
        self.path, self._events, self._is_used = path, events, is_used
        if events and importlib.util.find_spec("tensorboard") is None:
            message = _("train.tensorboard = true needs the package tensorboard. Install it with: {command}")
            raise RunError(message.format(command=install_line("tensorboard")))

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
            self._write_events()

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
        message = _("{path}: line {number} is damaged ({problem}). Remove the line, and run the command again.")
        raise RunError(message.format(path=self.path, number=number, problem=problem))

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
        self._write_events()

    def remove(self) -> None:
        """Delete the file and the events if they exist."""
        if self._is_used:
            self.path.unlink(missing_ok=True)
            if self._events:
                remove(self._events)

    def _write_events(self) -> None:
        """Write all lines as TensorBoard events again, one point on the curve of each figure over the tokens."""
        if not self._events:
            return
        from torch.utils.tensorboard import SummaryWriter

        remove(self._events)
        with SummaryWriter(str(self._events)) as writer:
            for line in self.lines():
                section = f"heldout_{line['heldout_set']}" if "heldout_set" in line else "train"
                for name in (name for name in line if "tokens" in line and name not in _NO_CURVES):
                    short = name.removeprefix("heldout_").removeprefix("train_")
                    writer.add_scalar(f"{section}/{short}", line[name], line["tokens"])
