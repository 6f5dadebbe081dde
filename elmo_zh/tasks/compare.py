"""Compare task networks that read word2vec, ELMo or both, trained on all labels and on fractions of them.

A training run is a part, whose value has each test example's contribution to the score. Baselines and linear models run
first.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from itertools import chain, groupby, product
from pathlib import Path
from typing import Any

import numpy as np

from elmo_zh.bundle.find_bundle import find_installed, installed_name, shown_model
from elmo_zh.bundle.layout import BundleLayout
from elmo_zh.bundle.word2vec_table import Word2Vec
from elmo_zh.config.task_settings import FitJob
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.errors import CorpusError, OptionError
from elmo_zh.language import translate
from elmo_zh.run.job import Files, Json, Step, Work, run_job
from elmo_zh.run.mark import written_as
from elmo_zh.run.reporter import Reporter, SilentReporter, WarningsOnly, counted
from elmo_zh.tasks import linear
from elmo_zh.tasks.comparison import (
    ANCESTOR,
    BOTH,
    CRF,
    ELMO,
    FEW_EXAMPLES,
    LINEAR_ELMO,
    LINEAR_WORD2VEC,
    MAJORITY,
    TFIDF,
    TFIDF_ELMO,
    TFIDF_WORD2VEC,
    WORD2VEC,
    Comparison,
    Run,
)
from elmo_zh.tasks.datasets import Dataset, choose_examples, find_files, folds_of, load_dataset
from elmo_zh.tasks.encode_texts import Texts, read_alike, read_texts, sentences_of, word2vec_digest
from elmo_zh.tasks.fit import check_head, manifest_of
from elmo_zh.tasks.mixture import LinearModels
from elmo_zh.tasks.predictions import Prediction, predict_majority
from elmo_zh.tasks.prepared_task import PreparedTask
from elmo_zh.tasks.scores import example_rows, main_metric, score_rows
from elmo_zh.tasks.vector_cache import VectorCache

DEFAULT_FOLDS = 3
# The linear models that each row mixes.
_MIXED = {
    TFIDF: (linear.CHARACTERS,),
    LINEAR_WORD2VEC: (linear.WORD2VEC,),
    TFIDF_WORD2VEC: (linear.CHARACTERS, linear.WORD2VEC),
    LINEAR_ELMO: (linear.ELMO,),
    TFIDF_ELMO: (linear.CHARACTERS, linear.ELMO),
}
_INPUTS = {WORD2VEC: ("word2vec",), ELMO: ("elmo",), BOTH: ("word2vec", "elmo"), ANCESTOR: ("word2vec", "elmo")}


@dataclass(frozen=True, kw_only=True)
class CompareJob:
    """The options of a comparison: the task, the shares of the labels, the folds, and the other models' folders."""

    # Data, network and training. The comparison chooses the inputs; each of the `num_seeds` trainings of a setting
    # draws its own labels.
    fit: FitJob
    shares: tuple[float, ...] = (1.0, 0.3, 0.1)  # fractions of the training examples, each above 0 and at most 1
    # Number of cross-validation folds; 1 means no cross-validation. None means `DEFAULT_FOLDS` if the examples come
    # undivided and fewer than `FEW_EXAMPLES` would be tested, else 1.
    folds: int | None = None
    # The bundle or run with the word2vec vectors; None for the model itself, or its ancestor
    word2vec: Path | None = None
    # The bundle that training started from; None to look for it among the installed models
    ancestor: Path | None = None


def compare_task(
    job: CompareJob, embedder: ElmoEmbedder, output: Path, *, force: bool = False, reporter: Reporter | None = None
) -> Comparison:
    """Train each model on each share of the labels, test it, and write the comparison to a folder."""
    reporter = reporter or SilentReporter()
    return run_job(ComparisonJob.of(job, embedder, output, reporter), force=force, reporter=reporter)


def _folds(job: CompareJob, dataset: Dataset, reporter: Reporter) -> list[Dataset]:
    """Return the data with its own split, or one dataset per cross-validation fold."""
    count, num_tests = job.folds, len(dataset.test)
    if count is None:
        count = DEFAULT_FOLDS if dataset.is_split and num_tests < FEW_EXAMPLES else 1
    if count > 1 and not dataset.is_split:
        raise OptionError(
            "--folds divides a single file, but this data is already divided into parts. Leave out --folds."
        )
    if count > 1:
        total = sum(map(len, dataset.parts().values()))
        reporter.note(
            f"{count}-fold cross-validation tests on all {total:,} examples; --folds 1 would use only {num_tests:,}."
        )
        return folds_of(dataset, count, job.fit.files.seed)
    if not num_tests:
        raise CorpusError(f"{job.fit.files.data}: there are no test examples to score. Give a file: --test FILE")
    return [dataset]


