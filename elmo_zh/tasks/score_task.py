"""Scores of a task's predictions, whatever its kind, and the one score that decides when to stop."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from elmo_zh.errors import CorpusError
from elmo_zh.run.reporter import Reporter, counted
from elmo_zh.tasks.data.examples import Example
from elmo_zh.tasks.data.read_labelled import Reading, read_labelled
from elmo_zh.tasks.networks.settings import HeadSettings
from elmo_zh.tasks.predictions import ClassPrediction, NumberPrediction, Prediction, TagPrediction
from elmo_zh.tasks.scores import score_classes, score_numbers, score_spans
from elmo_zh.tasks.task_model import TaskModel


def main_metric(settings: HeadSettings, *, marks_spans: bool) -> str:
    """Return the name of the score that decides when to stop: accuracy, macro_f1, f1 of spans, or spearman."""
    if settings.kind == "tag":
        return "f1" if marks_spans else "accuracy"
    return "spearman" if settings.regression else settings.metric


def score_predictions(
    examples: Sequence[Example], predictions: Sequence[Prediction], *, marks_spans: bool
) -> dict[str, Any]:
    """Return the scores of predictions: of classes, numbers, spans, or tags that mark no spans."""
    first = predictions[0]
    if isinstance(first, TagPrediction):
        gold, found = [example.labels for example in examples], [_tags(each) for each in predictions]
        if marks_spans:
            return score_spans(gold, found)
        return score_classes(*([tag for tags in each for tag in tags] for each in (gold, found)))
    labels = [example.labels[0] for example in examples]
    if isinstance(first, NumberPrediction):
        values = [each.value for each in predictions if isinstance(each, NumberPrediction)]
        return score_numbers([float(label) for label in labels], values)
    return score_classes(labels, [each.label for each in predictions if isinstance(each, ClassPrediction)])


def confusable_labels(
    examples: Sequence[Example], predictions: Sequence[Prediction], *, marks_spans: bool
) -> tuple[list[str], list[str]]:
    """Return the true and the predicted labels that a confusion matrix counts: for spans the type of each unit."""
    gold: list[str] = []
    found: list[str] = []
    for example, prediction in zip(examples, predictions, strict=True):
        if isinstance(prediction, TagPrediction):
            gold += [_type(tag) if marks_spans else tag for tag in example.labels]
            found += [_type(tag) if marks_spans else tag for tag in prediction.tags]
        elif isinstance(prediction, ClassPrediction):
            gold.append(example.labels[0])
            found.append(prediction.label)
    return gold, found


def _tags(prediction: Prediction) -> list[str]:
    return prediction.tags if isinstance(prediction, TagPrediction) else []


def _type(tag: str) -> str:
    return tag[2:] or tag


def score_examples(
    model: TaskModel, data: Path, reading: Reading, reporter: Reporter
) -> tuple[str, int, dict[str, Any]]:
    """Return the main metric, the number of examples, and the scores of a trained task on a labelled file.

    Raises:
        CorpusError: If the file cannot be read, or its labels are of another kind than those of the task.
    """
    description = model.description
    labelled = read_labelled(data, reading)
    note = f"{counted(len(labelled.examples), 'example')}; {'; '.join(labelled.notes)}"
    reporter.note(f"Reading {labelled.name}: {note}")
    if reading.kind == "tag" and (
        bool(labelled.scheme) != description.marks_spans or labelled.by_words != description.by_words
    ):
        raise CorpusError(
            f"{data} has tags of another kind than the task was trained on: words or characters, spans or a tag for"
            " each. Give data like the training data."
        )
    new = {label for example in labelled.examples for label in example.labels} - set(description.labels)
    if new and not reading.regression:
        shown = ", ".join(sorted(new)[:10])
        reporter.warn(f"Labels that the task does not know count as wrong: {shown[:200]}.")
    predictions = model.predict_examples(labelled.examples)
    metric = main_metric(description.settings, marks_spans=description.marks_spans)
    scores = score_predictions(labelled.examples, predictions, marks_spans=description.marks_spans)
    return metric, len(predictions), scores
