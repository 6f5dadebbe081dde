"""The outcome of a comparison: scores, differences with intervals, a one-sentence verdict, and hints."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from elmo_zh.pictures.canvas import save_picture
from elmo_zh.pictures.tasks import learning_figure
from elmo_zh.run.files import write_json
from elmo_zh.run.mark import write_mark
from elmo_zh.run.reporter import counted
from elmo_zh.run.tables import table
from elmo_zh.tasks.scores import Difference, Rows, bootstrap_difference, score_rows
from elmo_zh.version import __version__

MAJORITY = "majority"
TFIDF, WORD2VEC, ELMO, BOTH = "TF-IDF", "word2vec", "ELMo", "[word2vec; ELMo]"
# The linear model of tags, which reads no vectors.
CRF = "CRF on character n-grams"
# Linear models for classes: on the pooled vectors of a text, and mixed with the one on characters.
LINEAR_WORD2VEC, LINEAR_ELMO = "linear word2vec", "linear ELMo"
TFIDF_WORD2VEC, TFIDF_ELMO = "TF-IDF with word2vec", "TF-IDF with ELMo"
# No command trains one of the linear models alone: they are members of a mixture, which always has one on characters.
_OPTIONS_OF_FIT = {
    CRF: ("--head", "linear"),
    TFIDF: ("--inputs", "word2vec"),
    LINEAR_WORD2VEC: ("--inputs", "word2vec"),
    TFIDF_WORD2VEC: ("--inputs", "word2vec"),
    LINEAR_ELMO: ("--inputs", "elmo"),
    TFIDF_ELMO: (),
    WORD2VEC: ("--head", "bilstm", "--inputs", "word2vec"),
    ELMO: ("--head", "bilstm", "--inputs", "elmo"),
    BOTH: ("--head", "bilstm"),
}
# Like BOTH, with the ELMo vectors of the model that the compared one was started from.
ANCESTOR = "[word2vec; ancestor ELMo]"
DATA = "comparison.json"
# Fewer test examples can only show large differences.
FEW_EXAMPLES = 300


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """One model, trained on a share of the labels with one seed, and tested."""

    model: str
    share: float
    seed: int
    num_examples: int
    score: float
    dev_score: float | None  # the main score on the development examples; None for a baseline
    seconds: float  # the duration of the training, without the vectors
    rows: Rows  # contribution of each test example to the score, float64, shape (N, 2)
    fold: int = 0  # the fold used for testing, from 0
    is_unfinished: bool = False  # whether the epochs ran out while the development score was still rising

    def to_json(self) -> dict[str, Any]:
        """Return the run as JSON values."""
        return {name: value for name, value in vars(self).items() if name != "rows"} | {"rows": self.rows.tolist()}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> "Run":
        """Return the run from values written by `to_json`."""
        return cls(**{**found, "rows": np.array(found["rows"], np.float64).reshape(-1, 2)})


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison:
    """All scores and their differences; `facts` has the model, data, settings and seconds spent on vectors."""

    name: str
    metric: str
    runs: Sequence[Run]
    seed: int
    facts: Mapping[str, Any]
    num_folds: int = 1

    def _difference(self, model: str, other: str, share: float) -> Difference:
        ours, others = self._rows(model, share), self._rows(other, share)
        return bootstrap_difference(ours, others, metric=self.metric, seed=self.seed)

    def _rows(self, model: str, share: float) -> list[Rows]:
        rows = [run.rows for run in self.of_setting(model, share)]
        return [np.concatenate(rows)] if self.num_folds > 1 else rows

    @cached_property
    def differences(self) -> dict[str, dict[float, Difference]]:
        """How much higher models with ELMo score than word2vec, by model and share of the labels."""
        models = [model for model in (ELMO, BOTH, ANCESTOR) if model in self.models]
        return {
            model: {share: self._difference(model, WORD2VEC, share) for share in self._shares_of(model)}
            for model in models
        }

    @cached_property
    def rivals(self) -> dict[str, dict[float, Difference]]:
        """The difference of each rival's `challenger` from the rival itself, by rival and share of the labels."""
        others = [model for model in (CRF, TFIDF, TFIDF_WORD2VEC, WORD2VEC, ANCESTOR) if model in self.models]
        return {
            rival: {share: self._difference(self.challenger(rival), rival, share) for share in self._shares_of(rival)}
            for rival in others
        }

    def challenger(self, rival: str) -> str:
        """Return the ELMo model to compare with a rival; for classes, the mixture with TF-IDF."""
        return TFIDF_ELMO if TFIDF_ELMO in self.models and rival != ANCESTOR else BOTH

    @property
    def shares(self) -> list[float]:
        """The shares of the labels, in descending order."""
        return sorted({run.share for run in self.runs}, reverse=True)

    def _shares_of(self, model: str) -> list[float]:
        """Return the shares of the labels that a model was trained on, largest first."""
        return [share for share in self.shares if self.of_setting(model, share)]

    @property
    def models(self) -> list[str]:
        """The models in the order of their runs, cheapest first; measured times do not change the order."""
        return list(dict.fromkeys(run.model for run in self.runs))

    def of_setting(self, model: str, share: float) -> list[Run]:
        """Return a model's runs on a share of the labels, with all seeds."""
        return [run for run in self.runs if (run.model, run.share) == (model, share)]

    def verdict(self) -> str:
        """Return a verdict on whether ELMo helps, with its lead over TF-IDF and over any stronger rival."""
        best = {share: self._best_rival(share) for share in self.shares}
        found = {share: self.rivals[rival][share] for share, rival in best.items()}
        wins = [share for share in self.shares if found[share].low > 0]
        loses = any(found[share].high < 0 for share in self.shares)
        if wins and wins[0] == self.shares[0] and not loses:
            judgement = "ELMo helps here"
        elif wins:
            counts = ", ".join(f"{self._num_examples(share):,}" for share in wins)
            judgement = f"ELMo helps here only with {counts} training examples"
        else:
            judgement = "ELMo does not help here" if loses else "It is not certain that ELMo helps here"
        if TFIDF_ELMO not in self.models:
            return f"{judgement}: {self._outcomes(best)}"
        plain = dict.fromkeys(self.shares, TFIDF)
        stronger = {share: rival for share, rival in best.items() if rival != TFIDF}
        return f"{judgement}: {self._outcomes(plain)}{f' {self._outcomes(stronger)}' if stronger else ''}"

    def _best_rival(self, share: float) -> str:
        others = [model for model in (WORD2VEC, CRF, TFIDF, TFIDF_WORD2VEC) if self.of_setting(model, share)]
        return max(others, key=lambda model: self._mean(model, share))

    def _mean(self, model: str, share: float) -> float:
        return float(np.mean([score_rows(rows, metric=self.metric) for rows in self._rows(model, share)]))

    def _outcomes(self, rivals: Mapping[float, str]) -> str:
        outcomes: list[str] = []
        for share, rival in rivals.items():
            found, number = self.rivals[rival][share], f"{self._num_examples(share):,}"
            points, low, high = (f"{100 * each:+.1f}" for each in (found.value, found.low, found.high))
            interval = (
                f"95% interval {low} to {high}" if found.is_sure else f"95% interval {low} to {high}, including 0"
            )
            points = points[1:]
            outcomes.append(
                f"{points} points of {self.metric} below {rival} with {number} training examples ({interval})"
                if found.value < 0
                else f"{points} points of {self.metric} above {rival} with {number} training examples ({interval})"
            )
        challenger = self.challenger(rival)
        return f"The score of {challenger} is {'; '.join(outcomes)}."

    def recommended(self) -> str:
        """Return the cheapest model that is not significantly worse than the best on the largest share of labels."""
        share = self.shares[0]
        best = max(self.models, key=lambda model: self._mean(model, share))
        return next(model for model in self.models if not self._difference(best, model, share).low > 0)

    def options_of_fit(self) -> tuple[str, ...]:
        """Return the `task fit` options that train the recommended model, or a mixture that may contain it."""
        chosen = self.recommended()
        return _OPTIONS_OF_FIT.get(chosen, ()) if TFIDF_ELMO in self.models or chosen == CRF else ()

    def remark_on_fit(self) -> str:
        """Return a sentence on what these options train if the recommended classifier is linear, otherwise ""."""
        if self.recommended() not in _OPTIONS_OF_FIT or "--head" in self.options_of_fit():
            return ""
        return f"task fit tries mixtures that include {self.recommended()}, and keeps what helps on held-out examples."

    def seconds(self, model: str) -> float:
        """Return a model's training time on the largest share of the labels, including the time for its vectors."""
        needs_elmo = model in (LINEAR_ELMO, TFIDF_ELMO, ELMO, BOTH, ANCESTOR)
        found = [run.seconds for run in self.of_setting(model, self.shares[0])]
        return float(np.mean(found)) + needs_elmo * float(self.facts["vectors_seconds"])

    def recommendation(self) -> str:
        """Return a sentence that recommends a model, and compares its score and training time with the best model's."""
        chosen, share = self.recommended(), self.shares[0]
        best = max(self.models, key=lambda model: self._mean(model, share))

        def shown(model: str) -> str:
            score, minutes = f"{self._mean(model, share):.4f}", f"{self.seconds(model) / 60:.1f}"
            return f"{model} ({score}, {minutes} minutes)"

        number = f"{self._num_examples(share):,}"
        if best == chosen:
            return f"Recommended with {number} training examples: {shown(best)}."
        return (
            f"Recommended with {number} training examples: {shown(chosen)}, the cheapest that is not clearly worse than"
            f" the best, {shown(best)}."
        )

    def hints(self) -> Iterator[str]:
        """Yield hints on how reliable the scores are and how to raise them."""
        scores = {model: [run.score for run in self.of_setting(model, self.shares[0])] for model in self.models}
        majority = set(scores.pop(MAJORITY, []))
        same = [model for model, found in scores.items() if set(found) == majority]
        if self.metric == "accuracy" and same:
            yield (
                f"Models no more accurate than always predicting the most frequent label: {', '.join(same)}. If some"
                " labels are much more frequent than others, add: --metric macro_f1"
            )
        if ANCESTOR in self.models:
            adds = any(each.low > 0 for each in self.rivals[ANCESTOR].values())
            judgement = "The adaptation helps" if adds else "It is not certain that the adaptation helps"
            yield f"{judgement}: {self._outcomes(dict.fromkeys(self.rivals[ANCESTOR], ANCESTOR))}"
        networks = [run for run in self.runs if run.dev_score is not None]
        if unfinished := sum(run.is_unfinished for run in networks):
            epochs = self.facts["training"]["epochs"]
            yield (
                f"{unfinished:,} of {counted(len(networks), 'training run')} ended at the limit of {epochs} epochs"
                f" while still improving. Raise the limit: --epochs {2 * epochs}"
            )
        num_tests = len(self._rows(BOTH, self.shares[0])[0])
        if num_tests < FEW_EXAMPLES:
            yield f"{counted(num_tests, 'test example')} can only show large differences. Use {FEW_EXAMPLES} or more."

    def tables(self) -> Iterator[tuple[list[str], list[list[str]]]]:
        """Yield the header and rows of each table: scores, and differences in percentage points."""
        percents = [f"{100 * share:.3g}" for share in self.shares]
        of_labels = [f"{percent}% of the labels" for percent in percents]
        counts = [
            f"{percent}% of the labels ({self._num_examples(share):,})"
            for percent, share in zip(percents, self.shares, strict=True)
        ]
        scores = [[model, *(self._scores(model, share) for share in self.shares)] for model in self.models]
        yield [f"{self.metric} on the test examples", *counts], scores

        def points(by_share: Mapping[float, Difference]) -> list[str]:
            return [found.points() if (found := by_share.get(share)) else "" for share in self.shares]

        differences = [[model, *points(by_share)] for model, by_share in self.differences.items()]
        yield ["points above word2vec", *of_labels], differences
        if TFIDF_ELMO in self.models:
            rivals = [[rival, *points(by_share)] for rival, by_share in self.rivals.items() if rival != ANCESTOR]
            yield [f"lead of {TFIDF_ELMO} in points", *of_labels], rivals

    def lines(self) -> list[str]:
        """Return the tables, hints, verdict and recommendation as Markdown."""
        found = [line for each in self.tables() for line in (*table(*each).split("\n"), "")]
        return [*found, *self.hints(), self.verdict(), self.recommendation()]

    def trainings(self) -> Iterator[str]:
        """Yield a Markdown table with one row per training run, and the time spent on vectors."""
        head = ["training", "examples", "seed", "fold", self.metric, "minutes"]
        yield table(
            head,
            [
                [
                    run.model,
                    f"{run.num_examples:,}",
                    f"{run.seed}",
                    f"{run.fold + 1}",
                    f"{run.score:.4f}",
                    f"{run.seconds / 60:.2f}",
                ]
                for run in self.runs
            ],
        )
        yield ""
        minutes = f"{self.facts['vectors_seconds'] / 60:.2f}"
        yield f"ELMo's vectors were computed once for all training runs, in {minutes} minutes."

    def to_json(self) -> dict[str, Any]:
        """Return all figures except the scores of individual examples."""
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
            "recommended": self.recommended(),
            "seconds": {model: self.seconds(model) for model in self.models},
            "differences_to_word2vec": differences,
            "differences_to_rivals": [
                {
                    "model": self.challenger(rival),
                    "rival": rival,
                    "share": share,
                    **asdict(each),
                    "is_sure": each.is_sure,
                }
                for rival, by_share in self.rivals.items()
                for share, each in by_share.items()
            ],
            "folds": self.num_folds,
            "runs": runs,
            **self.facts,
        }

    def write(self, folder: Path) -> None:
        """Write the report to a new folder: Markdown, JSON, and a picture of the learning curves."""
        folder.mkdir()
        lines = [f"# {self.name}", "", *self.lines(), "", *self.trainings(), ""]
        (folder / "comparison.md").write_text("\n".join(lines), encoding="utf-8")
        save_picture(learning_figure(self._curves(), self.metric, self.name, self.verdict()), folder / "curves.png")
        write_json(folder / DATA, self.to_json())
        write_mark(folder, "comparison", 1, {"model": self.facts["model"]})

    def _curves(self) -> dict[str, list[tuple[int, list[float]]]]:
        return {
            model: [
                (self._num_examples(share), [run.score for run in self.of_setting(model, share)])
                for share in reversed(self._shares_of(model))
            ]
            for model in self.models
        }

    def _num_examples(self, share: float) -> int:
        return next(run.num_examples for run in self.runs if run.share == share)

    def _scores(self, model: str, share: float) -> str:
        scores = [run.score for run in self.of_setting(model, share)]
        if not scores:
            return ""
        value, low, high = (f"{each:.4f}" for each in (self._mean(model, share), min(scores), max(scores)))
        return f"{value} ({low} to {high})" if len(scores) > 1 else value
