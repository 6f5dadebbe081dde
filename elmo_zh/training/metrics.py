"""metrics.jsonl."""

import json
from pathlib import Path
from typing import Any

from elmo_zh.run.files import atomic_path


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
