"""Compare models that read word2vec, ELMo, both or other vectors, trained on all labels and on fractions of them.

A training run is a part, whose value has each test example's contribution to the score. Baselines and linear models run
first.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from elmo_zh.bundle import BundleLayout
from elmo_zh.bundle.word2vec_table import Word2Vec
from elmo_zh.config.task_settings import FitJob
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.errors import CorpusError, OptionError
from elmo_zh.language import N_, _
from elmo_zh.pictures.canvas import save_picture
from elmo_zh.pictures.figures import learning_figure
from elmo_zh.run.files import file_digest, write_json
from elmo_zh.run.job import Files, Json, Step, Work, run_job
from elmo_zh.run.outputs import write_mark, written_as
from elmo_zh.run.reporter import Reporter, SilentReporter, counted
from elmo_zh.run.tables import table
from elmo_zh.tasks import linear
from elmo_zh.tasks.datasets import Dataset, Split, choose_rows, find_files, load_dataset, split_into_folds
from elmo_zh.tasks.encode_texts import read_alike, read_texts, sentences_of, word2vec_digest
from elmo_zh.tasks.fit import check_head, manifest_of
from elmo_zh.tasks.other_vectors import load_vectors
from elmo_zh.tasks.predictions import Prediction, class_predictions, predict_majority
from elmo_zh.tasks.prepared_task import PreparedTask, class_score, linear_models
from elmo_zh.tasks.scores import Difference, bootstrap_difference, example_rows, main_metric, score_rows
from elmo_zh.tasks.vector_cache import VectorCache
from elmo_zh.version import __version__

DEFAULT_FOLDS = 3
# With fewer test examples, which can only show large differences, a file that is split here is divided into folds.
FEW_EXAMPLES = 300
DATA = "comparison.json"


@dataclass(frozen=True)
class Model:
    """A row of a comparison: the members of a mixture of linear models, or the inputs of a network."""

    name: str
    members: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    options: tuple[str, ...] | None = None  # of `task fit`, to train it or a mixture that may contain it

    @property
    def needs_elmo(self) -> bool:
        """Whether it needs ELMo's vectors."""
        return linear.ELMO in (*self.members, *self.inputs)


_NETWORK, _WITHOUT_ELMO = ("--head", "bilstm"), ("--inputs", "word2vec")
MAJORITY = Model(N_("majority"))
CRF = Model(N_("CRF on character n-grams"), options=("--head", "linear"))
TFIDF = Model("TF-IDF", (linear.CHARACTERS,), options=_WITHOUT_ELMO)
TFIDF_WORD2VEC = Model(N_("TF-IDF with word2vec"), (linear.CHARACTERS, linear.WORD2VEC), options=_WITHOUT_ELMO)
TFIDF_ELMO = Model(N_("TF-IDF with ELMo"), (linear.CHARACTERS, linear.ELMO), options=())
LINEAR_WORD2VEC = Model(N_("linear word2vec"), (linear.WORD2VEC,), options=_WITHOUT_ELMO)
LINEAR_ELMO = Model(N_("linear ELMo"), (linear.ELMO,), options=("--inputs", "elmo"))
WORD2VEC = Model("word2vec", inputs=("word2vec",), options=(*_NETWORK, *_WITHOUT_ELMO))
ELMO = Model("ELMo", inputs=("elmo",), options=(*_NETWORK, "--inputs", "elmo"))
BOTH = Model("[word2vec; ELMo]", inputs=("word2vec", "elmo"), options=_NETWORK)
# Like BOTH, with the ELMo vectors of the model that the compared one was started from.
ANCESTOR = Model(N_("[word2vec; ancestor ELMo]"), inputs=("word2vec", "elmo"))


