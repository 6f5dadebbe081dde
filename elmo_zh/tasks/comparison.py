"""The outcome of a comparison: scores, differences with intervals, minutes, and a verdict in one sentence."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from elmo_zh.pictures.canvas import can_draw, save_picture
from elmo_zh.pictures.tasks import learning_figure
from elmo_zh.run.files import atomic_path, write_json
from elmo_zh.run.markdown import table
from elmo_zh.run.reporter import Reporter
from elmo_zh.tasks.scores import Difference, Rows, bootstrap_difference
from elmo_zh.version import __version__

MAJORITY, TFIDF, WORD2VEC, ELMO, BOTH = "majority", "TF-IDF", "word2vec", "ELMo", "[word2vec; ELMo]"
# The model that the compared one was started from, in the place of ELMo.
ANCESTOR = "[word2vec; its ancestor]"
# The file with all figures.
DATA = "comparison.json"


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """One model, trained on a share of the labels from one seed, and tested.

    Attributes:
        dev_score: The main score on the development examples; None for a baseline.
        seconds: The duration of the training, without the vectors.
        rows: What each test example adds to the score, float64, shape (N, 2).
    """

    model: str
    share: float
    seed: int
    num_examples: int
    score: float
    dev_score: float | None
    seconds: float
    rows: Rows

    def to_json(self) -> dict[str, Any]:
        """Return it for a file."""
        return {name: value for name, value in vars(self).items() if name != "rows"} | {"rows": self.rows.tolist()}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> "Run":
        """Return what `to_json` has written."""
        return cls(**{**found, "rows": np.array(found["rows"], np.float64).reshape(-1, 2)})


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison:
    """All scores, and the differences to word2vec; `facts` are model, data, settings, and seconds of the vectors."""

    name: str
    metric: str
    runs: Sequence[Run]
    seed: int
    facts: Mapping[str, Any]

    @cached_property
    def differences(self) -> dict[str, dict[float, Difference]]:
        """How much higher models with ELMo score than word2vec, by model and by the share of the labels."""

        def rows(model: str, share: float) -> list[Rows]:
            return [run.rows for run in self.of_setting(model, share)]

        return {
            model: {
                share: bootstrap_difference(
                    rows(model, share), rows(WORD2VEC, share), metric=self.metric, seed=self.seed
                )
                for share in self.shares
            }
            for model in (ELMO, BOTH, ANCESTOR)
            if model in self.models
        }

    @property
    def shares(self) -> list[float]:
        """The shares of the labels, the largest first."""
        return sorted({run.share for run in self.runs}, reverse=True)

    @property
    def models(self) -> list[str]:
        """The models in the order of their runs."""
        return list(dict.fromkeys(run.model for run in self.runs))

    def of_setting(self, model: str, share: float) -> list[Run]:
        """Return the runs of all seeds of a model on a share of the labels."""
        return [run for run in self.runs if (run.model, run.share) == (model, share)]

    def verdict(self) -> str:
        """Return one sentence: by how much ELMo beats word2vec with the most labels, or that it does not."""
        share = self.shares[0]
        found = self.differences[BOTH][share]
        labels = f"with {self.of_setting(BOTH, share)[0].num_examples:,} training examples"
        points = f"{abs(100 * found.value):.1f} points of {self.metric}"
        interval = f"95% interval {100 * found.low:+.1f} to {100 * found.high:+.1f}"
        if not found.is_sure:
            return (
                f"It is not certain that ELMo helps here: {BOTH} minus word2vec is {100 * found.value:+.1f} points of"
                f" {self.metric} ({interval}, which includes 0) {labels}."
            )
        if found.value > 0:
            return f"ELMo helps here: {BOTH} beats word2vec by {points} ({interval}) {labels}."
        return f"ELMo does not help here: {BOTH} is {points} below word2vec ({interval}) {labels}."

    def hints(self) -> Iterator[str]:
        """Yield lines on what the verdict does not tell: networks that are no better than a simpler model."""
        scores = {model: [run.score for run in self.of_setting(model, self.shares[0])] for model in self.models}
        majority = set(scores.pop(MAJORITY, []))
        same = [model for model, found in scores.items() if set(found) == majority]
        if self.metric == "accuracy" and same:
            yield f"As accurate as the most frequent label: {', '.join(same)}. For uneven labels add: --metric macro_f1"
        means = {model: float(np.mean(found)) for model, found in scores.items()}
        linear = means.pop(TFIDF, None)
        if linear is not None and linear > max(means.values()):
            yield (
                f"TF-IDF, a linear model on characters, scores higher than each network here: {linear:.4f}, and the"
                f" best of them {max(means.values()):.4f}."
            )

    def tables(self) -> Iterator[tuple[list[str], list[list[str]]]]:
        """Yield head and rows of three tables: scores, differences in points, and minutes of a training."""
        of_labels = [f"{100 * share:.3g}% of the labels" for share in self.shares]
        counts = [
            f"{labels} ({self._num_examples(share):,})" for labels, share in zip(of_labels, self.shares, strict=True)
        ]
        scores = [[model, *(self._scores(model, share) for share in self.shares)] for model in self.models]
        yield [f"{self.metric} on the test examples", *counts], scores
        differences = [
            [model, *(_points(by_share[share]) for share in self.shares)]
            for model, by_share in self.differences.items()
        ]
        yield ["points above word2vec", *of_labels], differences
        minutes = [[model, *(self._minutes(model, share) for share in self.shares)] for model in self.models]
        yield ["minutes of a training", *of_labels], minutes

    def lines(self) -> list[str]:
        """Return all tables and the verdict as Markdown, for people."""
        found = [line for each in self.tables() for line in (*table(*each).split("\n"), "")]
        minutes = self.facts["vectors_seconds"] / 60
        found += [f"ELMo's vectors took {minutes:.2f} minutes, once for all trainings.", ""]
        return [*found, *self.hints(), self.verdict()]

    def to_json(self) -> dict[str, Any]:
        """Return all figures, without those of single examples."""
        runs = [{name: value for name, value in vars(run).items() if name != "rows"} for run in self.runs]
        differences = [
            {"model": model, "share": share, **asdict(each), "is_sure": each.is_sure}
            for model, by_share in self.differences.items()
            for share, each in by_share.items()
        ]
        return {
            "elmo_zh": __version__,
            "metric": self.metric,
            "verdict": self.verdict(),
            "differences_to_word2vec": differences,
            "runs": runs,
            **self.facts,
        }

    def write(self, output: Path, reporter: Reporter) -> None:
        """Write the folder."""
        with atomic_path(output) as unfinished:
            unfinished.mkdir()
            (unfinished / "comparison.md").write_text(
                "\n".join([f"# {self.name}", "", *self.lines(), ""]), encoding="utf-8"
            )
            if can_draw():
                figure = learning_figure(self._curves(), self.metric, self.name, self.verdict())
                save_picture(figure, unfinished / "curves.png")
            else:
                reporter.warn("No picture was drawn: matplotlib is not installed.")
            write_json(unfinished / DATA, self.to_json())

    def _curves(self) -> dict[str, list[tuple[int, list[float]]]]:
        """Return for each model the numbers of training examples with the scores of all seeds."""
        return {
            model: [
                (self._num_examples(share), [run.score for run in self.of_setting(model, share)])
                for share in reversed(self.shares)
            ]
            for model in self.models
        }

    def _num_examples(self, share: float) -> int:
        return next(run.num_examples for run in self.runs if run.share == share)

    def _minutes(self, model: str, share: float) -> str:
        return f"{float(np.mean([run.seconds for run in self.of_setting(model, share)])) / 60:.2f}"

    def _scores(self, model: str, share: float) -> str:
        scores = [run.score for run in self.of_setting(model, share)]
        spread = f" ({min(scores):.4f} to {max(scores):.4f})" if len(scores) > 1 else ""
        return f"{float(np.mean(scores)):.4f}{spread}"


def _points(difference: Difference) -> str:
    value, low, high = (100 * each for each in (difference.value, difference.low, difference.high))
    return f"{value:+.2f} ({low:+.2f} to {high:+.2f})"
