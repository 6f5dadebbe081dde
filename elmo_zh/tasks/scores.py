"""A task's predictions: what they are, their rows in files, their scores, and intervals for differences of scores.

The intervals come from a paired bootstrap (Efron and Tibshirani 1993).
"""

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.metrics import confusion_matrix

from elmo_zh.config.task_settings import HeadSettings
from elmo_zh.corpus.readers.examples import OUTSIDE, Example, spans_of, tags_of

Rows = NDArray[np.float64]
# Bootstrap draws for a score that is a ratio of sums, and for a rank correlation, which sorts anew in each draw.
_DRAWS, _DRAWS_OF_RANKS = 10_000, 1_000
_CHUNK_NUMBERS = 2**22


@dataclass(frozen=True)
class ClassPrediction:
    """The predicted class of a text or a pair.

    Attributes:
        label: The most probable class.
        probabilities: The probability of each class.
    """

    label: str
    probabilities: dict[str, float]


@dataclass(frozen=True)
class NumberPrediction:
    """The predicted number for a text or a pair, in regression."""

    value: float


@dataclass(frozen=True)
class PredictedSpan:
    """A predicted span of characters.

    Attributes:
        start: Its first character in the text as given.
        end: One past its last character.
        label: Its type.
        text: The characters.
    """

    start: int
    end: int
    label: str
    text: str


@dataclass(frozen=True, eq=False)
class TagPrediction:
    """The predicted tags of a text.

    Attributes:
        text: The text as given.
        units: The characters or words that have tags.
        offsets: Start and end of each unit in characters, int32, shape (n, 2).
        tags: The tag of each unit, in the scheme of the training data.
        spans: The spans marked by the tags; may be empty.
        marks_spans: Whether the task's tags mark spans.
    """

    text: str
    units: list[str]
    offsets: NDArray[np.int32] = field(repr=False)
    tags: list[str]
    spans: list[PredictedSpan]
    marks_spans: bool


Prediction = ClassPrediction | NumberPrediction | TagPrediction


def class_prediction(labels: Sequence[str], probabilities: Sequence[float]) -> ClassPrediction:
    """Turn the class probabilities of a text, in the order of the labels, into a prediction."""
    by_label = dict(zip(labels, probabilities, strict=True))
    return ClassPrediction(max(by_label, key=lambda label: by_label[label]), by_label)


def class_predictions(logs: NDArray[np.float64], labels: Sequence[str]) -> list[Prediction]:
    """Turn log-probabilities of the classes, shape (N, K), into predictions."""
    return [class_prediction(labels, row) for row in np.exp(logs).tolist()]


def tag_prediction(text: str, offsets: NDArray[np.int32], tags: Sequence[str], scheme: str) -> TagPrediction:
    """Convert a text's BIOES tags to spans and to the tags of a scheme; without a scheme, keep the tags."""
    units = [text[start:end] for start, end in offsets]
    if not scheme:
        return TagPrediction(text, units, offsets, list(tags), [], marks_spans=False)
    spans = spans_of(tags)[0]
    predicted_spans = []
    for first, end, kind in spans:
        start, stop = int(offsets[first, 0]), int(offsets[end - 1, 1])
        predicted_spans.append(PredictedSpan(start, stop, kind, text[start:stop]))
    return TagPrediction(text, units, offsets, tags_of(spans, len(tags), scheme), predicted_spans, marks_spans=True)


def predict_majority(
    train: Sequence[Example], test: Sequence[Example], settings: HeadSettings, scheme: str
) -> list[Prediction]:
    """Predict the most frequent training label for every text; for numbers, their mean; for spans, no spans."""
    if settings.regression:
        mean = float(np.mean([float(example.labels[0]) for example in train]))
        return [NumberPrediction(mean) for _ in test]
    counts = Counter(label for example in train for label in example.labels)
    label = OUTSIDE if scheme else max(sorted(counts), key=lambda each: counts[each])
    return [
        ClassPrediction(label, {label: 1.0})
        if example.units is None
        else tag_prediction(example.texts[0], example.units, [label] * len(example.labels), scheme and "BIOES")
        for example in test
    ]


def columns_of(*, of_tags: bool, of_numbers: bool, num_texts: int) -> list[str]:
    """Return the column names of a table of predictions, which depend on the kind of task."""
    if of_tags:
        return ["line", "start", "end", "label", "text"]
    return [*(["value"] if of_numbers else ["label", "probability"]), *_named([""] * num_texts)]


