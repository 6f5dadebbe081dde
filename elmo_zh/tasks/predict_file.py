"""Predictions as rows of a file: JSON lines, a table, or CoNLL."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from elmo_zh.tasks.data.schemes import spans_of, tags_of
from elmo_zh.tasks.predictions import ClassPrediction, NumberPrediction, PredictedSpan, Prediction, TagPrediction

FORMATS = ("jsonl", "tsv", "conll")


def header_of(kind: str, *, of_tags: bool, of_numbers: bool, num_texts: int, with_probabilities: bool = False) -> str:
    """Return the first line of a file of predictions; empty for JSON lines and CoNLL."""
    if kind != "tsv":
        return ""
    if of_tags:
        probability = ["probability"] if with_probabilities else []
        return "\t".join(["line", "start", "end", "label", *probability, "text"]) + "\n"
    texts = ["text"] if num_texts == 1 else ["text1", "text2"]
    return "\t".join([*(["value"] if of_numbers else ["label", "probability"]), *texts]) + "\n"


def rows_of(kind: str, number: int, texts: Sequence[str], prediction: Prediction, scheme: str = "") -> str:
    """Return the rows of one prediction.

    Args:
        kind: jsonl; tsv (a row for each text, of tags for each span or unit); or conll (a row for each unit, for tags).
        number: Number of the text from 0.
        texts: The text, or the two of a pair.
        prediction: What was predicted.
        scheme: Scheme of the tags in CoNLL; "" for that of the training data.
    """
    if kind == "jsonl":
        return json.dumps({**_named(texts), **_values(prediction)}, ensure_ascii=False) + "\n"
    if isinstance(prediction, TagPrediction):
        return _conll(prediction, scheme) if kind == "conll" else _spans(number, prediction)
    if isinstance(prediction, NumberPrediction):
        cells = [f"{prediction.value:.6g}"]
    else:
        cells = [prediction.label, f"{prediction.probabilities[prediction.label]:.6f}"]
    return "\t".join([*cells, *map(_cell, texts)]) + "\n"


def _named(texts: Sequence[str]) -> dict[str, str]:
    return {"text": texts[0]} if len(texts) == 1 else {"text1": texts[0], "text2": texts[1]}


def _values(prediction: Prediction) -> dict[str, Any]:
    if isinstance(prediction, ClassPrediction):
        rounded = {label: round(value, 6) for label, value in prediction.probabilities.items()}
        return {"label": prediction.label, "probabilities": rounded}
    if isinstance(prediction, NumberPrediction):
        return {"value": prediction.value}
    if prediction.marks_spans:
        return {"spans": [_span(span) for span in prediction.spans]}
    found = {"units": prediction.units, "offsets": prediction.offsets.tolist(), "tags": prediction.tags}
    if prediction.probabilities is not None:
        found["probabilities"] = [round(value, 6) for value in prediction.probabilities]
    return found


def _span(span: PredictedSpan) -> dict[str, Any]:
    found = asdict(span)
    if span.probability is None:
        del found["probability"]
    else:
        found["probability"] = round(span.probability, 6)
    return found


def _spans(number: int, prediction: TagPrediction) -> str:
    if prediction.marks_spans:
        found = [(span.start, span.end, span.label, span.probability, span.text) for span in prediction.spans]
    else:
        rows = zip(
            prediction.offsets.tolist(), prediction.tags, _probabilities(prediction), prediction.units, strict=True
        )
        found = [(start, end, tag, probability, unit) for (start, end), tag, probability, unit in rows]
    return "".join(
        f"{number}\t{start}\t{end}\t{label}\t{_number_cell(probability)}{_cell(text)}\n"
        for start, end, label, probability, text in found
    )


def _conll(prediction: TagPrediction, scheme: str) -> str:
    tags = prediction.tags
    if scheme and prediction.marks_spans:
        tags = tags_of(spans_of(tags)[0], len(tags), scheme)
    rows = zip(prediction.units, _probabilities(prediction), tags, strict=True)
    # The tag stays the last column, where readers of CoNLL expect it.
    return "".join(f"{unit}\t{_number_cell(probability)}{tag}\n" for unit, probability, tag in rows) + "\n"


def _probabilities(prediction: TagPrediction) -> Sequence[float | None]:
    """Return the probability of each unit's tag, or None for each."""
    return [None] * len(prediction.units) if prediction.probabilities is None else prediction.probabilities


def _number_cell(probability: float | None) -> str:
    """Return a probability followed by a tab, or an empty string for None."""
    return "" if probability is None else f"{probability:.6f}\t"


def _cell(text: str) -> str:
    """Return a text as one cell of a table."""
    return text.replace("\t", " ").replace("\n", " ").replace("\r", " ")
