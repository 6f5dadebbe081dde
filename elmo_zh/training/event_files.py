"""metrics.jsonl, and the same figures as TensorBoard event files."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmo_zh.errors import RunError
from elmo_zh.extras import install_line
from elmo_zh.run.files import remove
from elmo_zh.training.metrics import MetricsFile

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

_NO_CURVES = ("step", "tokens", "event", "heldout_set", "failed_step")


class MetricsWithEvents(MetricsFile):
    """A `MetricsFile` that also writes TensorBoard event files: each figure is a curve over the tokens trained."""

    def __init__(self, path: Path, folder: Path) -> None:
        """Check that TensorBoard is installed.

        Args:
            path: The metrics file.
            folder: Folder of the event files.

        Raises:
            RunError: If TensorBoard is not installed.
        """
        super().__init__(path)
        self._folder = folder
        self._open: SummaryWriter | None = None
        if importlib.util.find_spec("tensorboard") is None:
            raise RunError(
                "train.tensorboard = true requires the package tensorboard. Turn it off with --set"
                f" train.tensorboard=false, or install the package with: {install_line('tensorboard')}"
            )

    def append(self, **figures: Any) -> None:
        """Write one line, and its figures as TensorBoard events."""
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
        """Remove the metrics file and the event files if they exist."""
        super().remove()
        if self._open is not None:
            self._open.close()
            self._open = None
        remove(self._folder)
