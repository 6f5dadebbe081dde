"""Compare task networks that read word2vec, ELMo or both, trained on all labels and on fractions of them.

Each finished training run leaves a record in `OUTPUT.parts/`, with each test example's contribution to the score, so an
interrupted comparison resumes without repeating one. Baselines and linear models run first.
"""

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from itertools import chain, groupby, product
from operator import itemgetter
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
from elmo_zh.run.files import claimed_output, remove
from elmo_zh.run.job import Work
from elmo_zh.run.mark import written_as
from elmo_zh.run.reporter import Reporter, SilentReporter, WarningsOnly, counted
from elmo_zh.run.work_folder import WorkFolder
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
from elmo_zh.tasks.encode_texts import Texts, read_alike, read_texts, sentences_of
from elmo_zh.tasks.fit import OTHER_TRAINING, TRAININGS, check_head, manifest_of
from elmo_zh.tasks.mixture import LinearModels
from elmo_zh.tasks.predictions import Prediction, predict_majority
from elmo_zh.tasks.prepared_task import PreparedTask
from elmo_zh.tasks.scores import example_rows, main_metric, score_rows
from elmo_zh.tasks.vector_cache import VectorCache

DEFAULT_FOLDS = 3
_SECONDS = "vectors_seconds"
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
    files = find_files(job.fit.files, reporter)
    read = [*files.paths().values(), *([job.word2vec] if job.word2vec else []), embedder.bundle.path]
    work = WorkFolder.of(output)
    with claimed_output(output, read, written_as("comparison"), force=force):
        check_head(job.fit.settings, _INPUTS[BOTH])
        ancestor = _find_ancestor(job, embedder, reporter)
        job = replace(job, word2vec=job.word2vec or _word2vec_source(embedder, ancestor, reporter))
        word2vec = Word2Vec.load(job.word2vec)
        dataset = load_dataset(files, job.fit.reading, reporter, needs_test=True)
        folds = _folds(job, dataset, reporter)
        manifest = _manifest(job, folds, embedder, word2vec, ancestor)
        work.open(manifest, force=force, refusal=OTHER_TRAINING, work=TRAININGS)
        vectors = _Vectors(dataset, embedder, work.path, reporter)
        others = {ANCESTOR: _Vectors(dataset, ancestor, work.path / "ancestor", reporter)} if ancestor else {}
        study = _Study(
            job=job,
            whole=dataset,
            folds=folds,
            vectors={CRF: vectors, WORD2VEC: vectors, ELMO: vectors, BOTH: vectors, **others},
            word2vec=word2vec,
            folder=work.path,
            reporter=WarningsOnly(reporter),
        )
        runs = study.runs(reporter)
        comparison = study.compared(runs, name=output.name)
        comparison.write(output)
        work.remove()
    return comparison


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


def _manifest(
    job: CompareJob,
    folds: Sequence[Dataset],
    embedder: ElmoEmbedder,
    word2vec: Word2Vec,
    ancestor: ElmoEmbedder | None,
) -> dict[str, Any]:
    return {
        **manifest_of(job.fit, folds[0], embedder),
        "shares": job.shares,
        "folds": len(folds),
        "word2vec": hashlib.sha256(np.ascontiguousarray(word2vec.table).tobytes()).hexdigest(),
        "ancestor": ancestor.bundle.digest if ancestor else None,
    }


class _Vectors:
    """A model and all texts in its tokens; vectors are computed only when a row of the comparison needs them."""

    def __init__(self, dataset: Dataset, embedder: ElmoEmbedder, folder: Path, reporter: Reporter) -> None:
        self.embedder, self._folder, self._reporter = embedder, folder, reporter
        self.texts = read_texts(dataset, embedder, reporter)

    @cached_property
    def cache(self) -> VectorCache:
        """The vectors of all sentences, computed unless the folder already has them."""
        sentences, started = sentences_of(chain(*self.texts.values())), time.perf_counter()
        cache = VectorCache.on_disk(Work(self._folder / "vectors", self._reporter), self.embedder, sentences)
        if not self.seconds:
            WorkFolder(self._folder).finish(_SECONDS, {"seconds": time.perf_counter() - started})
        return cache

    @property
    def seconds(self) -> float:
        """The seconds spent computing the vectors; 0 until they are computed."""
        return float((WorkFolder(self._folder).figures(_SECONDS) or {"seconds": 0})["seconds"])


@dataclass(frozen=True, kw_only=True, eq=False)
class _Study:
    """The data and the vectors that the models read; does one training run for each setting."""

    job: CompareJob
    whole: Dataset
    folds: Sequence[Dataset]
    vectors: Mapping[str, _Vectors]
    word2vec: Word2Vec
    folder: Path
    reporter: Reporter

    @property
    def _metric(self) -> str:
        return main_metric(self.job.fit.settings, marks_spans=bool(self.whole.scheme))

    def settings(self) -> Iterator[tuple[str, float, int, int]]:
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

    def runs(self, reporter: Reporter) -> list[Run]:
        """Train and test every setting not done yet, reporting each row of the comparison once it is complete."""
        settings, found = list(self.settings()), []
        with reporter.progress("compare", unit="training runs", total=len(settings)) as progress:
            for (model, _), group in groupby(settings, key=itemgetter(0, 1)):
                row = []
                for setting in group:
                    row.append(self.run(*setting))
                    progress.update(1)
                score, examples = np.mean([run.score for run in row]), counted(row[0].num_examples, "example")
                reporter.note(f"{translate(model)} trained on {examples}: {self._metric} {score:.4f}")
                found += row
        return found

    def run(self, model: str, share: float, seed: int, fold: int) -> Run:
        """Train and test one setting, or return its record if that is already done."""
        name = "ancestor" if model == ANCESTOR else "-".join(_INPUTS.get(model, (model,)))
        work, setting = WorkFolder(self.folder / f"seed-{seed}"), f"{share}-{name}{f'-fold-{fold}' if fold else ''}"
        place = work.path / setting
        if figures := work.figures(setting, self.reporter):
            return Run.from_json(figures)
        dataset = self._shared(share, seed, fold)
        trained: dict[str, Any] = {"dev_score": None, "is_unfinished": False}
        started = time.perf_counter()
        if model in self.vectors:
            predictions, trained = self._train(dataset, model, seed, place)
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
        run = Run(
            model=model,
            share=share,
            seed=seed,
            fold=fold,
            num_examples=len(dataset.train),
            score=score_rows(rows, metric=self._metric),
            rows=rows,
            **{"seconds": time.perf_counter() - started, **trained},
        )
        work.finish(setting, run.to_json())
        remove(place)
        return run

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

    def _train(self, dataset: Dataset, model: str, seed: int, place: Path) -> tuple[list[Prediction], dict[str, Any]]:
        """Train a network; return its predictions for the test examples, and the attributes that it sets in `Run`."""
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
            reporter=self.reporter,
        )
        trained = task.train(seed, place)
        head = task.load(seed, trained)
        return task.predictions(head, "test"), {
            "seconds": float(sum(line["seconds"] for line in trained.lines)),
            "dev_score": trained.best_score,
            "is_unfinished": trained.is_unfinished(job.training),
        }

    def compared(self, runs: Sequence[Run], name: str) -> Comparison:
        """Gather the runs into a comparison, with the facts about model, data and settings."""
        settings, bundle = self.job.fit.settings, self.vectors[ELMO].embedder.bundle
        ancestor = self.vectors[ANCESTOR].embedder.bundle if ANCESTOR in self.vectors else None
        return Comparison(
            runs=runs,
            name=name,
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
