"""metrics.jsonl, and the picture drawn from it."""

import importlib.util
import json
from pathlib import Path
from typing import Any

from elmo_zh.files import atomic_path


class MetricsFile:
    """One JSON object a line, appended as training goes."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, **figures: Any) -> None:
        """Write one line."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8", newline="\n") as file:
            file.write(json.dumps(figures) + "\n")

    def lines(self) -> list[dict[str, Any]]:
        """Return all lines; one that a kill left unfinished at the end is left out."""
        if not self.path.exists():
            return []
        text = self.path.read_text(encoding="utf-8")
        whole = text[: text.rfind("\n") + 1]
        return [json.loads(line) for line in whole.split("\n") if line]

    def cut_after(self, step: int) -> None:
        """Drop the lines of steps later than `step`, which are about to be trained again."""
        self._replace([line for line in self.lines() if line["step"] <= step])

    def discard(self, **figures: Any) -> None:
        """Drop the lines that say just this, and perhaps more, such as those that a kill let be written too early."""
        lines = self.lines()
        kept = [line for line in lines if not figures.items() <= line.items()]
        if len(kept) < len(lines):
            self._replace(kept)

    def _replace(self, lines: list[dict[str, Any]]) -> None:
        with atomic_path(self.path) as unfinished, unfinished.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)

    def remove(self) -> None:
        """Remove the file, if it is there."""
        self.path.unlink(missing_ok=True)


def can_draw() -> bool:
    """Return whether matplotlib is there to draw with."""
    return importlib.util.find_spec("matplotlib") is not None


def draw_training(lines: list[dict[str, Any]], output: Path, baselines: dict[str, float]) -> None:
    """Draw training loss and held-out perplexity over the tokens trained, the baselines as flat lines."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import StrMethodFormatter

    figure = Figure(figsize=(8, 7), layout="constrained")
    loss_axes, perplexity_axes = figure.subplots(2, 1, sharex=True)
    losses = [line for line in lines if "train_loss" in line]
    loss_axes.plot([line["tokens"] for line in losses], [line["train_loss"] for line in losses], linewidth=1)
    loss_axes.set_ylabel("training loss (nats per token)")
    loss_axes.grid(alpha=0.3)
    measured = [line for line in lines if line.get("heldout_set") == "sample"]
    tokens = [line["tokens"] for line in measured]
    perplexity_axes.plot(
        tokens, [line["heldout_perplexity"] for line in measured], marker="o", label="biLM, held-out sample"
    )
    for name, value in baselines.items():
        perplexity_axes.axhline(
            value, linestyle="--", color="gray" if name == "unigram" else "black", label=f"{name} baseline"
        )
    perplexity_axes.set_yscale("log")
    for labels in (perplexity_axes.yaxis.set_major_formatter, perplexity_axes.yaxis.set_minor_formatter):
        labels(StrMethodFormatter("{x:,.0f}"))
    perplexity_axes.set_ylabel("exact held-out perplexity")
    perplexity_axes.set_xlabel("tokens trained (one direction)")
    perplexity_axes.grid(alpha=0.3, which="both")
    perplexity_axes.legend()
    with atomic_path(output) as unfinished:
        figure.savefig(unfinished, format="png", dpi=120, metadata={"Software": None})
