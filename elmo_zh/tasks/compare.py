"""Compare models that read ELMo or other inputs, trained on different shares of the labels.

Each training run is a part of one step, and the part's value holds the contribution of each test example to the score.
Networks run last.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from elmo_zh.bundle.word2vec_table import Word2Vec
from elmo_zh.config.task_settings import FitJob
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.errors import CorpusError, OptionError
from elmo_zh.language import N_, _
from elmo_zh.run.files import file_digest
from elmo_zh.run.job import Files, Json, Step, Work
from elmo_zh.run.outputs import written_as
from elmo_zh.run.reporter import Reporter, SilentReporter, counted
from elmo_zh.run.tables import table
from elmo_zh.tasks import linear
from elmo_zh.tasks.datasets import Dataset, Split, choose_rows, load_dataset, split_into_folds
from elmo_zh.tasks.encode_texts import VectorCache, load_vectors, read_alike, read_texts, sentences_of, word2vec_digest
from elmo_zh.tasks.fit import check_settings, manifest_of
from elmo_zh.tasks.scores import (
    Answers,
    Difference,
    answer_majority,
    answer_rows,
    bootstrap_difference,
    main_metric,
    score_rows,
    write_report,
)
from elmo_zh.tasks.train import PreparedTask, class_score
from elmo_zh.version import __version__

DEFAULT_FOLDS = 3
# With fewer test examples, which can only show large differences, a file that is split here is divided into folds.
FEW_EXAMPLES = 300


@dataclass(frozen=True)
class Model:
    """A row of a comparison: one or more linear models (`members`), a network (`inputs`) or a baseline."""

    name: str
    members: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    options: tuple[str, ...] = ()  # of `task fit`, besides the network's --head, to train it or a mixture with it

    @property
    def needs_elmo(self) -> bool:
        """Whether the model reads ELMo's vectors."""
        return linear.ELMO in (*self.members, *self.inputs)


_WITHOUT_ELMO = ("--inputs", "word2vec")
MAJORITY = Model(N_("majority"))
CRF = Model(N_("CRF on character n-grams"), options=("--head", "linear"))
TFIDF = Model("TF-IDF", (linear.CHARACTERS,), options=_WITHOUT_ELMO)
TFIDF_WORD2VEC = Model(N_("TF-IDF with word2vec"), (linear.CHARACTERS, linear.WORD2VEC), options=_WITHOUT_ELMO)
TFIDF_ELMO = Model(N_("TF-IDF with ELMo"), (linear.CHARACTERS, linear.ELMO))
LINEAR_WORD2VEC = Model(N_("linear word2vec"), (linear.WORD2VEC,), options=_WITHOUT_ELMO)
LINEAR_ELMO = Model(N_("linear ELMo"), (linear.ELMO,), options=("--inputs", "elmo"))
WORD2VEC = Model("word2vec", inputs=("word2vec",), options=_WITHOUT_ELMO)
ELMO = Model("ELMo", inputs=("elmo",), options=("--inputs", "elmo"))
BOTH = Model("[word2vec; ELMo]", inputs=("word2vec", "elmo"))


