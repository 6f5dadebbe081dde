"""A task's predictions: what they are, their rows in files, their scores, and intervals for differences between scores.

The intervals come from a paired bootstrap (Efron and Tibshirani 1993).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from elmo_zh.config.task_settings import HeadSettings
from elmo_zh.corpus.readers.examples import OUTSIDE, spans_of, tags_of
from elmo_zh.language import _
from elmo_zh.run.files import write_json
from elmo_zh.run.outputs import write_mark

Rows = NDArray[np.float64]
# The labels of each example, true or predicted: its class, its number, or the tags of its units, in BIOES for spans.
Answers = Sequence[Sequence[Any]]
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
        start: The index of its first character in the text as given.
        end: The index after its last character.
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


def conll_of(prediction: TagPrediction) -> str:
    """Return a tagged text in CoNLL format, with spans marked as in the training data."""
    tagged = zip(prediction.units, prediction.tags, strict=True)
    return "".join(f"{unit}\t{tag}\n" for unit, tag in tagged) + "\n"


def score_classes(gold: Sequence[Any], predicted: Sequence[Any]) -> dict[str, Any]:
    """Return `accuracy`, `macro_f1` (the mean over true and predicted labels) and each label's scores in `by_label`."""
    correct = Counter(label for label, other in zip(gold, predicted, strict=True) if label == other)
    by_label = _by_label(correct, Counter(predicted), Counter(gold))
    return {
        "accuracy": correct.total() / len(gold) if len(gold) else 0.0,
        "macro_f1": float(np.mean([scores["f1"] for scores in by_label.values()])),
        "by_label": by_label,
    }


def score_spans(gold: Iterable[Sequence[str]], predicted: Iterable[Sequence[str]]) -> dict[str, Any]:
    """Return micro-averaged `precision`, `recall` and `f1` of whole spans, and each type's scores in `by_label`.

    A span is correct if both its boundaries and its type are correct. Tags may follow any scheme.
    """
    correct, guessed, wanted = Counter[str](), Counter[str](), Counter[str]()
    for gold_tags, predicted_tags in zip(gold, predicted, strict=True):
        gold_spans, predicted_spans = set(spans_of(gold_tags)[0]), set(spans_of(predicted_tags)[0])
        wanted.update(kind for _, _, kind in gold_spans)
        guessed.update(kind for _, _, kind in predicted_spans)
        correct.update(kind for _, _, kind in gold_spans & predicted_spans)
    overall = _prf(correct.total(), guessed.total(), wanted.total())
    by_label = _by_label(correct, guessed, wanted)
    return {**{name: overall[name] for name in ("f1", "precision", "recall")}, "by_label": by_label}


def _by_label(correct: Counter[Any], guessed: Counter[Any], wanted: Counter[Any]) -> dict[Any, dict[str, Any]]:
    return {label: _prf(correct[label], guessed[label], wanted[label]) for label in sorted({*guessed, *wanted})}


def _prf(correct: int, guessed: int, wanted: int) -> dict[str, Any]:
    parts = {"f1": (2 * correct, guessed + wanted), "precision": (correct, guessed), "recall": (correct, wanted)}
    return {**{name: part / whole if whole else 0.0 for name, (part, whole) in parts.items()}, "count": wanted}


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


def main_metric(settings: HeadSettings, scheme: str) -> str:
    """Return the name of the score that decides when to stop: accuracy, macro_f1, f1 of spans, or spearman."""
    if settings.kind == "tag":
        return "f1" if scheme else "accuracy"
    return "spearman" if settings.regression else settings.metric


def score_answers(gold: Answers, answers: Answers, metric: str) -> dict[str, Any]:
    """Score answers against the true ones: spans if the metric is f1, numbers if it is spearman, else classes."""
    if metric == "f1":
        return score_spans(gold, answers)
    if metric == "spearman":
        return score_numbers([float(number) for [number] in gold], [number for [number] in answers])
    return score_classes([*chain.from_iterable(gold)], [*chain.from_iterable(answers)])


def answer_majority(train: Answers, gold: Answers, metric: str) -> Answers:
    """Answer each text or unit with the most frequent training label; numbers with their mean; spans with O."""
    counts = Counter(chain.from_iterable(train))
    usual: Any = OUTSIDE if metric == "f1" else max(sorted(counts), key=lambda label: counts[label])
    if metric == "spearman":
        usual = float(np.mean([float(number) for [number] in train]))
    return [[usual] * len(labels) for labels in gold]


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
        value, low, high = (f"{100 * bound:+.2f}" for bound in (self.value, self.low, self.high))
        return _("{value} ({low} to {high})").format(value=value, low=low, high=high)


def answer_rows(gold: Answers, answers: Answers, metric: str, labels: Iterable[str] = ()) -> Rows:
    """Return what each example contributes to the score, float64, shape (N, 2).

    For accuracy: right labels and all labels. For F1 of spans: twice the right spans, and predicted plus true spans;
    the score is the sum of the first column over the sum of the second. For numbers: the true and the predicted number.
    For macro F1: the true and the predicted class, numbered from 0 by name among `labels` and all that occur.
    """
    numbers = {}
    if metric == "macro_f1":
        classes = {*labels, *chain.from_iterable(gold), *chain.from_iterable(answers)}
        numbers = {name: number for number, name in enumerate(sorted(classes))}

    def row(true: Sequence[Any], answer: Sequence[Any]) -> tuple[float, float]:
        if metric == "spearman":
            return float(true[0]), answer[0]
        if metric == "macro_f1":
            return numbers[true[0]], numbers[answer[0]]
        if metric == "f1":
            spans, predicted = set(spans_of(true)[0]), set(spans_of(answer)[0])
            return 2.0 * len(spans & predicted), float(len(spans) + len(predicted))
        return float(sum(label == other for label, other in zip(true, answer, strict=True))), float(len(true))

    return np.array([*map(row, gold, answers)], np.float64).reshape(-1, 2)


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
    """Return the first model's score minus the second's in each draw; an example drawn k times counts k times.

    For each model, `models` holds what each example adds to the numerator and the denominator of each ratio, shape
    (runs, examples, ratios, 2).
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


def write_report(folder: Path, kind: str, title: str, lines: Sequence[str], figures: Mapping[str, Any]) -> None:
    """Write a comparison or a probe as Markdown and JSON to its folder, and mark the folder as complete."""
    (folder / f"{kind}.md").write_text("\n".join([f"# {title}", "", *lines, ""]), encoding="utf-8")
    write_json(folder / f"{kind}.json", figures)
    write_mark(folder, kind, 1, {"model": figures["model"]})
