"""Predictions as rows of a file: JSON lines, a table, or CoNLL."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from elmo_zh.tasks.data.schemes import spans_of, tags_of
from elmo_zh.tasks.predictions import ClassPrediction, NumberPrediction, Prediction, TagPrediction

FORMATS = ("jsonl", "tsv", "conll")


def header_of(kind: str, *, of_tags: bool, of_numbers: bool, num_texts: int) -> str:
    """Return the first line of a file of predictions; empty for JSON lines and CoNLL."""
    if kind != "tsv":
        return ""
    if of_tags:
        return "line\tstart\tend\tlabel\ttext\n"
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
        return {"spans": [asdict(span) for span in prediction.spans]}
    return {"units": prediction.units, "offsets": prediction.offsets.tolist(), "tags": prediction.tags}


def _spans(number: int, prediction: TagPrediction) -> str:
    if prediction.marks_spans:
        found = [(span.start, span.end, span.label, span.text) for span in prediction.spans]
    else:
        offsets = prediction.offsets.tolist()
        found = [
            (start, end, tag, unit)
            for (start, end), tag, unit in zip(offsets, prediction.tags, prediction.units, strict=True)
        ]
    return "".join(f"{number}\t{start}\t{end}\t{label}\t{_cell(text)}\n" for start, end, label, text in found)


def _conll(prediction: TagPrediction, scheme: str) -> str:
    tags = prediction.tags
    if scheme and prediction.marks_spans:
        tags = tags_of(spans_of(tags)[0], len(tags), scheme)
    return "".join(f"{unit}\t{tag}\n" for unit, tag in zip(prediction.units, tags, strict=True)) + "\n"


def _cell(text: str) -> str:
    """Return a text as one cell of a table."""
    return text.replace("\t", " ").replace("\n", " ").replace("\r", " ")
