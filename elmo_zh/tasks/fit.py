"""Train a task on a bundle: read and check the data, compute the vectors once, train, score, and write the folder."""

import json
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from sklearn.metrics import confusion_matrix

from elmo_zh.bundle import BundleLayout
from elmo_zh.bundle.word2vec_table import Word2Vec
from elmo_zh.config.task_settings import FitJob, HeadSettings
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.errors import OptionError
from elmo_zh.language import _, ngettext
from elmo_zh.pictures.canvas import describe_numbers, save_picture
from elmo_zh.pictures.figures import confusion_figure, curve_figure
from elmo_zh.run.job import Work, run_job
from elmo_zh.run.outputs import written_as
from elmo_zh.run.reporter import Reporter, SilentReporter
from elmo_zh.tasks.datasets import Dataset, describe_data, load_dataset
from elmo_zh.tasks.scores import Answers, answer_majority, score_answers
from elmo_zh.tasks.task_model import TaskDescription, TaskLayout, write_task
from elmo_zh.tasks.train import PreparedTask


@dataclass(frozen=True)
class FitReport:
    """The result of a training run: its folder, the content of task.json, and reasons for doubt."""

    output: Path
    description: TaskDescription
    doubts: Sequence[str]


def fit_task(
    job: FitJob, embedder: ElmoEmbedder, output: Path, *, force: bool = False, reporter: Reporter | None = None
) -> FitReport:
    """Train a task and write its folder; the same call continues an interrupted one."""
    reporter = reporter or SilentReporter()
    return run_job(TaskJob.of(job, embedder, output, reporter), force=force, reporter=reporter)


@dataclass(frozen=True, eq=False)
class TaskJob:
    """Trains a network with each seed, and writes a task that uses the best one or a mixture."""

    fit: FitJob
    dataset: Dataset
    embedder: ElmoEmbedder
    output: Path

    valuable = ("networks",)
    may_replace = staticmethod(written_as("task"))

    @classmethod
    def of(cls, job: FitJob, embedder: ElmoEmbedder, output: Path, reporter: Reporter) -> "TaskJob":
        """Read the data, and complete the settings."""
        dataset = load_dataset(job.files, job.reading, reporter)
        return cls(with_inputs(job, dataset, embedder, reporter), dataset, embedder, output)

    @property
    def inputs(self) -> list[Path]:
        """The paths of the data and the model."""
        return [*self.dataset.files.values(), self.embedder.bundle.path]

    def made_from(self) -> dict[str, Any]:
        """Return what the task depends on."""
        return manifest_of(self.fit, self.dataset, self.embedder)

    def make(self, path: Path, work: Work) -> FitReport:
        """Compute the vectors, train, score, write the folder, and return the report."""
        task = PreparedTask.prepare(self.fit, self.dataset, self.embedder, work)
        fitted = task.fit(work)
        layout = TaskLayout(path)
        path.mkdir()
        layout.metrics.write_text("".join(f"{json.dumps(line)}\n" for line in fitted.lines), encoding="utf-8")
        save_picture(curve_figure(fitted.lines, task.metric, self.output.name), layout.curve)
        part, answers = [*fitted.answers.items()][-1]
        gold, score = self.dataset.gold(part), float(fitted.description.scores[part][task.metric])
        tested = tested_examples(len(gold), part)
        if not self.fit.settings.regression:
            for line in self._draw_confusion(layout.confusion, gold, answers, tested):
                work.reporter.note(line)
        description = write_task(layout, fitted.description, fitted.head, fitted.linear)
        return FitReport(self.output, description, list(self._doubts(task.metric, gold, tested, score)))

    def _draw_confusion(self, path: Path, gold: Answers, answers: Answers, tested: str) -> list[str]:
        """Draw a confusion matrix of labels or, for spans, of types; return its legend."""
        true, predicted = [*chain.from_iterable(gold)], [*chain.from_iterable(answers)]
        if self.dataset.scheme:
            true, predicted = ([tag[2:] or tag for tag in tags] for tags in (true, predicted))
        labels = sorted({*true, *predicted})
        # scikit-learn warns about many classes, and about one.
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            matrix = confusion_matrix(true, predicted, labels=labels)
        save_picture(confusion_figure(matrix, labels, f"{self.output.name}: {tested}"), path)
        return describe_numbers(labels, path.name)

    def _doubts(self, metric: str, gold: Answers, tested: str, score: float) -> Iterator[str]:
        """Yield a reason to doubt the score if it is no higher than the majority baseline's."""
        usual = answer_majority(self.dataset.gold("train"), gold, metric)
        share = score_answers(gold, usual, metric)[metric]
        if score <= share:
            yield _("{metric} {value} on {tested} is no better than always answering {usual} ({share}).").format(
                metric=metric,
                value=f"{score:.4f}",
                tested=tested,
                usual=repr(str(usual[0][0])[:40]),
                share=f"{share:.4f}",
            )


def with_inputs(job: FitJob, dataset: Dataset, embedder: ElmoEmbedder, reporter: Reporter) -> FitJob:
    """Fill in inputs if none are chosen, and check the settings; for regression, replace a mixture with a network."""
    settings, inputs = job.settings, job.settings.inputs
    has_word2vec = BundleLayout(embedder.bundle.path).word2vec.is_file()
    if "word2vec" in inputs and not has_word2vec:
        Word2Vec.load(embedder.bundle.path)  # raises the error that says what to do
    if settings.is_crf:
        inputs = ("characters",)
    elif not inputs:
        by_characters = settings.kind == "tag" and not dataset.by_words
        inputs = ("word2vec", "elmo", *(("characters",) if by_characters else ()))[not has_word2vec :]
        if not has_word2vec:
            reporter.note(
                _("{path} has no word2vec vectors, so the network reads only {inputs}.").format(
                    path=embedder.bundle.path, inputs=", ".join(inputs)
                )
            )
    check_settings(settings)
    # Mixtures are not for numbers.
    head = "bilstm" if settings.head == "mixture" and settings.regression else settings.head
    return replace(job, settings=replace(settings, inputs=inputs, head=head))


def check_settings(settings: HeadSettings) -> None:
    """Raise OptionError if the settings of a model contradict each other."""
    kind, is_linear, has_metric = settings.kind, settings.head == "linear", settings.metric != HeadSettings.metric
    conflicts = [
        ("tag", "--regression", kind == "tag" and settings.regression),
        ("tag", "--metric", kind == "tag" and has_metric),
        ("--regression", "--metric", settings.regression and has_metric),
        ("pairs", "--head linear", kind == "pairs" and is_linear),
        ("tag --head linear", "--inputs", settings.is_crf and bool(settings.inputs)),
    ]
    for option, other, is_given in conflicts:
        if is_given:
            raise OptionError.together(option, other)


def manifest_of(job: FitJob, dataset: Dataset, embedder: ElmoEmbedder) -> dict[str, Any]:
    """Return what a trained task depends on."""
    return {
        **describe_data(dataset, job.files, job.reading),
        "settings": asdict(job.settings),
        "training": asdict(job.training),
        "num_seeds": job.num_seeds,
        **embedder.identity(),
    }


def tested_examples(number: int, part: str) -> str:
    """Return a phrase such as "1,234 test examples" in the user's language; `part` is dev or test."""
    return ngettext("{number} {part} example", "{number} {part} examples", number).format(
        number=f"{number:,}", part=_(part)
    )
