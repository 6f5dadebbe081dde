"""The objects of a JSON file: one a line, or all of them in one list."""

import json
import re
from collections.abc import Iterator
from typing import Any

from elmo_zh.config import TextConfig
from elmo_zh.corpus.decoding import DecodedText
from elmo_zh.corpus.readers.json_lines import json_records, starts_as_json_lines
from elmo_zh.corpus.tally import Tally
from elmo_zh.errors import CorpusError

LONGEST_LIST = 2**26
_HEAD = 2**10
_LIST = re.compile(r"\s*\[\s*\{")


def starts_as_objects(head: str) -> bool:
    """Return whether a text starts with a whole object, or with a list of objects."""
    return starts_as_json_lines(head) or bool(_LIST.match(head))


def iter_objects(text: DecodedText) -> Iterator[dict[str, Any]]:
    """Yield the objects of JSON lines, or of one list; anything else is a CorpusError."""
    if _LIST.match(text.head(_HEAD)):
        records = iter(_list(text))
    else:
        advice = "Give one JSON object a line, or one list of objects."
        records = json_records(text, TextConfig(), Tally(), keeps_all=True, advice=advice)
    for number, record in enumerate(records, start=1):
        if not isinstance(record, dict):
            raise CorpusError(f"{text.name}: record {number} is no object. Give one JSON object a line.")
        if isinstance(record.get("data"), dict) and isinstance(record.get("annotations"), list):
            raise CorpusError(
                f"{text.name} is Label Studio's full export, which is not read. Export it as JSON-MIN instead."
            )
        yield record


def _list(text: DecodedText) -> list[Any]:
    chunks: list[str] = []
    num_characters = 0
    for chunk in text.chunks():
        num_characters += len(chunk)
        if num_characters > LONGEST_LIST:
            raise CorpusError(
                f"{text.name} is one list of more than {LONGEST_LIST:,} characters. Give one JSON object a line."
            )
        chunks.append(chunk)
    try:
        found: list[Any] = json.loads("".join(chunks))
    except (ValueError, RecursionError) as error:
        raise CorpusError(f"{text.name} is not JSON ({error}). Correct it, or give one JSON object a line.") from None
    return found
