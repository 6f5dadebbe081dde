"""Read what annotation tools write around labels: rejected records, choices and spans in cells, foreign formats."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from elmo_zh.corpus.encodings import DecodedText
from elmo_zh.corpus.readers.rows import iter_rows
from elmo_zh.errors import CorpusError
from elmo_zh.language import _
from elmo_zh.run.files import parse_json

# A record says in these fields that a person rejected or skipped it: in Prodigy's exports and in Label Studio's.
_ANSWERS, _REJECTED = "answer", ("reject", "ignore")
_SKIPPED = ("was_cancelled", "cancelled", "is_skipped", "skipped")
STATES = (_ANSWERS, *_SKIPPED)
# How Label Studio's choices and spans begin in a cell of its CSV.
_CHOICES, _SPANS = '{"choices"', '[{"'
# A span in brat's standoff format, and one that YEDDA marks inside the text.
_BRAT, _YEDDA = re.compile(r"^T\d+\t\S+ \d+ \d+(;\d+ \d+)*\t", re.MULTILINE), re.compile(r"\[@[^][\n]+#[^][#*\s]+\*\]")


def iter_accepted(text: DecodedText, left_out: Counter[str]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the numbers and values of JSON records, except those rejected or skipped, which are counted by reason."""
    for number, record in iter_rows(text, "jsonl"):
        where = f"{text.name}: " + _("record {number}").format(number=number)
        if isinstance(record.get("data"), dict) and isinstance(record.get("annotations"), list):
            raise CorpusError(_("{where} is a full export of Label Studio. Export as JSON-MIN.").format(where=where))
        if "" in record:
            raise CorpusError(_("{where} is not an object. Write one JSON object per line.").format(where=where))
        answer = record.get(_ANSWERS)
        skipped = next((name for name in _SKIPPED if record.get(name) is True), "")
        if answer in _REJECTED or skipped:
            left_out[_("left out because of {field}").format(field=skipped or f"{_ANSWERS}: {answer}")] += 1
        else:
            yield number, record


def left_out_notes(left_out: Counter[str]) -> list[str]:
    """Return a note for each reason for which records were left out."""
    return [f"{reason}: {count:,}" for reason, count in left_out.items() if count]


def labels_in(where: str, value: Any, field: str) -> Any:
    """Return a label as given or, for Label Studio's choices, their list; raise CorpusError for spans."""
    if isinstance(value, str) and value.startswith((_CHOICES, _SPANS)):
        try:
            value = parse_json(value)
        except ValueError:
            return value
    if isinstance(value, list) and any(isinstance(item, dict) for item in value):
        raise CorpusError(
            _("{where} has spans in {field}. Use task fit tag; from Label Studio, export as JSON-MIN.").format(
                where=where, field=field
            )
        )
    return value["choices"] if isinstance(value, dict) and isinstance(value.get("choices"), list) else value


def refuse_other_formats(name: str, head: str) -> None:
    """Raise CorpusError if a file starts in the standoff format of brat or in the inline markup of YEDDA."""
    brat, yedda = _BRAT.search(head), _YEDDA.search(head)
    if found := brat or yedda:
        shown = " ".join(found[0].split())[:40]
        raise CorpusError(
            _(
                "{name} is in the format of {tool} ({shown}), which task does not read. Convert each text to a line of"
                " JSON, {example}, with the places of the spans in characters."
            ).format(
                name=name,
                tool="brat" if brat else "YEDDA",
                shown=shown,
                example='{"text": "...", "entities": [[start, end, type], ...]}',
            )
        )
