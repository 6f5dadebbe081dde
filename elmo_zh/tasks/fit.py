"""Train a task on a bundle: read and check the data, compute the vectors once, train, score, and write the folder."""

import copy
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from elmo_zh.bundle import BundleLayout
from elmo_zh.bundle.weights import save_tensors
from elmo_zh.bundle.word2vec_table import Word2Vec
from elmo_zh.bundle.write import write_tuned
from elmo_zh.config.task_settings import FitJob, HeadSettings
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.errors import OptionError
from elmo_zh.language import _
from elmo_zh.model.language_model import weights_of
from elmo_zh.pictures.canvas import describe_numbers, save_picture
from elmo_zh.pictures.figures import confusion_figure, curve_figure, scatter_figure
from elmo_zh.run.files import file_digest
from elmo_zh.run.job import Work, run_job
from elmo_zh.run.outputs import written_as
from elmo_zh.run.reporter import Reporter, SilentReporter, counted
from elmo_zh.tasks.datasets import Dataset, describe_data, find_files, has_ids_as_labels, load_dataset
from elmo_zh.tasks.linear import save_members
from elmo_zh.tasks.predictions import NumberPrediction
from elmo_zh.tasks.prepared_task import Mixture, PreparedTask
from elmo_zh.tasks.scores import confusable_labels, confusion
from elmo_zh.tasks.task_head import TaskHead
from elmo_zh.tasks.task_model import TaskDescription, TaskLayout


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

    may_replace = staticmethod(written_as("task"))

    @classmethod
    def of(cls, job: FitJob, embedder: ElmoEmbedder, output: Path, reporter: Reporter) -> "TaskJob":
        """Read the data, and complete the settings."""
        dataset = load_dataset(find_files(job.files, reporter), job.reading, reporter)
        fine_tunes = job.training.bilm_learning_rate is not None
        job = replace(job, settings=with_inputs(job.settings, dataset, embedder, reporter, fine_tunes=fine_tunes))
        if fine_tunes and "elmo" not in job.settings.inputs:
            raise OptionError(_("--fine-tune trains the biLM, so ELMo has to be an input: add elmo to --inputs."))
        return cls(job, dataset, embedder, output)

    @property
    def inputs(self) -> list[Path]:
        """The data and the model."""
        return [*self.dataset.files.values(), self.embedder.bundle.path]

    @property
    def valuable(self) -> list[str]:
        """The trainings."""
        return [_training_name(seed) for seed in self.fit.seeds()]

    def made_from(self) -> dict[str, Any]:
        """Return everything that the task depends on."""
        return manifest_of(self.fit, self.dataset, self.embedder)

    def make(self, path: Path, work: Work) -> FitReport:
        """Compute the vectors, train, score and write."""
        task = PreparedTask.prepare(self.fit, self.dataset, self.embedder, work)
        trained = [task.train(seed, work.within(_training_name(seed))) for seed in self.fit.seeds()]
        best = max(range(len(trained)), key=lambda place: (trained[place].best_score, -place))
        seed = self.fit.seeds()[best]
        by_seed = {}
        for other, training in zip(self.fit.seeds(), trained, strict=True):
            head = task.load(other, training)
            by_seed[str(other)] = {part: scores[task.metric] for part, scores in task.all_scores(head).items()}
        head, mixture = task.load(seed, trained[best]), None
        if self.fit.settings.head == "mixture":
            mixture = task.mix(head, seed, work.within(_training_name(seed)).within("crf"))
        facts = {"metric": task.metric, "chosen_seed": seed, "seeds": by_seed}
        lines = [line for training in trained for line in training.lines]
        writing = _Writing(task, TaskLayout(path), self.output.name, head, mixture)
        description = writing.write(facts, lines, trained[best].bilm_weights)
        return FitReport(self.output, description, list(writing.doubts()))


def _training_name(seed: int) -> str:
    return f"seed-{seed}"


def with_inputs(
    settings: HeadSettings, dataset: Dataset, embedder: ElmoEmbedder, reporter: Reporter, *, fine_tunes: bool = False
) -> HeadSettings:
    """Fill in the inputs that data and model allow, and choose a network alone where no mixture can be made."""
    has_word2vec = BundleLayout(embedder.bundle.path).word2vec.is_file()
    inputs = settings.inputs
    if settings.is_crf:
        if inputs:
            raise OptionError(
                _("For tag, --head linear reads only n-grams, so --inputs has no effect. Leave out --inputs.")
            )
        inputs = ("characters",)
    if not inputs:
        by_characters = settings.kind == "tag" and not dataset.by_words
        inputs = ("word2vec", "elmo", *(("characters",) if by_characters else ()))
        if not has_word2vec:
            inputs = tuple(name for name in inputs if name != "word2vec")
            reporter.note(
                _("{path} has no word2vec vectors, so the network reads only {inputs}.").format(
                    path=embedder.bundle.path, inputs=", ".join(inputs)
                )
            )
    elif "word2vec" in inputs and not has_word2vec:
        Word2Vec.load(embedder.bundle.path)  # raises the error that says what to do
    check_head(settings, inputs)
    # Mixtures are not for numbers, nor for a network whose biLM is trained with it.
    is_alone = settings.regression or fine_tunes
    head = "bilstm" if settings.head == "mixture" and is_alone else settings.head
    return replace(settings, inputs=inputs, head=head)