@dataclass(frozen=True, kw_only=True)
class Run:
    """One model, trained on a share of the labels with one seed, and tested."""

    model: str
    share: float
    seed: int
    fold: int = 0  # the fold used for testing, from 0
    num_examples: int
    score: float
    rows: Sequence[Sequence[float]]  # contribution of each test example to the score
    dev_score: float | None = None  # the main score on the development examples; None for a baseline
    is_unfinished: bool = False  # whether the epochs ran out while the development score was still rising


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison:
    """All scores and their differences; `facts` has the model, data and settings."""

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

    def num_examples(self, share: float) -> int:
        """Return the number of training examples of a share of the labels."""
        return next(run.num_examples for run in self.runs if run.share == share)

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
        """The ELMo model that is compared with the others: for classes, the mixture with TF-IDF."""
        return TFIDF_ELMO if TFIDF_ELMO in self.models else BOTH

    @cached_property
    def leads(self) -> dict[str, dict[float, Difference]]:
        """How much higher the challenger scores than each other model, by name and share of the labels.

        The ancestor is compared with [word2vec; ELMo], which differs from it only in the model.
        """
        leads: dict[str, dict[float, Difference]] = {}
        for model in self.models:
            challenger = BOTH if model == ANCESTOR else self.challenger
            shares = [share for share in self.shares if self.of(model, share) and self.of(challenger, share)]
            if model not in (MAJORITY, challenger):
                leads[model.name] = {share: self.difference(challenger, model, share) for share in shares}
        return leads

    def _best(self, models: Sequence[Model]) -> Model:
        return max(models, key=lambda model: self.mean(model, self.shares[0]))

    def verdict(self) -> str:
        """Return a sentence on whether ELMo helps, with its lead over the best model without it, with all labels."""
        rival = self._best([model for model in self.models if not model.needs_elmo and model != MAJORITY])
        lead = self.leads[rival.name][self.shares[0]]
        helps, harms = _("ELMo helps here"), _("ELMo does not help here")
        judgement = helps if lead.low > 0 else harms if lead.high < 0 else _("It is not certain that ELMo helps here")
        return f"{judgement}: {self._outcome(self.challenger, rival)}"

    def _outcome(self, challenger: Model, rival: Model) -> str:
        lead = self.leads[rival.name][self.shares[0]]
        low, value, high = (f"{100 * bound:+.1f}" for bound in (lead.low, lead.value, lead.high))
        return _(
            "The lead of {challenger} over {rival} is {value} points of {metric} with {number} training examples (95%"
            " interval {low} to {high})."
        ).format(
            challenger=_(challenger.name), rival=_(rival.name), value=value, metric=self.metric, low=low, high=high,
            number=f"{self.num_examples(self.shares[0]):,}",
        )  # fmt: skip

    @cached_property
    def recommended(self) -> Model:
        """The cheapest model that is not significantly worse than the best with all labels."""
        best, share = self._best(self.models), self.shares[0]
        return next(model for model in self.models if not self.difference(best, model, share).low > 0)

    def recommendation(self) -> str:
        """Return a sentence that recommends a model, and compares its score with the best model's."""
        chosen, best = (
            f"{_(model.name)} ({self.mean(model, self.shares[0]):.4f})"
            for model in (self.recommended, self._best(self.models))
        )
        return _("Recommended: {chosen}, the cheapest that is not clearly worse than the best, {best}.").format(
            chosen=chosen, best=best
        )

    def hints(self) -> Iterator[str]:
        """Yield what the adaptation adds, and whether longer training may raise the scores."""
        if ANCESTOR in self.models:
            yield self._outcome(BOTH, ANCESTOR)
        if unfinished := sum(run.is_unfinished for run in self.runs):
            yield _(
                "Networks that ended at the limit of epochs while still improving: {unfinished} of {networks}. Raise"
                " the limit: --epochs {value}"
            ).format(
                unfinished=unfinished,
                networks=sum(run.dev_score is not None for run in self.runs),
                value=2 * self.facts["training"]["epochs"],
            )

    def lines(self) -> list[str]:
        """Return the tables of scores and leads, the hints, the verdict and the recommendation as Markdown."""
        columns = [
            _("{percent}% of the labels ({share})").format(
                percent=f"{100 * share:.3g}", share=f"{self.num_examples(share):,}"
            )
            for share in self.shares
        ]
        head = _("{metric} on the test examples").format(metric=self.metric)
        scores = [[_(model.name), *(self._scores(model, share) for share in self.shares)] for model in self.models]
        lead = _("lead of {challenger} in points").format(challenger=_(self.challenger.name))
        leads = [
            [_(name), *(by_share[share].points() if share in by_share else "" for share in self.shares)]
            for name, by_share in self.leads.items()
            if name != ANCESTOR.name
        ]
        tables = [*table([head, *columns], scores).split("\n"), "", *table([lead, *columns], leads).split("\n"), ""]
        return [*tables, *self.hints(), self.verdict(), self.recommendation()]

    def _scores(self, model: Model, share: float) -> str:
        scores = [run.score for run in self.of(model, share)]
        if not scores:
            return ""
        spread = f" ({min(scores):.4f} - {max(scores):.4f})" if len(scores) > 1 else ""
        return f"{self.mean(model, share):.4f}{spread}"

    def to_json(self) -> dict[str, Any]:
        """Return all figures except the scores of individual examples."""
        return {
            "elmo_zh": __version__,
            "metric": self.metric,
            "verdict": self.verdict(),
            "recommended": self.recommended.name,
            "challenger": self.challenger.name,
            "leads": [
                {"over": name, "share": share, **asdict(lead), "is_sure": lead.is_sure}
                for name, by_share in self.leads.items()
                for share, lead in by_share.items()
            ],
            "folds": self.num_folds,
            "runs": [{name: value for name, value in vars(run).items() if name != "rows"} for run in self.runs],
            **self.facts,
        }

    def write(self, folder: Path) -> None:
        """Write the report to a new folder: Markdown, JSON, and a picture of the learning curves."""
        folder.mkdir()
        text = "\n".join([f"# {self.name}", "", *self.lines(), ""])
        (folder / "comparison.md").write_text(text, encoding="utf-8")
        curves: dict[str, list[tuple[int, list[float]]]] = {model.name: [] for model in self.models}
        for model in self.models:
            for share in reversed(self.shares):
                if runs := self.of(model, share):
                    curves[model.name].append((self.num_examples(share), [run.score for run in runs]))
        save_picture(learning_figure(curves, self.metric, self.name, self.verdict()), folder / "curves.png")
        write_json(folder / DATA, self.to_json())
        write_mark(folder, "comparison", 1, {"model": self.facts["model"]})


