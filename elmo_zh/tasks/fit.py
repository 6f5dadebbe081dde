"""Train a task on a bundle: read and check the data, compute the vectors once, train, score, and write the folder."""

import copy
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from elmo_zh.bundle.layout import BundleLayout
from elmo_zh.bundle.tensor_files import save_tensors
from elmo_zh.bundle.word2vec_table import Word2Vec
from elmo_zh.bundle.write import write_tuned
from elmo_zh.config.task_settings import FitJob, HeadSettings
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.errors import OptionError
from elmo_zh.model.language_model import weights_of
from elmo_zh.pictures.canvas import describe_numbers, save_picture
from elmo_zh.pictures.tasks import confusion_figure, curve_figure, scatter_figure
from elmo_zh.run.files import file_digest
from elmo_zh.run.job import Work, run_job
from elmo_zh.run.mark import written_as
from elmo_zh.run.reporter import Reporter, SilentReporter, counted
from elmo_zh.tasks.datasets import Dataset, describe_data, find_files, has_ids_as_labels, load_dataset
from elmo_zh.tasks.mixture import save_members
from elmo_zh.tasks.predictions import NumberPrediction, Prediction
from elmo_zh.tasks.prepared_task import PreparedTask
from elmo_zh.tasks.scores import confusable_labels, confusion_matrix
from elmo_zh.tasks.task_description import TaskDescription, TaskLayout
from elmo_zh.tasks.train_head import TrainedHead


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
            raise OptionError("--fine-tune trains the biLM, so ELMo has to be an input: add elmo to --inputs.")
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
        description, doubts = _write(task, path, self.output.name, trained, work)
        return FitReport(self.output, description, doubts)


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
                "For tag, --head linear reads only n-grams, so --inputs has no effect. Leave out --inputs."
            )
        inputs = ("characters",)
    if not inputs:
        by_characters = settings.kind == "tag" and not dataset.by_words
        inputs = ("word2vec", "elmo", *(("characters",) if by_characters else ()))
        if not has_word2vec:
            inputs = tuple(name for name in inputs if name != "word2vec")
            reporter.note(
                f"{embedder.bundle.path} has no word2vec vectors, so the network reads only {', '.join(inputs)}."
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
    if settings.head == "linear" and settings.encoder != "single":
        raise OptionError(f"--encoder {settings.encoder}: a linear head has no LSTMs. Leave out --encoder.")
    if settings.head == "linear" and settings.elmo_at != "input":
        raise OptionError(
            f"--elmo-at {settings.elmo_at}: a linear head can use ELMo only at its input. Leave out --elmo-at."
        )
    if "elmo" in inputs and settings.elmo_at == "output" and len(inputs) == 1:
        raise OptionError("--elmo-at output needs an input besides ELMo, for example: --inputs word2vec,elmo")


def manifest_of(job: FitJob, dataset: Dataset, embedder: ElmoEmbedder) -> dict[str, Any]:
    """Return everything that a trained task depends on."""
    return {
        **describe_data(dataset, job.files, job.reading),
        "settings": asdict(job.settings),
        "training": asdict(job.training),
        "num_seeds": job.num_seeds,
        **embedder.identity(),
    }


def _write(
    task: PreparedTask, folder: Path, name: str, trained: Sequence[TrainedHead], work: Work
) -> tuple[TaskDescription, list[str]]:
    """Score the networks of all seeds, and write the best one; return its description and reasons for doubt."""
    best, mixture = max(range(len(trained)), key=lambda number: (trained[number].best_score, -number)), None
    by_seed: dict[str, Any] = {}
    for number, (seed, each) in enumerate(zip(task.job.seeds(), trained, strict=True)):
        head = task.load(seed, each)
        predictions = {part: task.predictions(head, part) for part in task.scored_parts()}
        scores = {part: task.scores(found, part) for part, found in predictions.items()}
        by_seed[str(seed)] = {part: found[task.metric] for part, found in scores.items()}
        if number == best:
            chosen, chosen_predictions, chosen_scores = head, predictions, scores
    seed = task.job.seeds()[best]
    if task.job.settings.head == "mixture":
        mixture = task.mix(chosen, seed, work.within(_training_name(seed)).within("crf"))
        chosen, chosen_predictions = mixture.tagger or chosen, mixture.predictions
        chosen_scores = {part: task.scores(found, part) for part, found in chosen_predictions.items()}
    facts = {"metric": task.metric, "chosen_seed": seed, "seeds": by_seed}
    description = task.describe({**facts, **chosen_scores}, chosen, mixture)
    lines = [line for each in trained for line in each.lines]
    folder.mkdir()
    layout = TaskLayout(folder)
    if description.has_network:
        save_tensors(chosen.state_dict(), layout.head)
    if mixture is not None and mixture.linear:
        save_members(layout.linear, mixture.linear)
    layout.metrics.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    _draw(task, layout, lines, chosen_predictions, name)
    if trained[best].bilm_weights:
        model = _write_bilm(task, layout.model, trained[best].bilm_weights)
        description = replace(description, model=model)
    description.save(layout)
    return description, list(_doubts(task, chosen_scores))


def _doubts(task: PreparedTask, scores: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield reasons to doubt a network: labels that look like ids, or a score that needs no network."""
    settings, part = task.job.settings, task.scored_parts()[-1]
    examples, value = task.dataset.parts()[part], float(scores[part][task.metric])
    tested = counted(len(examples), f"{part} example")
    if not settings.regression and has_ids_as_labels(task.dataset.train):
        yield (
            f"The {len(task.labels):,} labels of {len(task.dataset.train):,} training examples look like ids, from"
            " which nothing can be learned. Name another column: --label-column NAME"
        )
    elif task.metric == "accuracy":
        counts = Counter(label for example in task.dataset.train for label in example.labels)
        usual = max(task.labels, key=lambda label: counts[label])
        given = [label for example in examples for label in example.labels]
        share = given.count(usual) / len(given)
        if value <= share:
            yield (
                f"{task.metric} {value:.4f} on {tested} is no better than always answering {usual[:40]!r}"
                f" ({share:.4f})."
            )
    elif value <= 0:
        yield f"{task.metric} {value:.4f} on {tested}: the task has learned nothing useful."


def _write_bilm(task: PreparedTask, folder: Path, weights: Mapping[str, Tensor]) -> dict[str, Any]:
    """Write the biLM trained with the network as a bundle; return the model's entry in task.json."""
    bundle = task.embedder.bundle
    bilm = copy.deepcopy(bundle.bilm).cpu()
    bilm.load_state_dict(weights)
    write_tuned(folder, bundle, weights_of(bilm, None))
    digest = file_digest(BundleLayout(folder).info)
    return {"path": str(bundle.path), "digest": digest, "started_from": bundle.digest}


def _draw(
    task: PreparedTask,
    layout: TaskLayout,
    lines: Sequence[Mapping[str, Any]],
    predictions: Mapping[str, Sequence[Prediction]],
    name: str,
) -> None:
    save_picture(curve_figure(lines, task.metric, name), layout.curve)
    part = task.scored_parts()[-1]
    examples, found = task.dataset.parts()[part], predictions[part]
    title = f"{name}: {counted(len(examples), f'{part} example')}"
    if task.job.settings.regression:
        numbers = [float(example.labels[0]) for example in examples]
        values = [each.value for each in found if isinstance(each, NumberPrediction)]
        score = f"{task.metric} {task.scores(found, part)[task.metric]:.4f}"
        save_picture(scatter_figure(numbers, values, title, score), layout.scatter)
        return
    pairs = confusable_labels(examples, found, marks_spans=bool(task.dataset.scheme))
    labels = sorted({label for each in pairs for label in each})
    save_picture(confusion_figure(confusion_matrix(*pairs, labels), labels, title), layout.confusion)
    for line in describe_numbers(labels, layout.confusion.name):
        task.reporter.note(line)
