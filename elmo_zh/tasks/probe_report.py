"""The outcome of a probe: a row for each layer of a model, beside word2vec and a baseline."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from elmo_zh.run.files import atomic_path, write_json
from elmo_zh.run.markdown import table
from elmo_zh.tasks.bootstrap import Difference, Rows, bootstrap_difference, score_rows
from elmo_zh.version import __version__


@dataclass(frozen=True)
class ProbeLayout:
    """The names of all files of a probe."""

    path: Path

    @property
    def data(self) -> Path:
        """All figures."""
        return self.path / "probe.json"

    @property
    def table(self) -> Path:
        """The table for people."""
        return self.path / "probe.md"


@dataclass(frozen=True, kw_only=True, eq=False)
class Probed:
    """The scores of one layer, or of vectors that are compared with the layers.

    Attributes:
        name: Its name.
        layer: Number of the layer; None for word2vec and the baseline.
        rows: For each example, a sentence or an occurrence, the right answers and all answers, float64, shape (N, 2).
        dev_score: Accuracy on the development examples, by which the layer is chosen; None if there are none.
    """

    name: str
    layer: int | None
    rows: Rows
    dev_score: float | None = None

    @property
    def score(self) -> float:
        """The accuracy."""
        return score_rows(self.rows, metric="accuracy")


@dataclass(frozen=True, kw_only=True, eq=False)
class ProbeReport:
    """The table of a probe.

    Attributes:
        what: What is predicted, for the head of the table.
        baseline: What needs no vectors: the most frequent tag of each word, or its most frequent sense.
        others: word2vec, if there is one, and the layers.
        facts: Model, data and counts.
    """

    what: str
    baseline: Probed
    others: Sequence[Probed]
    facts: Mapping[str, Any]

    @property
    def best(self) -> Probed:
        """The layer with the highest score, on the development examples if there are any; of equal ones the lowest."""
        layers = [each for each in self.others if each.layer is not None]
        return max(layers, key=lambda each: each.score if each.dev_score is None else each.dev_score)

    def difference(self, probed: Probed) -> Difference:
        """Return how much more accurate it is than the baseline."""
        return bootstrap_difference([probed.rows], [self.baseline.rows], metric="accuracy", seed=1)

    def lines(self) -> list[str]:
        """Return the table and the layer to take, for people."""
        rows = [[self.baseline.name, f"{self.baseline.score:.4f}", ""]]
        for each in self.others:
            found = self.difference(each)
            interval = f"{100 * found.value:+.2f} ({100 * found.low:+.2f} to {100 * found.high:+.2f})"
            rows.append([each.name, f"{each.score:.4f}", interval])
        head = [self.what, "accuracy", "points above the baseline (95% interval)"]
        return [*table(head, rows).split("\n"), "", f"The best layer is {self.best.layer}: --layers {self.best.layer}"]

    def to_json(self) -> dict[str, Any]:
        """Return all figures."""
        rows = [
            {
                "name": each.name,
                "layer": each.layer,
                "accuracy": each.score,
                "dev_accuracy": each.dev_score,
                **({} if each is self.baseline else {"above_baseline": asdict(self.difference(each))}),
            }
            for each in (self.baseline, *self.others)
        ]
        return {"elmo_zh": __version__, "what": self.what, "best_layer": self.best.layer, "rows": rows, **self.facts}

    def write(self, output: Path) -> None:
        """Write the folder."""
        with atomic_path(output) as unfinished:
            unfinished.mkdir()
            layout = ProbeLayout(unfinished)
            layout.table.write_text("\n".join([f"# {output.name}", "", *self.lines(), ""]), encoding="utf-8")
            write_json(layout.data, self.to_json())