def compare_task(
    fit: FitJob, embedder: ElmoEmbedder, output: Path, *, force: bool = False, reporter: Reporter | None = None,
    **options: Any,
) -> Comparison:  # fmt: skip
    """Train each model on each share of the labels, test it, and write the comparison to a folder.

    `CompareJob.of` describes the options. Each of the `num_seeds` trainings of a setting draws its own labels.
    """
    reporter = reporter or SilentReporter()
    return run_job(CompareJob.of(fit, embedder, output, reporter, **options), force=force, reporter=reporter)


@dataclass(frozen=True, kw_only=True, eq=False)
class CompareJob:
    """Trains and tests a model for each setting, and compares the scores."""

    fit: FitJob
    embedder: ElmoEmbedder
    output: Path
    dataset: Dataset
    splits: Sequence[Split]  # the data's own, or one for each fold
    word2vec: Path  # the bundle or run with the word2vec vectors
    ancestor: ElmoEmbedder | None  # the model that training started from, to be compared too
    shares: tuple[float, ...] = (1.0, 0.3, 0.1)  # fractions of the training examples, each above 0 and at most 1
    vectors: Mapping[str, Path] = field(default_factory=dict)  # files of other vectors, by the names of their rows

    valuable = ("compare", "networks")
    may_replace = staticmethod(written_as("comparison"))

    @classmethod
    def of(
        cls, fit: FitJob, embedder: ElmoEmbedder, output: Path, reporter: Reporter, *, folds: int | None = None,
        word2vec: Path | None = None, ancestor: Path | None = None, **options: Any,
    ) -> "CompareJob":  # fmt: skip
        """Read the data; by default take three folds of few examples, and the word2vec vectors of the model."""
        check_head(fit.settings, BOTH.inputs)
        old = ancestor and ElmoEmbedder.load(
            ancestor, device=embedder.device, precision=embedder.precision, unknown=embedder.unknown
        )
        own = embedder.bundle.path
        word2vec = word2vec or (ancestor if ancestor and not BundleLayout(own).word2vec.is_file() else own)
        Word2Vec.load(word2vec)  # raises the error that says what to do
        dataset = load_dataset(find_files(fit.files, reporter), fit.reading, reporter, needs_test=True)
        return cls(
            fit=fit, embedder=embedder, output=output, dataset=dataset, ancestor=old or None, word2vec=word2vec,
            splits=_splits(fit, dataset, folds, reporter), **options,
        )  # fmt: skip

    @property
    def inputs(self) -> list[Path]:
        """The data and the models."""
        models = [embedder.bundle.path for embedder in (self.embedder, self.ancestor) if embedder]
        return [*self.dataset.files.values(), *models, self.word2vec, *self.vectors.values()]

    def made_from(self) -> dict[str, Any]:
        """Return everything that the scores depend on."""
        return {
            **manifest_of(self.fit, self.dataset, self.embedder),
            "shares": self.shares,
            "folds": len(self.splits),
            "word2vec": word2vec_digest(Word2Vec.load(self.word2vec)),
            "ancestor": self.ancestor and self.ancestor.bundle.digest,
            "vectors": {name: file_digest(path) for name, path in self.vectors.items()},
        }

    def make(self, path: Path, work: Work) -> Comparison:
        """Run all settings, and write the comparison."""
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
                "ancestor": self.ancestor and str(self.ancestor.bundle.path),
                "word2vec": str(self.word2vec),
                "vectors": {name: str(file) for name, file in self.vectors.items()},
                "examples": {part: len(rows) for part, rows in self.dataset.split.parts().items()},
                "files": [file.name for file in self.dataset.files.values()],
                "settings": asdict(self.fit.settings),
                "training": asdict(self.fit.training),
            },
        )
        comparison.write(path)
        return comparison