def rows_of(kind: str, number: int, texts: Sequence[str], prediction: Prediction) -> Iterator[dict[str, Any]]:
    """Yield one prediction as a JSON object, or as one row per text, span or unit; `number` counts texts from 0."""
    if kind == "jsonl":
        yield {**_named(texts), **_values(prediction)}
    elif isinstance(prediction, TagPrediction):
        yield from ({"line": number, **asdict(span)} for span in _rows(prediction))
    elif isinstance(prediction, NumberPrediction):
        yield {"value": f"{prediction.value:.6g}", **_named(texts)}
    else:
        probability = f"{prediction.probabilities[prediction.label]:.6f}"
        yield {"label": prediction.label, "probability": probability, **_named(texts)}


def _named(texts: Sequence[str]) -> dict[str, str]:
    return {"text": texts[0]} if len(texts) == 1 else {"text1": texts[0], "text2": texts[1]}


def _values(prediction: Prediction) -> dict[str, Any]:
    if isinstance(prediction, ClassPrediction):
        rounded = {label: round(value, 6) for label, value in prediction.probabilities.items()}
        return {"label": prediction.label, "probabilities": rounded}
    if isinstance(prediction, NumberPrediction):
        return {"value": prediction.value}
    if prediction.marks_spans:
        return {"spans": [asdict(span) for span in prediction.spans]}
    return {"units": prediction.units, "offsets": prediction.offsets.tolist(), "tags": prediction.tags}


def _rows(prediction: TagPrediction) -> list[PredictedSpan]:
    """Return the spans or, if tags mark none, each unit with its tag."""
    if prediction.marks_spans:
        return prediction.spans
    columns = zip(prediction.offsets.tolist(), prediction.tags, prediction.units, strict=True)
    return [PredictedSpan(start, end, tag, unit) for (start, end), tag, unit in columns]


def conll_of(prediction: TagPrediction, scheme: str | None) -> str:
    """Return a tagged text in CoNLL, with spans marked in the given scheme or else as in the training data."""
    tags = prediction.tags
    if scheme and prediction.marks_spans:
        tags = tags_of(spans_of(tags)[0], len(tags), scheme)
    return "".join(f"{unit}\t{tag}\n" for unit, tag in zip(prediction.units, tags, strict=True)) + "\n"


def confusion(gold: Sequence[Any], predicted: Sequence[Any], labels: Sequence[Any]) -> NDArray[np.int64]:
    """Count how often each label (row) was predicted as each label (column), int64, shape (K, K)."""
    # scikit-learn wonders about many classes, and about one.
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        matrix: NDArray[np.int64] = confusion_matrix(gold, predicted, labels=labels)
    return matrix


def score_classes(gold: Sequence[Any], predicted: Sequence[Any]) -> dict[str, Any]:
    """Return `accuracy`, `macro_f1` (the mean over labels that occur) and each label's F1 in `by_label`."""
    labels = sorted({*gold, *predicted})
    matrix = confusion(gold, predicted, labels)
    counts = zip(matrix.diagonal().tolist(), matrix.sum(axis=0).tolist(), matrix.sum(axis=1).tolist(), strict=True)
    by_label = {label: _prf(*own) for label, own in zip(labels, counts, strict=True)}
    macro_f1 = float(np.mean([scores["f1"] for scores in by_label.values()]))
    return {
        "accuracy": float(matrix.trace() / len(gold)) if len(gold) else 0.0,
        "macro_f1": macro_f1,
        "by_label": by_label,
    }


def score_spans(gold: Iterable[Sequence[str]], predicted: Iterable[Sequence[str]]) -> dict[str, Any]:
    """Return micro-averaged `precision`, `recall` and `f1` of whole spans, and each type's scores in `by_label`.

    A span is correct if its borders and its type are. Tags may follow any scheme.
    """
    correct, found, wanted = Counter[str](), Counter[str](), Counter[str]()
    for gold_tags, predicted_tags in zip(gold, predicted, strict=True):
        gold_spans, predicted_spans = set(spans_of(gold_tags)[0]), set(spans_of(predicted_tags)[0])
        wanted.update(kind for _, _, kind in gold_spans)
        found.update(kind for _, _, kind in predicted_spans)
        correct.update(kind for _, _, kind in gold_spans & predicted_spans)
    by_label = {kind: _prf(correct[kind], found[kind], wanted[kind]) for kind in sorted({*found, *wanted})}
    overall = _prf(correct.total(), found.total(), wanted.total())
    return {name: overall[name] for name in ("f1", "precision", "recall")} | {"by_label": by_label}


