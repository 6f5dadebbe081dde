"""Saving pictures, if matplotlib is installed."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

from elmo_zh.run.files import atomic_path

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def can_draw() -> bool:
    """Return whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def save_picture(figure: Figure, output: Path) -> None:
    """Write a figure as PNG; the same figure gives the same bytes."""
    with atomic_path(output) as unfinished:
        figure.savefig(unfinished, format="png", dpi=120, metadata={"Software": None})