def _splits(fit: FitJob, dataset: Dataset, folds: int | None, reporter: Reporter) -> list[Split]:
    """Return the data's own split, or one for each cross-validation fold."""
    num_tests = len(dataset.split.test)
    if folds is None:
        folds = DEFAULT_FOLDS if dataset.is_split and num_tests < FEW_EXAMPLES else 1
    if folds > 1 and not dataset.is_split:
        raise OptionError(
            _("--folds divides a single file, but this data is already divided into parts. Leave out --folds.")
        )
    if folds > 1:
        reporter.note(
            _(
                "{count}-fold cross-validation tests on all {total} examples; --folds 1 would use only {num_tests}."
            ).format(count=folds, total=f"{len(dataset.examples):,}", num_tests=f"{num_tests:,}")
        )
        return split_into_folds(dataset, folds, fit.files.seed)
    if not num_tests:
        raise CorpusError(
            _("{data}: there are no test examples to score. Give a file: --test FILE").format(data=fit.files.data)
        )
    return [dataset.split]


class _Texts:
    """A model and all texts in its tokens; vectors are computed only when a row of the comparison needs them."""

    def __init__(self, dataset: Dataset, embedder: ElmoEmbedder, work: Work) -> None:
        self.embedder, self._work = embedder, work
        self.texts = read_texts(dataset.examples, embedder, work.reporter)

    @cached_property
    def cache(self) -> VectorCache:
        """The vectors of all sentences, computed unless the work folder already has them."""
        return VectorCache.on_disk(self._work.within("cache"), self.embedder, sentences_of(self.texts))


Setting = tuple[Model, float, int, int]


