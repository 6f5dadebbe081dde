"""The outcome of a comparison: scores, differences with intervals, minutes, and a verdict in one sentence."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from elmo_zh.pictures.canvas import can_draw, save_picture
from elmo_zh.pictures.tasks import learning_figure
from elmo_zh.run.files import atomic_path, write_json
from elmo_zh.run.markdown import table
from elmo_zh.run.reporter import Reporter
from elmo_zh.tasks.bootstrap import Difference, Rows, bootstrap_difference
from elmo_zh.version import __version__

MAJORITY, TFIDF, WORD2VEC, ELMO, BOTH = "majority", "TF-IDF", "word2vec", "ELMo", "[word2vec; ELMo]"
# The model that the compared one was started from, in the place of ELMo.
ANCESTOR = "[word2vec; its ancestor]"


@dataclass(frozen=True)
class ComparisonLayout:
    """The names of all files of a comparison."""

    path: Path

    @property
    def data(self) -> Path:
        """All figures."""
        return self.path / "comparison.json"

    @property
    def tables(self) -> Path:
        """The figures as tables for people."""
        return self.path / "comparison.md"

    @property
    def curves(self) -> Path:
        """The picture of the score by the number of training examples."""
        return self.path / "curves.png"


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """One model, trained on a share of the labels from one seed, and tested.

    Attributes:
        model: Its name.
        share: The fraction of the training examples.
        seed: Seed of the choice of examples and of the training.
        num_examples: Number of training examples.
        score: The main score on the test examples.
        dev_score: That on the development examples; None for a baseline.
        seconds: What the training took, without the vectors.
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
    """All scores, and the differences to word2vec.

    Attributes:
        name: Name of the comparison, for titles.
        metric: Name of the main score (`main_metric`).
        runs: The trainings.
        differences: For ELMo and for [word2vec; ELMo] how much higher they score than word2vec, by the share of labels.
        facts: Model, data, settings, and the seconds that the vectors took.
    """

    name: str
    metric: str
    runs: Sequence[Run]
    differences: Mapping[str, Mapping[float, Difference]]
    facts: Mapping[str, Any]

    @classmethod
    def of(
        cls,
        runs: Sequence[Run],
        *,
        name: str,
        metric: str,
        seed: int,
        facts: Mapping[str, Any],
    ) -> "Comparison":
        """Compute the differences of runs."""

        def rows(model: str, share: float) -> list[Rows]:
            return [run.rows for run in runs if (run.model, run.share) == (model, share)]

        shares = sorted({run.share for run in runs}, reverse=True)
        differences = {
            model: {
                share: bootstrap_difference(rows(model, share), rows(WORD2VEC, share), metric=metric, seed=seed)
                for share in shares
            }
            for model in (ELMO, BOTH, ANCESTOR)
            if any(run.model == model for run in runs)
        }
        return cls(name=name, metric=metric, runs=runs, differences=differences, facts=facts)

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

    def hints(self) -> list[str]:
        """Return lines on what the verdict does not tell: networks that are no better than a simpler model."""
        return [*self._hint_of_majority(), *self._hint_of_tfidf()]

    def _hint_of_majority(self) -> list[str]:
        """Return a line if networks have learned nothing but the most frequent label, which accuracy hides."""
        scores = {model: {run.score for run in self.of_setting(model, self.shares[0])} for model in self.models}
        same = [model for model in scores if model != MAJORITY and scores[model] == scores.get(MAJORITY)]
        if self.metric != "accuracy" or not same:
            return []
        return [f"As accurate as the most frequent label: {', '.join(same)}. For uneven labels add: --metric macro_f1"]

    def _hint_of_tfidf(self) -> list[str]:
        """Return a line if the linear model on characters scores higher than every network with the most labels."""
        means = {
            model: float(np.mean([run.score for run in self.of_setting(model, self.shares[0])]))
            for model in self.models
            if model != MAJORITY
        }
        linear = means.pop(TFIDF, None)
        if linear is None or linear <= max(means.values()):
            return []
        return [
            f"TF-IDF, a linear model on characters, scores higher than each network here: {linear:.4f}, and the best of"
            f" them {max(means.values()):.4f}."
        ]

    def score_table(self) -> tuple[list[str], list[list[str]]]:
        """Return head and rows of the table of scores: means over the seeds, with the lowest and the highest."""
        head = [f"{self.metric} on the test examples"]
        head += [f"{100 * share:.3g}% of the labels ({self._num_examples(share):,})" for share in self.shares]
        return head, [[model, *(self._scores(model, share) for share in self.shares)] for model in self.models]

    def difference_table(self) -> tuple[list[str], list[list[str]]]:
        """Return head and rows of the table of differences in points, with 95% intervals."""
        head = ["points above word2vec", *(f"{100 * share:.3g}% of the labels" for share in self.shares)]
        rows = []
        for model, by_share in self.differences.items():
            cells = [
                (100 * each.value, 100 * each.low, 100 * each.high) for each in map(by_share.get, self.shares) if each
            ]
            rows.append([model, *(f"{value:+.2f} ({low:+.2f} to {high:+.2f})" for value, low, high in cells)])
        return head, rows

    def minutes_table(self) -> tuple[list[str], list[list[str]]]:
        """Return head and rows of the table of minutes: the mean training, without the vectors."""
        head = ["minutes of a training", *(f"{100 * share:.3g}% of the labels" for share in self.shares)]
        rows = []
        for model in self.models:
            seconds = [[run.seconds for run in self.of_setting(model, share)] for share in self.shares]
            rows.append([model, *(f"{float(np.mean(each)) / 60:.2f}" for each in seconds)])
        return head, rows

    def lines(self) -> list[str]:
        """Return all tables and the verdict as Markdown, for people."""
        found: list[str] = []
        for head, rows in (self.score_table(), self.difference_table(), self.minutes_table()):
            found += [*table(head, rows).split("\n"), ""]
        minutes = self.facts["vectors_seconds"] / 60
        found += [
            f"ELMo's vectors took {minutes:.2f} minutes, once for all trainings.",
            "",
            *self.hints(),
            self.verdict(),
        ]
        return found

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
            layout = ComparisonLayout(unfinished)
            layout.tables.write_text("\n".join([f"# {self.name}", "", *self.lines(), ""]), encoding="utf-8")
            if can_draw():
                save_picture(learning_figure(self._curves(), self.metric, self.name, self.verdict()), layout.curves)
            else:
                reporter.warn("No picture was drawn: matplotlib is not installed.")
            write_json(layout.data, self.to_json())

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

    def _scores(self, model: str, share: float) -> str:
        scores = [run.score for run in self.of_setting(model, share)]
        spread = f" ({min(scores):.4f} to {max(scores):.4f})" if len(scores) > 1 else ""
        return f"{float(np.mean(scores)):.4f}{spread}"
