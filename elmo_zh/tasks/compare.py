"""Compare what a task's network learns from word2vec, from ELMo and from both, on all labels and on some of them.

The vectors are computed once for all trainings. In `OUTPUT.parts/` each finished training leaves a file with what every
test example adds to its score, so that an interrupted comparison trains none of them again.
"""

import hashlib
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from elmo_zh.bundle.word2vec import Word2Vec
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.embed.join import claimed_output
from elmo_zh.errors import CorpusError
from elmo_zh.extras import install_line
from elmo_zh.run.files import remove, write_json
from elmo_zh.run.reporter import Reporter, SilentReporter, counted
from elmo_zh.tasks.baselines import can_fit_tfidf, predict_majority, predict_tfidf
from elmo_zh.tasks.bootstrap import example_rows, score_rows
from elmo_zh.tasks.comparison import BOTH, ELMO, MAJORITY, TFIDF, WORD2VEC, Comparison, ComparisonLayout, Run
from elmo_zh.tasks.data.datasets import DataFiles, Dataset, choose_examples, load_dataset
from elmo_zh.tasks.data.examples import Example
from elmo_zh.tasks.fit import check_head, manifest_of, open_parts
from elmo_zh.tasks.predictions import Prediction
from elmo_zh.tasks.prepared_task import FitJob, PreparedTask, Texts, cached_vectors, read_texts
from elmo_zh.tasks.score_task import main_metric
from elmo_zh.tasks.vector_cache import VectorCache

_INPUTS = {WORD2VEC: ("word2vec",), ELMO: ("elmo",), BOTH: ("word2vec", "elmo")}


@dataclass(frozen=True, kw_only=True)
class CompareJob:
    """What to compare.

    Attributes:
        fit: Data, network and training. The inputs are chosen by the comparison; each of the `num_seeds` trainings of a
            setting has its own choice of the labels.
        shares: Fractions of the training examples, each above 0 and at most 1.
        word2vec: The bundle or run whose word2vec vectors to take; None for those of the model.
    """

    fit: FitJob
    shares: tuple[float, ...] = (1.0, 0.3, 0.1)
    word2vec: Path | None = None


def compare_task(
    job: CompareJob, embedder: ElmoEmbedder, output: Path, *, force: bool = False, reporter: Reporter | None = None
) -> Comparison:
    """Train the same network on each input and each share of the labels, and write the folder of the comparison.

    Args:
        job: What to compare.
        embedder: The bundle.
        output: The folder, which appears when it is complete; `OUTPUT.parts` holds what is unfinished.
        force: Replace a comparison, and do not resume an unfinished one.
        reporter: Receives messages and progress.

    Raises:
        CorpusError: If the data cannot be read, nothing can be learned from it, or there are no test examples.
        BundleError: If there are no word2vec vectors.
        OutputError: If the output exists, or an unfinished one is of other data, another model or other settings.
    """
    reporter = reporter or SilentReporter()
    files = _with_test(job.fit.files.resolved(), reporter)
    read = [path for path in (files.data, files.dev, files.test, job.word2vec) if path is not None]
    parts = output.with_name(output.name + ".parts")
    with claimed_output(output, [*read, embedder.bundle.path], is_comparison, force=force):
        check_head(job.fit.settings, _INPUTS[ELMO])
        word2vec = Word2Vec.load(job.word2vec or embedder.bundle.path)
        dataset = load_dataset(files, job.fit.reading, reporter)
        if not dataset.test:
            raise CorpusError(f"{files.data}: there are no test examples to compare on. Give a file: --test FILE")
        open_parts(parts, _manifest(job, files, embedder, word2vec), force=force)
        study = _Study.prepare(job, dataset, embedder, word2vec, parts, reporter)
        runs = [study.run(*setting) for setting in study.settings()]
        comparison = study.compared(runs, name=output.name)
        comparison.write(output, reporter)
        remove(parts)
    return comparison


def is_comparison(path: Path) -> bool:
    """Return whether a folder is one that `compare_task` wrote."""
    return ComparisonLayout(path).data.is_file()


def _with_test(files: DataFiles, reporter: Reporter) -> DataFiles:
    """Return files of which some are for testing: if need be the development examples."""
    if files.dev is None or files.test is not None:
        return files
    reporter.note(
        f"There is no file of test examples, so {files.dev.name} is tested on; a tenth of {files.data.name} decides"
        " when to stop."
    )
    return replace(files, dev=None, test=files.dev)


def _manifest(job: CompareJob, files: DataFiles, embedder: ElmoEmbedder, word2vec: Word2Vec) -> dict[str, Any]:
    return {
        **manifest_of(job.fit, files, embedder),
        "shares": job.shares,
        "word2vec": hashlib.sha256(np.ascontiguousarray(word2vec.table).tobytes()).hexdigest(),
        "tfidf": can_fit_tfidf(),
    }