def _find_ancestor(job: CompareJob, embedder: ElmoEmbedder, reporter: Reporter) -> ElmoEmbedder | None:
    """Return the model that the compared one was started from, or None if it is unknown or not installed."""
    bundle = embedder.bundle
    load = partial(ElmoEmbedder.load, device=embedder.device, precision=embedder.precision, unknown=embedder.unknown)
    start = bundle.info["origin"].get("started_from")
    expected = start.get("digest") if isinstance(start, dict) else None
    if job.ancestor is not None:
        ancestor = load(job.ancestor)
        if ancestor.bundle.digest != expected:
            origin = f"adapted from model {expected}" if expected else "not adapted from another model"
            raise OptionError(
                f"--ancestor {job.ancestor} is model {ancestor.bundle.digest}, but {bundle.path} was {origin}. Leave"
                " out --ancestor."
            )
        return ancestor
    folder = find_installed(expected) if expected else None
    if folder is not None:
        reporter.note(f"{bundle.path} was adapted from {shown_model(folder)}, which is also compared.")
        return load(folder)
    if expected and installed_name(bundle.path) is None:
        reporter.note(
            f"{bundle.path} was adapted from a model that is not installed. To compare that model too, give its folder:"
            " --ancestor BUNDLE"
        )
    return None


def _word2vec_source(embedder: ElmoEmbedder, ancestor: ElmoEmbedder | None, reporter: Reporter) -> Path:
    """Return the folder of the model, or of its ancestor if only the ancestor has word2vec vectors."""
    own = embedder.bundle.path
    if ancestor is None or BundleLayout(own).word2vec.is_file():
        return own
    reporter.note(
        f"{own} has no word2vec vectors; the vectors in {shown_model(ancestor.bundle.path)} are used instead."
    )
    return ancestor.bundle.path


class _Vectors:
    """A model and all texts in its tokens; vectors are computed only when a row of the comparison needs them."""

    def __init__(self, dataset: Dataset, embedder: ElmoEmbedder, work: Work) -> None:
        self.embedder, self._work = embedder, work
        self.texts = read_texts(dataset, embedder, work.reporter)

    @cached_property
    def cache(self) -> VectorCache:
        """The vectors of all sentences, computed unless the work folder already has them."""
        list(self._work.run(Step(name="vectors", compute=self._measure, in_order=True), [None]))
        return self._open()

    def _open(self) -> VectorCache:
        sentences = sentences_of(chain(*self.texts.values()))
        return VectorCache.on_disk(self._work.within("cache"), self.embedder, sentences)

    def _measure(self, _: None, _files: Files) -> float:
        started = time.perf_counter()
        self._open()
        return time.perf_counter() - started

    @property
    def seconds(self) -> float:
        """The seconds spent computing the vectors; 0 until they are computed."""
        return float(sum(part.value() for part in self._work.finished("vectors")))