class _Study:
    """The vectors that the models read; does one training run for each setting."""

    def __init__(self, job: CompareJob, work: Work) -> None:
        self._job, self._work, self._dataset = job, work, job.dataset
        self.metric = main_metric(job.fit.settings, marks_spans=bool(job.dataset.scheme))
        self._texts = _Texts(job.dataset, job.embedder, work)
        self._old_texts = job.ancestor and _Texts(job.dataset, job.ancestor, work.within("ancestor"))
        self._word2vec = read_alike(Word2Vec.load(job.word2vec), job.embedder, sentences_of(self._texts.texts))
        self._others = {
            name: load_vectors(path, self._texts.texts, job.fit.settings) for name, path in job.vectors.items()
        }

    @cached_property
    def models(self) -> list[Model]:
        """The rows of the comparison, cheapest first."""
        settings, names = self._job.fit.settings, list(self._others)
        networks = [WORD2VEC, ELMO, BOTH, *([ANCESTOR] if self._old_texts else [])]
        if settings.regression:
            return [MAJORITY, *networks]
        if settings.kind == "tag":
            return [MAJORITY, CRF, *(Model(name, inputs=("word2vec",)) for name in names), *networks]
        others = [Model(f"linear {name}", (name,)) for name in names]
        others += [Model(f"TF-IDF with {name}", (linear.CHARACTERS, name)) for name in names]
        return [MAJORITY, TFIDF, LINEAR_WORD2VEC, TFIDF_WORD2VEC, *others, LINEAR_ELMO, TFIDF_ELMO, *networks]

    def settings(self) -> Iterator[Setting]:
        """Yield the model, share, seed and fold of each training run, networks last; folds cycle through the seeds.

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
        """Train and test every setting, reporting each row of the comparison once it is complete."""
        settings, runs = list(self.settings()), []
        step = Step(name="compare", compute=self._run, unit="training runs", total=len(settings), in_order=True)
        finished = zip(settings, self._work.run(step, settings), strict=True)
        for (model, _share), group in groupby(finished, key=lambda pair: pair[0][:2]):
            row = []
            for _setting, part in group:
                row.append(Run(**part.value()))
                self._work.discard("networks")  # of this setting
            examples = counted(row[0].num_examples, "{number} example", "{number} examples")
            score = f"{np.mean([run.score for run in row]):.4f}"
            message = _("{model} trained on {examples}: {metric} {score}")
            self._work.reporter.note(
                message.format(model=_(model.name), examples=examples, metric=self.metric, score=score)
            )
            runs += row
        return runs

    def _run(self, setting: Setting, _files: Files) -> Json:
        """Train and test one setting."""
        model, share, seed, fold = setting
        split = self._job.splits[fold]
        figures: dict[str, Any] = {}
        if share < 1:
            limit = max(1, round(share * len(split.train)))
            split = replace(split, train=choose_rows(self._dataset.examples, split.train, limit, seed))
        dataset = replace(self._dataset, split=split)
        train, test = dataset.part("train"), dataset.part("test")
        if model.inputs or model == CRF:
            predictions, figures = self._train(dataset, setting)
        elif model.members:
            predictions = self._mix(dataset, model)
        else:
            predictions = predict_majority(train, test, self._job.fit.settings, dataset.scheme)
        # In macro F1, classes have the same numbers in all runs.
        labels = {example.labels[0] for example in dataset.examples} if self.metric == "macro_f1" else ()
        marks_spans = bool(dataset.scheme)
        rows = example_rows(test, predictions, metric=self.metric, marks_spans=marks_spans, labels=labels)
        return {
            "model": model.name, "share": share, "seed": seed, "fold": fold, "num_examples": len(train),
            "score": score_rows(rows, metric=self.metric), "rows": rows.tolist(), **figures,
        }  # fmt: skip

    @cached_property
    def _linear(self) -> linear.LinearModels:
        texts = self._texts.texts

        def features_of(name: str) -> linear.Features:
            if name in self._others:
                return self._others[name].features(texts)
            cache = self._texts.cache if name == linear.ELMO else None
            return linear.Features.of(name, texts, cache, self._word2vec)

        return linear_models(self._dataset, features_of, self._job.fit.files.seed)

    def _mix(self, dataset: Dataset, model: Model) -> list[Prediction]:
        """Mix linear models; return the predictions for the test examples."""
        classes, train = dataset.classes(dataset.labels), dataset.split.train
        fitted = {name: self._linear.fit(name, train, classes[train]) for name in model.members}
        offers = [(name, each.held_out, np.arange(len(train))) for name, each in fitted.items()]
        weights, _judged = linear.choose_members(offers, classes[train], class_score(self.metric))
        logs = [self._linear.predict(name, fitted[name], dataset.split.test) for name in weights]
        return class_predictions(linear.mix(logs, [*weights.values()]), dataset.labels)

    def _train(self, dataset: Dataset, setting: Setting) -> tuple[list[Prediction], dict[str, Any]]:
        """Train a network; return its predictions for the test examples, and the attributes that it sets in `Run`."""
        model, share, seed, fold = setting
        settings, reporter = self._job.fit.settings, SilentReporter(self._work.reporter.warn)
        name = f"{self.models.index(model)}-{share}-seed-{seed}-fold-{fold}"
        work = Work(self._work.path / "networks" / name, reporter)
        by_characters = settings.kind == "tag" and not dataset.by_words
        inputs = (*model.inputs, *(("characters",) if by_characters else ()))
        # A network that reads only ELMo has to take it as its input.
        elmo_at = "input" if inputs == ("elmo",) and settings.elmo_at == "output" else settings.elmo_at
        head = "linear" if model == CRF else "bilstm" if settings.head == "mixture" else settings.head
        texts = self._old_texts if model == ANCESTOR and self._old_texts else self._texts
        word2vec = self._others[model.name].words if model.name in self._others else self._word2vec
        task = PreparedTask.of_texts(
            replace(self._job.fit, settings=replace(settings, inputs=inputs, elmo_at=elmo_at, head=head)),
            dataset,
            texts.embedder,
            texts.texts,
            cache=texts.cache if model.needs_elmo else None,
            word2vec=word2vec if "word2vec" in model.inputs else None,
            reporter=reporter,
        )
        trained = task.train(seed, work)
        is_unfinished = trained.is_unfinished(self._job.fit.training)
        predictions = task.predictions(task.load(seed, trained), "test")
        return predictions, {"dev_score": trained.best_score, "is_unfinished": is_unfinished}