@dataclass(frozen=True, kw_only=True)
class Run:
    """The test result of one training run."""

    model: str
    share: float
    seed: int
    fold: int = 0  # the fold used for testing, from 0
    num_examples: int
    score: float
    rows: Sequence[Sequence[float]]  # contribution of each test example to the score


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison:
    """All scores and their differences; `facts` describes the model, the vectors and the data."""

    name: str
    metric: str
    models: Sequence[Model]  # in the order of their runs, cheapest first
    runs: Sequence[Run]
    seed: int
    facts: Mapping[str, Any]
    num_folds: int = 1

    def of(self, model: Model, share: float) -> list[Run]:
        """Return a model's runs on a share of the labels, with all seeds or folds."""
        return [run for run in self.runs if (run.model, run.share) == (model.name, share)]

    @cached_property
    def shares(self) -> list[float]:
        """The shares of the labels, in descending order."""
        return sorted({run.share for run in self.runs}, reverse=True)

    def _num_examples(self, share: float) -> str:
        return f"{next(run.num_examples for run in self.runs if run.share == share):,}"

    def _rows(self, model: Model, share: float) -> list[Any]:
        rows = [np.array(run.rows, np.float64).reshape(-1, 2) for run in self.of(model, share)]
        return [np.concatenate(rows)] if self.num_folds > 1 else rows

    def mean(self, model: Model, share: float) -> float:
        """Return a model's score, averaged over seeds; folds are pooled."""
        return float(np.mean([score_rows(rows, metric=self.metric) for rows in self._rows(model, share)]))

    def difference(self, model: Model, other: Model, share: float) -> Difference:
        """Return how much higher a model scores than another one, with a 95% interval."""
        ours, others = self._rows(model, share), self._rows(other, share)
        return bootstrap_difference(ours, others, metric=self.metric, seed=self.seed)

    @property
    def challenger(self) -> Model:
        """The ELMo model that is compared with the others: the mixture with TF-IDF for classes, otherwise `BOTH`."""
        return TFIDF_ELMO if TFIDF_ELMO in self.models else BOTH

    @cached_property
    def leads(self) -> dict[tuple[str, float], Difference]:
        """The challenger's lead over other models except the majority, keyed by model name and share of the labels."""
        return {
            (model.name, share): self.difference(self.challenger, model, share)
            for model in self.models
            for share in self.shares
            if model not in (MAJORITY, self.challenger) and self.of(model, share) and self.of(self.challenger, share)
        }

    def _best(self, models: Sequence[Model]) -> Model:
        return max(models, key=lambda model: self.mean(model, self.shares[0]))

    def verdict(self) -> str:
        """Return a sentence on whether ELMo helps, with its lead over the best rival on the largest share of labels."""
        rival = self._best([model for model in self.models if not model.needs_elmo and model != MAJORITY])
        lead = self.leads[rival.name, self.shares[0]]
        helps, harms = _("ELMo helps here"), _("ELMo does not help here")
        judgement = helps if lead.low > 0 else harms if lead.high < 0 else _("It is not certain that ELMo helps here")
        low, value, high = (f"{100 * bound:+.1f}" for bound in (lead.low, lead.value, lead.high))
        outcome = _(
            "The lead of {challenger} over {rival} is {value} points of {metric} with {number} training examples (95%"
            " interval {low} to {high})."
        ).format(
            challenger=_(self.challenger.name), rival=_(rival.name), value=value, metric=self.metric,
            number=self._num_examples(self.shares[0]), low=low, high=high,
        )  # fmt: skip
        return _("{name}: {value}").format(name=judgement, value=outcome)

    @cached_property
    def recommended(self) -> Model:
        """The cheapest model that is not significantly worse than the best on the largest share of the labels."""
        best, share = self._best(self.models), self.shares[0]
        return next(model for model in self.models if not self.difference(best, model, share).low > 0)

    def recommendation(self) -> str:
        """Return a sentence that recommends a model, and compares its score with the best model's."""
        cheapest, best = (
            f"{_(model.name)} ({self.mean(model, self.shares[0]):.4f})"
            for model in (self.recommended, self._best(self.models))
        )
        sentence = _("Recommended: {chosen}, the cheapest that is not clearly worse than the best, {best}.")
        return sentence.format(chosen=cheapest, best=best)

    def lines(self) -> list[str]:
        """Return the tables of scores and leads, the verdict and the recommendation as Markdown."""
        columns = [
            _("{percent}% of the labels ({share})").format(
                percent=f"{100 * share:.3g}", share=self._num_examples(share)
            )
            for share in self.shares
        ]
        head = _("{metric} on the test examples").format(metric=self.metric)
        scores = [[_(model.name), *(self._scores(model, share) for share in self.shares)] for model in self.models]
        lead = _("lead of {challenger} in points").format(challenger=_(self.challenger.name))
        points = {place: difference.points() for place, difference in self.leads.items()}
        names = dict.fromkeys(name for name, _share in points)
        leads = [[_(name), *(points.get((name, share), "") for share in self.shares)] for name in names]
        tables = f"{table([head, *columns], scores)}\n\n{table([lead, *columns], leads)}\n"
        return [*tables.split("\n"), self.verdict(), self.recommendation()]

    def _scores(self, model: Model, share: float) -> str:
        scores = [run.score for run in self.of(model, share)]
        spread = f" ({min(scores):.4f} - {max(scores):.4f})" if len(scores) > 1 else ""
        return f"{self.mean(model, share):.4f}{spread}" if scores else ""

    def to_json(self) -> dict[str, Any]:
        """Return the content of the JSON report, which leaves out the contributions of individual examples."""
        return {
            "elmo_zh": __version__,
            "metric": self.metric,
            "verdict": self.verdict(),
            "recommended": self.recommended.name,
            "challenger": self.challenger.name,
            "leads": [
                {"over": name, "share": share, **asdict(lead), "is_sure": lead.is_sure}
                for (name, share), lead in self.leads.items()
            ],
            "folds": self.num_folds,
            "runs": [{name: value for name, value in vars(run).items() if name != "rows"} for run in self.runs],
            **self.facts,
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class CompareJob:
    """Trains and tests models that read ELMo or other inputs, and compares their scores."""

    fit: FitJob
    embedder: ElmoEmbedder
    output: Path
    dataset: Dataset
    splits: Sequence[Split]  # the data's own, or one for each fold
    word2vec: Path  # the bundle or run with the word2vec vectors
    shares: tuple[float, ...] = (1.0, 0.3, 0.1)  # fractions of the training examples, each above 0 and at most 1
    vectors: Mapping[str, Path] = field(default_factory=dict)  # files of other vectors, by the names of their rows

    valuable = ("compare",)
    may_replace = staticmethod(written_as("comparison"))

    @classmethod
    def of(
        cls, fit: FitJob, embedder: ElmoEmbedder, output: Path, reporter: Reporter, *, folds: int | None = None,
        word2vec: Path | None = None, **options: Any,
    ) -> "CompareJob":  # fmt: skip
        """Read and split the data; the word2vec vectors are by default the model's.

        Without `folds`, one file that is not divided is cross-validated if its random split has few test examples.
        """
        check_settings(fit.settings)
        word2vec = word2vec or embedder.bundle.path
        Word2Vec.load(word2vec)  # raises the error that says what to do
        dataset = load_dataset(fit.files, fit.reading, reporter, needs_test=True)
        return cls(
            fit=fit, embedder=embedder, output=output, dataset=dataset, word2vec=word2vec,
            splits=_splits(fit, dataset, folds, reporter), **options,
        )  # fmt: skip

    @property
    def inputs(self) -> list[Path]:
        """The paths of the data, the models and other vectors."""
        models = [self.embedder.bundle.path, self.word2vec]
        return [*self.dataset.files.values(), *models, *self.vectors.values()]

    def made_from(self) -> dict[str, Any]:
        """Return what the scores depend on."""
        return {
            **manifest_of(self.fit, self.dataset, self.embedder),
            "shares": self.shares,
            "folds": len(self.splits),
            "word2vec": word2vec_digest(Word2Vec.load(self.word2vec)),
            "vectors": {name: file_digest(path) for name, path in self.vectors.items()},
        }

    def make(self, path: Path, work: Work) -> Comparison:
        """Train and test the models in all settings; write and return the comparison."""
        study, bundle = _Study(self, work), self.embedder.bundle
        comparison = Comparison(
            models=study.models,
            runs=study.runs(),
            name=self.output.name,
            metric=study.metric,
            seed=self.fit.files.seed,
            num_folds=len(self.splits),
            facts={
                "model": {"path": str(bundle.path), "digest": bundle.digest},
                "word2vec": str(self.word2vec),
                "vectors": {name: str(file) for name, file in self.vectors.items()},
                "examples": {part: len(rows) for part, rows in self.dataset.split.parts().items()},
                "files": [file.name for file in self.dataset.files.values()],
            },
        )
        path.mkdir()
        write_report(path, "comparison", comparison.name, comparison.lines(), comparison.to_json())
        return comparison


def _splits(fit: FitJob, dataset: Dataset, folds: int | None, reporter: Reporter) -> list[Split]:
    """Return the data's own split, or one for each cross-validation fold."""
    num_tests = len(dataset.split.test)
    if folds is None:
        folds = DEFAULT_FOLDS if dataset.is_split and num_tests < FEW_EXAMPLES else 1
    if folds > 1 and dataset.is_split:
        reporter.note(
            _(
                "{count}-fold cross-validation tests on all {total} examples; --folds 1 would use only {num_tests}."
            ).format(count=folds, total=f"{len(dataset.examples):,}", num_tests=f"{num_tests:,}")
        )
        return split_into_folds(dataset, folds, fit.files.seed, fit.files.limit)
    if folds > 1:
        raise OptionError.together("--folds", "--dev, --test, train.*")
    if not num_tests:
        raise CorpusError.needs(fit.files.data, "--test FILE")
    return [dataset.split]


Setting = tuple[Model, float, int, int]


class _Study:
    """Holds the vectors that the models read, and does one training run for each setting."""

    def __init__(self, job: CompareJob, work: Work) -> None:
        self._job, self._work, self._dataset = job, work, job.dataset
        self.metric = main_metric(job.fit.settings, job.dataset.scheme)
        self._texts = read_texts(job.dataset.examples, job.embedder, work.reporter)
        self._word2vec = read_alike(Word2Vec.load(job.word2vec), job.embedder, sentences_of(self._texts))
        self._others = {
            name: load_vectors(path, self._texts, job.fit.settings, work.reporter) for name, path in job.vectors.items()
        }
        self._features = cache(self._compute_features)  # when a row first needs them
        self._fitted: dict[tuple[str, bytes], linear.FittedLinear] = {}  # by the rows that a model is fitted on

    @cached_property
    def _cache(self) -> VectorCache:
        """The ELMo vectors of all sentences, computed only when a row of the comparison needs them."""
        return VectorCache.on_disk(self._work.within("cache"), self._job.embedder, sentences_of(self._texts))

    @cached_property
    def models(self) -> list[Model]:
        """The rows of the comparison, cheapest first."""
        settings, names = self._job.fit.settings, list(self._others)
        networks = [WORD2VEC, ELMO, BOTH]
        if settings.regression:
            return [MAJORITY, *networks]
        if settings.kind == "tag":
            return [MAJORITY, CRF, *(Model(name, inputs=("word2vec",)) for name in names), *networks]
        others = [Model(f"linear {name}", (name,)) for name in names]
        others += [Model(f"TF-IDF with {name}", (linear.CHARACTERS, name)) for name in names]
        return [MAJORITY, TFIDF, LINEAR_WORD2VEC, TFIDF_WORD2VEC, *others, LINEAR_ELMO, TFIDF_ELMO, *networks]

    def settings(self) -> Iterator[Setting]:
        """Yield the model, share, seed and fold of each training run, networks last; folds take the seeds in turn.

        Networks for classes are trained on the largest share only, because linear models learn more from few labels.
        """
        seeds, shares, num_folds = self._job.fit.seeds(), self._job.shares, len(self._job.splits)
        simple, networks = ([model for model in self.models if bool(model.inputs) == has] for has in (False, True))
        rows = [(model, share) for share in shares for model in simple]
        rows += [(model, share) for share in (shares[:1] if TFIDF in simple else shares) for model in networks]
        for model, share in rows:
            # With all labels, a model without random initial weights is the same for each seed.
            runs = [(seed, 0) for seed in (seeds[:1] if model in simple and share == 1 else seeds)]
            if num_folds > 1:
                runs = [(seeds[fold % len(seeds)], fold) for fold in range(num_folds)]
            yield from ((model, share, seed, fold) for seed, fold in runs)

    def runs(self) -> list[Run]:
        """Return all runs; report each model's mean score for a share of the examples once those runs are complete."""
        settings, runs = list(self.settings()), []
        step = Step(name="compare", compute=self._run, unit="trainings", total=len(settings), in_order=True)
        finished = zip(settings, self._work.run(step, settings), strict=True)
        for (model, _share), group in groupby(finished, key=lambda pair: pair[0][:2]):
            row = [Run(**part.value()) for _setting, part in group]
            message = _("{model} trained on {examples}: {metric} {score}").format(
                model=_(model.name),
                examples=counted(row[0].num_examples, "{number} example", "{number} examples"),
                metric=self.metric,
                score=f"{np.mean([run.score for run in row]):.4f}",
            )
            self._work.reporter.note(message)
            runs += row
        return runs

    def _run(self, setting: Setting, _files: Files) -> Json:
        """Train and test a model in one setting; return the fields of its `Run`."""
        model, share, seed, fold = setting
        split = self._job.splits[fold]
        if share < 1:
            limit = max(1, round(share * len(split.train)))
            split = replace(split, train=choose_rows(self._dataset.examples, split.train, limit, seed))
        dataset = replace(self._dataset, split=split)
        train, gold = dataset.gold("train"), dataset.gold("test")
        if model.inputs or model == CRF:
            answers = self._train(dataset, model, seed)
        elif model.members:
            answers = self._mix(dataset, model)
        else:
            answers = answer_majority(train, gold, self.metric)
        # In macro F1, classes have the same numbers in all runs.
        rows = answer_rows(gold, answers, self.metric, [example.labels[0] for example in dataset.examples])
        return {
            "model": model.name, "share": share, "seed": seed, "fold": fold, "num_examples": len(train),
            "score": score_rows(rows, metric=self.metric), "rows": rows.tolist(),
        }  # fmt: skip

    def _compute_features(self, name: str) -> linear.Features:
        """Return the features that a linear model reads: n-grams, word2vec, ELMo, or other vectors by name."""
        vectors = self._others.get(name, self._word2vec)
        if not isinstance(vectors, Word2Vec):
            return linear.Features([vectors])
        kind = linear.WORD2VEC if name in self._others else name
        return linear.Features.of(kind, self._texts, self._cache if kind == linear.ELMO else None, vectors)

    def _mix(self, dataset: Dataset, model: Model) -> Answers:
        """Fit and mix linear models; return the predicted classes of the test examples."""
        classes, train, num_classes = dataset.classes(dataset.labels), dataset.split.train, len(dataset.labels)
        folds = linear.held_out_folds(dataset, train, self._job.fit.files.seed)
        for name in model.members:
            if (name, train.tobytes()) not in self._fitted:
                fitted = linear.fit_linear(self._features(name), train, classes[train], num_classes, folds)
                self._fitted[name, train.tobytes()] = fitted
        members = {name: self._fitted[name, train.tobytes()] for name in model.members}
        offers = [(name, member.held_out, np.arange(len(train))) for name, member in members.items()]
        weights, _judged = linear.choose_members(offers, classes[train], class_score(self.metric))
        test = dataset.split.test
        logs = {name: linear.predict_rows(members[name].model, self._features(name), test) for name in weights}
        return [[dataset.labels[best]] for best in linear.mix(logs, weights).argmax(axis=1)]

    def _train(self, dataset: Dataset, model: Model, seed: int) -> Answers:
        """Train a network or a CRF; return the labels that it predicts for the test examples."""
        settings = self._job.fit.settings
        word2vec = self._others.get(model.name, self._word2vec) if "word2vec" in model.inputs else None
        assert word2vec is None or isinstance(word2vec, Word2Vec)
        by_characters = settings.kind == "tag" and not dataset.by_words
        inputs = (*model.inputs, *(("characters",) if by_characters else ()))
        head = "linear" if model == CRF else "bilstm" if settings.head == "mixture" else settings.head
        task = PreparedTask.of_texts(
            replace(self._job.fit, settings=replace(settings, inputs=inputs, head=head)),
            dataset,
            self._job.embedder,
            self._texts,
            cache=self._cache if model.needs_elmo else None,
            word2vec=word2vec,
            reporter=SilentReporter(self._work.reporter.warn),
        )
        return task.answers(task.train(seed).head, "test")