@dataclass(frozen=True, kw_only=True, eq=False)
class _Study:
    """The data with its vectors; settings are trained from here."""

    job: CompareJob
    dataset: Dataset
    embedder: ElmoEmbedder
    texts: Texts
    cache: VectorCache
    word2vec: Word2Vec
    vectors_seconds: float
    parts: Path
    reporter: Reporter

    @classmethod
    def prepare(
        cls,
        job: CompareJob,
        dataset: Dataset,
        embedder: ElmoEmbedder,
        word2vec: Word2Vec,
        parts: Path,
        reporter: Reporter,
    ) -> "_Study":
        texts = read_texts(dataset, embedder, reporter)
        record = parts / "vectors_seconds.json"
        started = time.perf_counter()
        cache = cached_vectors(texts, embedder, parts, reporter)
        if not record.is_file():
            write_json(record, time.perf_counter() - started)
        return cls(
            job=job,
            dataset=dataset,
            embedder=embedder,
            texts=texts,
            cache=cache,
            word2vec=word2vec,
            vectors_seconds=float(json.loads(record.read_text(encoding="utf-8"))),
            parts=parts,
            reporter=reporter,
        )

    @property
    def _metric(self) -> str:
        settings = self.job.fit.settings
        return main_metric(kind=settings.kind, regression=settings.regression, marks_spans=bool(self.dataset.scheme))

    def _seeds(self) -> range:
        return range(self.job.fit.files.seed, self.job.fit.files.seed + self.job.fit.num_seeds)

    def settings(self) -> Iterator[tuple[str, float, int]]:
        """Yield model, share and seed of each training."""
        settings = self.job.fit.settings
        baselines = [MAJORITY]
        if settings.kind == "classify" and not settings.regression:
            if can_fit_tfidf():
                baselines.append(TFIDF)
            else:
                self.reporter.note(
                    f"TF-IDF is left out: it needs scikit-learn. Install it with: {install_line('sklearn')}"
                )
        for share in self.job.shares:
            for model in (*baselines, *_INPUTS):
                # With all labels a baseline is the same for each seed.
                seeds = self._seeds()[:1] if model in baselines and share == 1 else self._seeds()
                yield from ((model, share, seed) for seed in seeds)

    def run(self, model: str, share: float, seed: int) -> Run:
        """Train and test one setting, unless that is done."""
        place = self.parts / f"seed-{seed}" / f"{share}-{'-'.join(_INPUTS.get(model, (model,)))}"
        record = place.with_name(place.name + ".json")
        if record.is_file():
            return Run.from_json(json.loads(record.read_text(encoding="utf-8")))
        dataset, texts = self._shared(share, seed)
        if model in _INPUTS:
            predictions, seconds, dev_score = self._train(dataset, texts, model, seed, place)
        else:
            started = time.perf_counter()
            predictions, dev_score = self._baseline(dataset, model), None
            seconds = time.perf_counter() - started
        rows = example_rows(dataset.test, predictions, marks_spans=bool(dataset.scheme))
        score = score_rows(rows, of_numbers=self.job.fit.settings.regression)
        run = Run(
            model=model,
            share=share,
            seed=seed,
            num_examples=len(dataset.train),
            score=score,
            dev_score=dev_score,
            seconds=seconds,
            rows=rows,
        )
        write_json(record, run.to_json())
        remove(place)
        self.reporter.note(
            f"{model}, {counted(len(dataset.train), 'training example')}, seed {seed}: {self._metric} {score:.4f}"
        )
        return run

    def _shared(self, share: float, seed: int) -> tuple[Dataset, Texts]:
        """Return the data and its texts with a share of the training examples."""
        if share == 1:
            return self.dataset, self.texts
        whole = self.dataset.train
        chosen = choose_examples(whole, max(1, round(share * len(whole))), seed)
        # Examples have no equality of their own, so each is one of its own.
        texts_of = {id(example): texts for example, texts in zip(whole, self.texts["train"], strict=True)}
        texts = [texts_of[id(example)] for example in chosen]
        return replace(self.dataset, train=chosen), {**self.texts, "train": texts}

    def _baseline(self, dataset: Dataset, model: str) -> list[Prediction]:
        if model == TFIDF:
            return predict_tfidf(dataset.train, dataset.dev, dataset.test)
        regression = self.job.fit.settings.regression
        return predict_majority(dataset.train, dataset.test, regression=regression, marks_spans=bool(dataset.scheme))

    def _train(
        self, dataset: Dataset, texts: Texts, model: str, seed: int, place: Path
    ) -> tuple[list[Prediction], float, float]:
        """Train a network; return its predictions for the test examples, its seconds and its development score."""
        inputs = _INPUTS[model]
        by_characters = self.job.fit.settings.kind == "tag" and not dataset.by_words
        names = (*inputs, *(("characters",) if by_characters else ()))
        job = replace(self.job.fit, settings=replace(self.job.fit.settings, inputs=names))
        task = PreparedTask.of_texts(
            job,
            dataset,
            self.embedder,
            texts,
            cache=self.cache if "elmo" in inputs else None,
            word2vec=self.word2vec if "word2vec" in inputs else None,
            reporter=self.reporter,
        )
        trained = task.train(seed, place)
        head = task.head(seed)
        head.load_state_dict(trained.weights)
        seconds = float(sum(line["seconds"] for line in trained.lines))
        return task.predictions(head, "test"), seconds, trained.best_score

    def compared(self, runs: Sequence[Run], name: str) -> Comparison:
        """Return all runs with their differences."""
        settings, bundle = self.job.fit.settings, self.embedder.bundle
        sizes: dict[str, Sequence[Example]] = self.dataset.parts()
        return Comparison.of(
            runs,
            name=name,
            metric=self._metric,
            of_numbers=settings.regression,
            seed=self.job.fit.files.seed,
            facts={
                "model": {"path": str(bundle.path), "digest": bundle.digest},
                "word2vec": str(self.job.word2vec or bundle.path),
                "examples": {part: len(examples) for part, examples in sizes.items()},
                "files": [path.name for path in self.dataset.files],
                "settings": asdict(settings),
                "training": asdict(self.job.fit.training),
                "vectors_seconds": self.vectors_seconds,
            },
        )