@dataclass(frozen=True, kw_only=True, eq=False)
class ComparisonJob:
    """Trains and tests a model for each setting, and compares the scores."""

    job: CompareJob
    whole: Dataset
    folds: Sequence[Dataset]
    embedder: ElmoEmbedder
    ancestor: ElmoEmbedder | None
    word2vec: Word2Vec
    output: Path

    valuable = ("compare", "networks")
    may_replace = staticmethod(written_as("comparison"))

    @classmethod
    def of(cls, job: CompareJob, embedder: ElmoEmbedder, output: Path, reporter: Reporter) -> "ComparisonJob":
        """Read the data, and find the models to compare with."""
        check_head(job.fit.settings, _INPUTS[BOTH])
        files = find_files(job.fit.files, reporter)
        ancestor = _find_ancestor(job, embedder, reporter)
        job = replace(job, word2vec=job.word2vec or _word2vec_source(embedder, ancestor, reporter))
        word2vec = Word2Vec.load(job.word2vec)
        dataset = load_dataset(files, job.fit.reading, reporter, needs_test=True)
        return cls(
            job=job,
            whole=dataset,
            folds=_folds(job, dataset, reporter),
            embedder=embedder,
            ancestor=ancestor,
            word2vec=word2vec,
            output=output,
        )

    @property
    def inputs(self) -> list[Path]:
        """The data and the models."""
        models = [embedder.bundle.path for embedder in (self.embedder, self.ancestor) if embedder]
        return [*self.whole.files.values(), *models, *([self.job.word2vec] if self.job.word2vec else [])]

    def made_from(self) -> dict[str, Any]:
        """Return everything that the scores depend on."""
        return {
            **manifest_of(self.job.fit, self.folds[0], self.embedder),
            "shares": self.job.shares,
            "folds": len(self.folds),
            "word2vec": word2vec_digest(self.word2vec),
            "ancestor": self.ancestor.bundle.digest if self.ancestor else None,
        }

    def make(self, path: Path, work: Work) -> Comparison:
        """Run all settings, and write the comparison."""
        vectors = _Vectors(self.whole, self.embedder, work)
        found = dict.fromkeys((CRF, WORD2VEC, ELMO, BOTH), vectors)
        if self.ancestor:
            found[ANCESTOR] = _Vectors(self.whole, self.ancestor, work.within("ancestor"))
        comparison = _Study(self, found, work).compared()
        comparison.write(path)
        return comparison


Setting = tuple[str, float, int, int]


