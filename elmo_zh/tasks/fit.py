"""Train a task on a bundle: read and check the data, compute the vectors once, train, score, and write the folder."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from elmo_zh.bundle import BundleLayout
from elmo_zh.bundle.word2vec_table import Word2Vec
from elmo_zh.config.task_settings import FitJob, HeadSettings
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.errors import OptionError
from elmo_zh.language import _
from elmo_zh.pictures.canvas import describe_numbers, save_picture
from elmo_zh.pictures.figures import confusion_figure, curve_figure, scatter_figure
from elmo_zh.run.job import Work, run_job
from elmo_zh.run.outputs import written_as
from elmo_zh.run.reporter import Reporter, SilentReporter, counted
from elmo_zh.tasks.datasets import Dataset, describe_data, find_files, load_dataset
from elmo_zh.tasks.scores import NumberPrediction, Prediction, confusable_labels, confusion
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
    """Trains a task with each seed, and writes the best network, mixed with linear models if requested."""

    fit: FitJob
    dataset: Dataset
    embedder: ElmoEmbedder
    output: Path

    valuable = ("networks",)
    may_replace = staticmethod(written_as("task"))

    @classmethod
    def of(cls, job: FitJob, embedder: ElmoEmbedder, output: Path, reporter: Reporter) -> "TaskJob":
        """Read the data, and complete the settings."""
        dataset = load_dataset(find_files(job.files, reporter), job.reading, reporter)
        return cls(with_inputs(job, dataset, embedder, reporter), dataset, embedder, output)

    @property
    def inputs(self) -> list[Path]:
        """The data and the model."""
        return [*self.dataset.files.values(), self.embedder.bundle.path]

    def made_from(self) -> dict[str, Any]:
        """Return everything that the task depends on."""
        return manifest_of(self.fit, self.dataset, self.embedder)

    def make(self, path: Path, work: Work) -> FitReport:
        """Compute the vectors, train, score and write."""
        task, seeds = PreparedTask.prepare(self.fit, self.dataset, self.embedder, work), self.fit.seeds()
        trained = [task.train(seed, work.within("networks").within(f"seed-{seed}")) for seed in seeds]
        heads = [task.head(seed, training.weights) for seed, training in zip(seeds, trained, strict=True)]
        by_seed = {
            str(seed): {part: task.main_score(head, part) for part in task.scored_parts()}
            for seed, head in zip(seeds, heads, strict=True)
        }
        best = max(range(len(trained)), key=lambda place: (trained[place].best_score, -place))
        members = task.members(heads[best], seeds[best], work)
        scores = {part: task.scores(predictions, part) for part, predictions in members.predictions.items()}
        facts = {"metric": task.metric, "chosen_seed": seeds[best], "seeds": by_seed, **scores}
        layout = TaskLayout(path)
        path.mkdir()
        lines = [line for training in trained for line in training.lines]
        layout.metrics.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
        save_picture(curve_figure(lines, task.metric, self.output.name), layout.curve)
        part, predictions = [*members.predictions.items()][-1]
        score = float(scores[part][task.metric])
        self._draw(layout, task, part, predictions, f"{task.metric} {score:.4f}")
        description = write_task(layout, task.describe(facts, members), members.head, members.linear)
        return FitReport(self.output, description, list(self._doubts(task, part, score)))

    def _draw(
        self, layout: TaskLayout, task: PreparedTask, part: str, predictions: Sequence[Prediction], score: str
    ) -> None:
        """Draw predicted numbers against true ones, or the confusion matrix of the labels."""
        examples = self.dataset.part(part)
        title = f"{self.output.name}: {_tested(len(examples), part)}"
        if self.fit.settings.regression:
            numbers = [float(example.labels[0]) for example in examples]
            values = [prediction.value for prediction in predictions if isinstance(prediction, NumberPrediction)]
            save_picture(scatter_figure(numbers, values, title, score), layout.scatter)
            return
        gold, predicted = confusable_labels(examples, predictions, marks_spans=bool(self.dataset.scheme))
        labels = sorted({*gold, *predicted})
        save_picture(confusion_figure(confusion(gold, predicted, labels), labels, title), layout.confusion)
        for line in describe_numbers(labels, layout.confusion.name):
            task.reporter.note(line)

    def _doubts(self, task: PreparedTask, part: str, score: float) -> Iterator[str]:
        """Yield a reason to doubt a score that needs no model."""
        examples, tested = self.dataset.part(part), _tested(len(self.dataset.part(part)), part)
        if task.metric == "accuracy":
            counts = Counter(label for example in self.dataset.part("train") for label in example.labels)
            usual = max(task.labels, key=lambda label: counts[label])
            share = float(np.mean([label == usual for example in examples for label in example.labels]))
            if score <= share:
                yield _("{metric} {value} on {tested} is no better than always answering {usual} ({share}).").format(
                    metric=task.metric,
                    value=f"{score:.4f}",
                    tested=tested,
                    usual=repr(usual[:40]),
                    share=f"{share:.4f}",
                )
        elif score <= 0:
            yield _("{metric} {value} on {tested}: the task has learned nothing useful.").format(
                metric=task.metric, value=f"{score:.4f}", tested=tested
            )


def with_inputs(job: FitJob, dataset: Dataset, embedder: ElmoEmbedder, reporter: Reporter) -> FitJob:
    """Fill in the inputs that data and model allow, and choose a network alone where no mixture can be made."""
    settings = job.settings
    has_word2vec = BundleLayout(embedder.bundle.path).word2vec.is_file()
    inputs = settings.inputs
    if settings.is_crf:
        if inputs:
            raise OptionError.together("tag --head linear", "--inputs")
        inputs = ("characters",)
    if not inputs:
        by_characters = settings.kind == "tag" and not dataset.by_words
        inputs = ("word2vec", "elmo", *(("characters",) if by_characters else ()))
        if not has_word2vec:
            inputs = inputs[1:]
            reporter.note(
                _("{path} has no word2vec vectors, so the network reads only {inputs}.").format(
                    path=embedder.bundle.path, inputs=", ".join(inputs)
                )
            )
    elif "word2vec" in inputs and not has_word2vec:
        Word2Vec.load(embedder.bundle.path)  # raises the error that says what to do
    check_head(settings, inputs)
    # Mixtures are not for numbers.
    head = "bilstm" if settings.head == "mixture" and settings.regression else settings.head
    return replace(job, settings=replace(settings, inputs=inputs, head=head))


def check_head(settings: HeadSettings, inputs: Sequence[str]) -> None:
    """Raise OptionError if the settings of the network contradict each other or its inputs."""
    if settings.head == "linear" and (settings.encoder != "single" or settings.elmo_at != "input"):
        raise OptionError.together("--head linear", "--encoder, --elmo-at")
    if "elmo" in inputs and settings.elmo_at == "output" and len(inputs) == 1:
        raise OptionError(_("--elmo-at output needs an input besides ELMo, for example: --inputs word2vec,elmo"))


def manifest_of(job: FitJob, dataset: Dataset, embedder: ElmoEmbedder) -> dict[str, Any]:
    """Return everything that a trained task depends on."""
    return {
        **describe_data(dataset, job.files, job.reading),
        "settings": asdict(job.settings),
        "training": asdict(job.training),
        "num_seeds": job.num_seeds,
        **embedder.identity(),
    }


def _tested(number: int, part: str) -> str:
    if part == "dev":
        return counted(number, "{number} dev example", "{number} dev examples")
    return counted(number, "{number} test example", "{number} test examples")