def score_numbers(gold: Sequence[float], predicted: Sequence[float]) -> dict[str, Any]:
    """Return the correlations `pearson` and `spearman`, and the root mean square error `rmse`."""
    true, predictions = np.array(gold, np.float64), np.array(predicted, np.float64)
    return {
        "pearson": _correlation(true, predictions),
        "spearman": rank_correlation(true, predictions),
        "rmse": float(np.sqrt(np.mean((true - predictions) ** 2))),
    }


def rank_correlation(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Return Spearman's correlation; 0 if either array is constant."""
    return _correlation(rankdata(a), rankdata(b))


def _correlation(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    is_constant = len(a) < 2 or np.ptp(a) == 0 or np.ptp(b) == 0
    return 0.0 if is_constant else float(np.corrcoef(a, b)[0, 1])


def _prf(correct: int, found: int, wanted: int) -> dict[str, Any]:
    parts = {"f1": (2 * correct, found + wanted), "precision": (correct, found), "recall": (correct, wanted)}
    return {**{name: part / whole if whole else 0.0 for name, (part, whole) in parts.items()}, "count": wanted}


def main_metric(settings: HeadSettings, *, marks_spans: bool) -> str:
    """Return the name of the score that decides when to stop: accuracy, macro_f1, f1 of spans, or spearman."""
    if settings.kind == "tag":
        return "f1" if marks_spans else "accuracy"
    return "spearman" if settings.regression else settings.metric


def score_predictions(
    examples: Sequence[Example], predictions: Sequence[Prediction], *, marks_spans: bool
) -> dict[str, Any]:
    """Score predictions against labelled examples: classes, numbers, spans, or tags that do not mark spans."""
    first = predictions[0]
    if isinstance(first, TagPrediction):
        gold = [example.labels for example in examples]
        found = [each.tags for each in predictions if isinstance(each, TagPrediction)]
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
    """Return the true and predicted labels for a confusion matrix; for spans, the type of each unit."""
    gold = [label for example in examples for label in example.labels]
    predicted: list[str] = []
    for prediction in predictions:
        if isinstance(prediction, TagPrediction):
            predicted += prediction.tags
        elif isinstance(prediction, ClassPrediction):
            predicted.append(prediction.label)
    if marks_spans:
        return [tag[2:] or tag for tag in gold], [tag[2:] or tag for tag in predicted]
    return gold, predicted


@dataclass(frozen=True)
class Difference:
    """The difference between two scores over all test examples, and its 95% interval."""

    value: float
    low: float
    high: float

    @property
    def is_sure(self) -> bool:
        """Whether the interval excludes zero."""
        return self.low > 0 or self.high < 0

    def points(self) -> str:
        """Return the difference in points with its interval, such as +1.50 (-0.20 to +3.10)."""
        value, low, high = (f"{100 * each:+.2f}" for each in (self.value, self.low, self.high))
        return f"{value} ({low} to {high})"


def example_rows(
    examples: Sequence[Example],
    predictions: Sequence[Prediction],
    *,
    metric: str,
    marks_spans: bool = False,
    labels: Iterable[str] = (),
) -> Rows:
    """Return how much each example contributes to the score, float64, shape (N, 2).

    For accuracy: right labels and all labels. For F1 of spans: twice the right spans, and predicted plus true spans;
    the score is the sum of the first column over the sum of the second. For numbers: the true and the predicted number.
    For macro F1: the true and the predicted class, numbered from 0 in order of name among all `labels`.
    """
    classes = {*labels, *(label for example in examples for label in example.labels)}
    classes |= {prediction.label for prediction in predictions if isinstance(prediction, ClassPrediction)}
    numbers = {name: number for number, name in enumerate(sorted(classes))}

    def row(example: Example, prediction: Prediction) -> tuple[float, float]:
        if isinstance(prediction, NumberPrediction):
            return float(example.labels[0]), prediction.value
        if isinstance(prediction, ClassPrediction):
            if metric == "macro_f1":
                return numbers[example.labels[0]], numbers[prediction.label]
            return float(prediction.label == example.labels[0]), 1.0
        if not marks_spans:
            right = sum(gold == tag for gold, tag in zip(example.labels, prediction.tags, strict=True))
            return float(right), float(len(example.labels))
        gold, predicted = set(spans_of(example.labels)[0]), set(spans_of(prediction.tags)[0])
        return 2.0 * len(gold & predicted), float(len(gold) + len(predicted))

    rows = [row(example, prediction) for example, prediction in zip(examples, predictions, strict=True)]
    return np.array(rows, np.float64).reshape(-1, 2)


def score_rows(rows: Rows, *, metric: str) -> float:
    """Compute a score from the contributions of all examples."""
    if metric == "spearman":
        return rank_correlation(rows[:, 0], rows[:, 1])
    return float(_ratios(_summands(rows[None], metric)[0].sum(axis=0)))


def bootstrap_difference(first: Sequence[Rows], second: Sequence[Rows], *, metric: str, seed: int) -> Difference:
    """Return how much higher the first model scores than the second, averaged over runs, with a 95% interval."""
    models, generator = (np.stack(first), np.stack(second)), np.random.default_rng(seed)
    if metric == "spearman":
        drawn = _draw_ranks(models, generator)
    else:
        drawn = _draw_ratios([_summands(model, metric) for model in models], generator)
    low, high = np.quantile(drawn, (0.025, 0.975))
    ours, others = (np.mean([score_rows(rows, metric=metric) for rows in model]) for model in models)
    return Difference(float(ours - others), float(low), float(high))


def _draw_ratios(models: Sequence[Rows], generator: np.random.Generator) -> Rows:
    """Return the difference between the scores in each draw; an example drawn k times counts k times.

    Each model has what every example adds to the numerator and the denominator of each ratio, shape (seeds, examples,
    ratios, 2).
    """
    num_examples = models[0].shape[1]
    chunk = max(1, min(_DRAWS, _CHUNK_NUMBERS // num_examples))
    differences = []
    for start in range(0, _DRAWS, chunk):
        size = min(chunk, _DRAWS - start)
        drawn = generator.integers(num_examples, size=(size, num_examples))
        drawn += np.arange(size)[:, None] * num_examples
        counts = np.bincount(drawn.ravel(), minlength=size * num_examples).reshape(size, num_examples)
        sums = (np.tensordot(counts.astype(np.float64), model, (1, 1)) for model in models)
        ours, others = (_ratios(of_model).mean(axis=1) for of_model in sums)
        differences.append(ours - others)
    return np.concatenate(differences)


def _draw_ranks(models: Sequence[Rows], generator: np.random.Generator) -> Rows:
    num_examples = models[0].shape[1]

    def score(model: Rows) -> float:
        return float(np.mean([rank_correlation(rows[:, 0], rows[:, 1]) for rows in model]))

    draws = (generator.integers(num_examples, size=num_examples) for _ in range(_DRAWS_OF_RANKS))
    return np.array([score(models[0][:, drawn]) - score(models[1][:, drawn]) for drawn in draws])


def _summands(models: Rows, metric: str) -> Rows:
    """Return each example's summands, float64, shape (S, N, K, 2), for S training runs with rows of shape (S, N, 2).

    For macro F1, a class gets two numbers: 2 if it is predicted correctly, else 0; and 1 if it is the true class plus 1
    if it is the predicted one. For other metrics, K is 1.
    """
    if metric != "macro_f1":
        return models[:, :, None]
    is_of_class = models[..., None, :] == np.arange(models.max(initial=0) + 1)[:, None]
    gold, predicted = is_of_class[..., 0], is_of_class[..., 1]
    return np.stack([2.0 * (gold & predicted), gold.astype(np.float64) + predicted], axis=-1)


def _ratios(sums: Rows) -> Rows:
    """Return ratios along the last axis, averaged over the classes whose denominator is above 0."""
    wholes = sums[..., 1]
    ratios = np.divide(sums[..., 0], wholes, out=np.zeros(wholes.shape), where=wholes > 0)
    means: Rows = ratios.sum(axis=-1) / np.maximum(1, (wholes > 0).sum(axis=-1))
    return means