class _Study:
    """The vectors that the models read; does one training run for each setting."""

    def __init__(self, study: ComparisonJob, vectors: Mapping[str, _Vectors], work: Work) -> None:
        self.job, self.whole, self.folds, self.word2vec = study.job, study.whole, study.folds, study.word2vec
        self.vectors, self._work, self._name = vectors, work, study.output.name

    @property
    def _metric(self) -> str:
        return main_metric(self.job.fit.settings, marks_spans=bool(self.whole.scheme))

    def settings(self) -> Iterator[Setting]:
        """Yield the model, share, seed and fold of each training run, networks last; folds cycle through the seeds.

        Networks for classes are trained on the largest share only, because linear models learn more from few labels.
        """
        settings, seeds, shares = self.job.fit.settings, self.job.fit.seeds(), self.job.shares
        has_classes = settings.kind == "classify" and not settings.regression
        simple = [MAJORITY, *(_MIXED if has_classes else (CRF,) if settings.kind == "tag" else ())]
        networks = product([[model for model in self.vectors if model != CRF]], shares[:1] if has_classes else shares)
        for models, share in chain(product([simple], shares), networks):
            for model in models:
                if len(self.folds) > 1:
                    yield from ((model, share, seeds[fold % len(seeds)], fold) for fold in range(len(self.folds)))
                    continue
                # With all labels, a model without random initial weights is the same for each seed.
                yield from (
                    (model, share, seed, 0) for seed in (seeds[:1] if model in simple and share == 1 else seeds)
                )

    def runs(self) -> list[Run]:
        """Train and test every setting, reporting each row of the comparison once it is complete."""
        settings, runs = list(self.settings()), []
        step = Step(name="compare", compute=self._run, unit="training runs", total=len(settings), in_order=True)
        finished = zip(settings, self._work.run(step, settings), strict=True)
        for (model, _), group in groupby(finished, key=lambda pair: pair[0][:2]):
            row = []
            for _, part in group:
                row.append(Run.from_json(part.value()))
                self._work.discard("networks")  # of this setting
            score, examples = np.mean([run.score for run in row]), counted(row[0].num_examples, "example")
            self._work.reporter.note(f"{translate(model)} trained on {examples}: {self._metric} {score:.4f}")
            runs += row
        return runs

    def _run(self, setting: Setting, _files: Files) -> Json:
        """Train and test one setting."""
        model, share, seed, fold = setting
        dataset = self._shared(share, seed, fold)
        trained: dict[str, Any] = {"dev_score": None, "is_unfinished": False}
        started = time.perf_counter()
        if model in self.vectors:
            predictions, trained = self._train(dataset, setting)
        elif model in _MIXED:
            predictions, trained["seconds"] = self._linear.predict(_MIXED[model], dataset)
        else:
            predictions = predict_majority(dataset.train, dataset.test, self.job.fit.settings, dataset.scheme)
        rows = example_rows(
            dataset.test,
            predictions,
            metric=self._metric,
            marks_spans=bool(dataset.scheme),
            labels=self._labels,
        )
        return Run(
            model=model,
            share=share,
            seed=seed,
            fold=fold,
            num_examples=len(dataset.train),
            score=score_rows(rows, metric=self._metric),
            rows=rows,
            **{"seconds": time.perf_counter() - started, **trained},
        ).to_json()

    @cached_property
    def _labels(self) -> set[str]:
        """All class labels, so that they get the same numbers in all folds."""
        examples = chain.from_iterable(self.whole.parts().values())
        return {example.labels[0] for example in examples} if self._metric == "macro_f1" else set()

    def _shared(self, share: float, seed: int, fold: int) -> Dataset:
        dataset = self.folds[fold]
        if share == 1:
            return dataset
        chosen = choose_examples(dataset.train, max(1, round(share * len(dataset.train))), seed)
        return replace(dataset, train=chosen)

    def _texts(self, dataset: Dataset, model: str) -> Texts:
        texts = self.vectors[model].texts
        # Examples are looked up by identity: two with the same content may be in different parts.
        texts_of = {
            id(example): own
            for part, examples in self.whole.parts().items()
            for example, own in zip(examples, texts[part], strict=True)
        }
        return {part: [texts_of[id(example)] for example in examples] for part, examples in dataset.parts().items()}

    @cached_property
    def _linear(self) -> LinearModels:
        vectors = self.vectors[ELMO]
        word2vec = read_alike(self.word2vec, vectors.embedder, sentences_of(chain(*vectors.texts.values())))
        return LinearModels(
            self.whole, vectors.texts, cache=lambda: vectors.cache, word2vec=word2vec, seed=self.job.fit.files.seed
        )

    def _train(self, dataset: Dataset, setting: Setting) -> tuple[list[Prediction], dict[str, Any]]:
        """Train a network; return its predictions for the test examples, and the attributes that it sets in `Run`."""
        model, share, seed, fold = setting
        name = "ancestor" if model == ANCESTOR else "-".join(_INPUTS.get(model, ("crf",)))
        reporter = WarningsOnly(self._work.reporter)
        work = Work(self._work.path / "networks" / f"{name}-{share}-seed-{seed}-fold-{fold}", reporter)
        inputs, vectors, settings = _INPUTS.get(model, ()), self.vectors[model], self.job.fit.settings
        by_characters = settings.kind == "tag" and not dataset.by_words
        names = (*inputs, *(("characters",) if by_characters else ()))
        # A network that reads only ELMo has to take it as its input.
        elmo_at = "input" if names == ("elmo",) and settings.elmo_at == "output" else settings.elmo_at
        chosen = "linear" if model == CRF else "bilstm" if settings.head == "mixture" else settings.head
        job = replace(self.job.fit, settings=replace(settings, inputs=names, elmo_at=elmo_at, head=chosen))
        task = PreparedTask.of_texts(
            job,
            dataset,
            vectors.embedder,
            self._texts(dataset, model),
            cache=vectors.cache if "elmo" in inputs else None,
            word2vec=self.word2vec if "word2vec" in inputs else None,
            reporter=reporter,
        )
        trained = task.train(seed, work)
        predictions = task.predictions(task.load(seed, trained), "test")
        return predictions, {
            "seconds": float(sum(line["seconds"] for line in trained.lines)),
            "dev_score": trained.best_score,
            "is_unfinished": trained.is_unfinished(job.training),
        }

    def compared(self) -> Comparison:
        """Gather the runs into a comparison, with the facts about model, data and settings."""
        runs = self.runs()
        settings, bundle = self.job.fit.settings, self.vectors[ELMO].embedder.bundle
        ancestor = self.vectors[ANCESTOR].embedder.bundle if ANCESTOR in self.vectors else None
        return Comparison(
            runs=runs,
            name=self._name,
            metric=self._metric,
            seed=self.job.fit.files.seed,
            num_folds=len(self.folds),
            facts={
                "model": {"path": str(bundle.path), "digest": bundle.digest},
                "ancestor": {"path": str(ancestor.path), "digest": ancestor.digest} if ancestor else None,
                "word2vec": str(self.job.word2vec),
                "examples": {part: len(examples) for part, examples in self.whole.parts().items()},
                "files": [path.name for path in self.whole.files.values()],
                "settings": asdict(settings),
                "training": asdict(self.job.fit.training),
                "vectors_seconds": self.vectors[ELMO].seconds,
            },
        )
