"""Write and read metrics.jsonl, which has the figures from training steps and held-out evaluations."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmo_zh.errors import RunError
from elmo_zh.invocation import install_line
from elmo_zh.run.files import atomic_path, make_folder, remove, sync_file

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter


class MetricsFile:
    """One JSON object per line, appended during training; ranks other than 0 neither read nor write it."""

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
        """Return all complete lines, ignoring a last line that a killed process left unfinished."""
        if not (self._is_used and self.path.exists()):
            return []
        *complete, _ = self.path.read_bytes().split(b"\n")
        return [self._read(line, number) for number, line in enumerate(complete, start=1) if line]

    def _read(self, line: bytes, number: int) -> dict[str, Any]:
        try:
            figures = json.loads(line.decode("utf-8"))
        except ValueError as error:
            problem = str(error)
        else:
            if isinstance(figures, dict) and isinstance(figures.get("step"), int):
                return figures
            problem = "not an object with a step"
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

    def _replace(self, lines: list[dict[str, Any]]) -> None:
        with atomic_path(self.path) as unfinished, unfinished.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)

    def remove(self) -> None:
        """Delete the file if it exists."""
        if self._is_used:
            self.path.unlink(missing_ok=True)


_NO_CURVES = ("step", "tokens", "event", "heldout_set", "failed_step")


class MetricsWithEvents(MetricsFile):
    """A `MetricsFile` that also writes TensorBoard event files, with one curve per figure over the training tokens."""

    def __init__(self, path: Path, folder: Path) -> None:
        """Raise RunError if TensorBoard is not installed."""
        super().__init__(path)
        self._folder = folder
        self._open: SummaryWriter | None = None
        if importlib.util.find_spec("tensorboard") is None:
            raise RunError(
                "train.tensorboard = true requires the package tensorboard. Turn it off with --set"
                f" train.tensorboard=false, or install the package with: {install_line('tensorboard')}"
            )

    def append(self, **figures: Any) -> None:
        """Append one line, and write its figures as TensorBoard events."""
        super().append(**figures)
        if "tokens" not in figures:
            return
        section = f"heldout_{figures['heldout_set']}" if "heldout_set" in figures else "train"
        for name, value in figures.items():
            if name not in _NO_CURVES:
                short = name.removeprefix("heldout_").removeprefix("train_")
                self._writer().add_scalar(f"{section}/{short}", value, figures["tokens"])
        self._writer().flush()

    def _writer(self) -> SummaryWriter:
        if self._open is None:
            from torch.utils.tensorboard import SummaryWriter

            self._open = SummaryWriter(str(self._folder))
        return self._open

    def _replace(self, lines: list[dict[str, Any]]) -> None:
        # Single events cannot be removed from an event file, so all are written again.
        self.remove()
        for line in lines:
            self.append(**line)

    def remove(self) -> None:
        """Delete the metrics file and the event files if they exist."""
        super().remove()
        if self._open is not None:
            self._open.close()
            self._open = None
        remove(self._folder)