def check_head(settings: HeadSettings, inputs: Sequence[str]) -> None:
    """Raise OptionError if the settings of the network contradict each other or its inputs."""
    if settings.head == "linear" and (settings.encoder != "single" or settings.elmo_at != "input"):
        raise OptionError(
            _("A linear head has no LSTMs, and ELMo only at its input. Leave out --encoder and --elmo-at.")
        )
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


class _Writing:
    """Scores the chosen network or mixture, and writes the folder."""

    def __init__(
        self, task: PreparedTask, layout: TaskLayout, name: str, head: TaskHead, mixture: Mixture | None
    ) -> None:
        self._task, self._layout, self._name, self._mixture = task, layout, name, mixture
        self._head = mixture.tagger or head if mixture else head
        parts = task.scored_parts()
        self._predictions = mixture.predictions if mixture else {part: task.predictions(head, part) for part in parts}
        self._scores = {part: task.scores(found, part) for part, found in self._predictions.items()}
        self._part = parts[-1]

    def write(
        self, facts: Mapping[str, Any], lines: Sequence[Mapping[str, Any]], bilm_weights: Mapping[str, Tensor]
    ) -> TaskDescription:
        """Write weights, figures, pictures and task.json; return the description."""
        layout, mixture = self._layout, self._mixture
        description = self._task.describe({**facts, **self._scores}, self._head, mixture)
        layout.path.mkdir()
        if description.has_network:
            save_tensors(self._head.state_dict(), layout.head)
        if mixture is not None and mixture.linear:
            save_members(layout.linear, mixture.linear)
        layout.metrics.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
        save_picture(curve_figure(lines, self._task.metric, self._name), layout.curve)
        self._draw_predictions()
        if bilm_weights:
            description = replace(description, model=self._write_bilm(bilm_weights))
        description.save(layout)
        return description

    def _write_bilm(self, weights: Mapping[str, Tensor]) -> dict[str, Any]:
        """Write the biLM trained with the network as a bundle; return the model's entry in task.json."""
        folder, bundle = self._layout.model, self._task.embedder.bundle
        bilm = copy.deepcopy(bundle.bilm).cpu()
        bilm.load_state_dict(weights)
        write_tuned(folder, bundle, weights_of(bilm, None))
        digest = file_digest(BundleLayout(folder).info)
        return {"path": str(bundle.path), "digest": digest, "started_from": bundle.digest}

    def _draw_predictions(self) -> None:
        task, predictions = self._task, self._predictions[self._part]
        examples = task.dataset.part(self._part)
        title = f"{self._name}: {_tested(len(examples), self._part)}"
        if task.job.settings.regression:
            numbers = [float(example.labels[0]) for example in examples]
            values = [prediction.value for prediction in predictions if isinstance(prediction, NumberPrediction)]
            score = f"{task.metric} {self._scores[self._part][task.metric]:.4f}"
            save_picture(scatter_figure(numbers, values, title, score), self._layout.scatter)
            return
        gold, predicted = confusable_labels(examples, predictions, marks_spans=bool(task.dataset.scheme))
        labels = sorted({*gold, *predicted})
        matrix = confusion(gold, predicted, labels)
        save_picture(confusion_figure(matrix, labels, title), self._layout.confusion)
        for line in describe_numbers(labels, self._layout.confusion.name):
            task.reporter.note(line)

    def doubts(self) -> Iterator[str]:
        """Yield reasons to doubt a network: labels that look like ids, or a score that needs no network."""
        task, dataset = self._task, self._task.dataset
        examples, value = dataset.part(self._part), float(self._scores[self._part][task.metric])
        train, tested = dataset.part("train"), _tested(len(examples), self._part)
        if not task.job.settings.regression and has_ids_as_labels(train):
            yield _(
                "The {labels} labels of {train} training examples look like ids, from which nothing can be learned."
                " Name another column: --label-column NAME"
            ).format(labels=f"{len(task.labels):,}", train=f"{len(train):,}")
        elif task.metric == "accuracy":
            counts = Counter(label for example in train for label in example.labels)
            usual = max(task.labels, key=lambda label: counts[label])
            share = float(np.mean([label == usual for example in examples for label in example.labels]))
            if value <= share:
                yield _("{metric} {value} on {tested} is no better than always answering {usual} ({share}).").format(
                    metric=task.metric,
                    value=f"{value:.4f}",
                    tested=tested,
                    usual=repr(usual[:40]),
                    share=f"{share:.4f}",
                )
        elif value <= 0:
            yield _("{metric} {value} on {tested}: the task has learned nothing useful.").format(
                metric=task.metric, value=f"{value:.4f}", tested=tested
            )


def _tested(number: int, part: str) -> str:
    if part == "dev":
        return counted(number, "{number} dev example", "{number} dev examples")
    return counted(number, "{number} test example", "{number} test examples")
