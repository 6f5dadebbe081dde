r"""Read tagging data with one record per sentence: character spans of a text, or lists of tokens and tags.

Spans are in CLUENER's format, {"text": ..., "label": {type: {surface: [[start, end], ...]}}}; or in lists, as
annotation tools write them: {"text": ..., "entities": [[start, end, type], ...]}, or objects with start, end and label.
The text of a span, if given, shows whether `end` is the last character or the one after it.

Lists are {"tokens": ["李", "白"], "ner_tags": ["B-PER", "I-PER"]}, where the tokens may also be a text with a tag for
each character; or tables of two columns, with items separated by spaces or by \x02.
"""

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from elmo_zh.corpus.decoding import DecodedText
from elmo_zh.corpus.readers.columns import LABEL_NAMES, TEXT_NAMES
from elmo_zh.corpus.readers.conll import TaggedToken, tagged_examples
from elmo_zh.corpus.readers.examples import Example, Span, tags_of
from elmo_zh.corpus.readers.labelled_records import UnlabelledError, shown_names
from elmo_zh.corpus.readers.rows import Cells, cells_of, iter_objects, plain_text
from elmo_zh.errors import CorpusError
from elmo_zh.run.reporter import counted
from elmo_zh.text.alignment import identity_spans

_LIST_NAMES = ("label", "labels", "entities", "spans", "annotations", "ner", "entity", "实体")
_TYPE_NAMES = ("label", "type", "tag", "category", "entity_type", "labels", "类型")
_START_NAMES = ("start", "start_idx", "start_offset", "begin", "start_index")
_END_NAMES = ("end", "end_idx", "end_offset", "end_index")
_SURFACE_NAMES = ("text", "entity", "word", "name", "mention", "surface")
_TOKEN_NAMES = ("tokens", "words", "chars", "characters", *TEXT_NAMES)
_TAG_NAMES = ("ner_tags", "tags", "pos_tags", "upos", "ner", *LABEL_NAMES)
_ITEM_SEPARATOR = "\x02"
_SAMPLE_ROWS = 50
_DIGITS = re.compile(r"\s*-?\d{1,15}\s*")
_LARGEST = 10**15


@dataclass(frozen=True)
class _Given:
    """A span as given in the file; its surface is "" if the file does not include it."""

    start: int
    end: int
    kind: str
    surface: str


@dataclass(frozen=True)
class _Sentence:
    number: int
    text: str
    spans: tuple[_Given, ...]


def read_spans(text: DecodedText, text_column: str, label_column: str) -> tuple[list[Example], list[str]]:
    """Return the texts in JSON lines with a BIOES tag for each character, and notes on how the file was read."""
    sentences = list(_sentences(text, text_column, label_column))
    if not sentences:
        raise CorpusError(f"{text.name} has no records. Give one JSON object per line.")
    past_end = _end_offset(text.name, sentences)
    notes = ["span ends are inclusive"] if past_end else []
    examples, num_overlaps = [], 0
    for sentence in sentences:
        spans = _checked(text.name, sentence, past_end)
        kept = _without_overlaps(spans)
        num_overlaps += len(spans) - len(kept)
        units = identity_spans(len(sentence.text))
        examples.append(Example((sentence.text,), tuple(tags_of(kept, len(units))), units))
    if num_overlaps:
        notes.append(f"{counted(num_overlaps, 'span')} left out for overlapping a longer span")
    return examples, notes


def _sentences(text: DecodedText, text_column: str, label_column: str) -> Iterator[_Sentence]:
    for number, record in enumerate(iter_objects(text), start=1):
        where = f"{text.name}: record {number}"
        text_names = [text_column] if text_column else TEXT_NAMES
        list_names = [label_column] if label_column else _LIST_NAMES
        field = next((name for name in text_names if isinstance(record.get(name), str)), None)
        spans = next((name for name in list_names if isinstance(record.get(name), dict | list)), None)
        if field is None or spans is None:
            what, option = ("the text", "text") if field is None else ("the spans", "label")
            raise (UnlabelledError if field is not None and number == 1 else CorpusError)(
                f"{where}: cannot find {what} in the fields {shown_names(list(record))}. Choose a field:"
                f" --{option}-column NAME, or write records as"
                ' {"text": "...", "entities": [[start, end, type], ...]}'
            )
        yield _Sentence(number, record[field], tuple(_given(record[spans], where)))


def _given(value: Any, where: str) -> Iterator[_Given]:
    try:
        if isinstance(value, dict):
            for kind, surfaces in value.items():
                for surface, places in surfaces.items():
                    for place in places:
                        start, end = _list(place)
                        yield _span((start, end, kind, surface), place, where)
            return
        for entry in value:
            if isinstance(entry, dict):
                names = (_START_NAMES, _END_NAMES, _TYPE_NAMES, _SURFACE_NAMES)
                yield _span([_field(entry, each) for each in names], entry, where)
            else:
                start, end, kind, *_ = _list(entry)
                yield _span((start, end, kind, None), entry, where)
    except (TypeError, ValueError, AttributeError):
        raise CorpusError(
            f"{where}: the spans are {str(value)[:60]!r}; expected [[start, end, type], ...], objects with start, end"
            " and label, or {type: {text: [[start, end], ...]}}. Correct them."
        ) from None


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError
    return value


def _field(entry: dict[str, Any], names: Sequence[str]) -> Any:
    return next((entry[name] for name in names if entry.get(name) is not None), None)


def _span(values: Sequence[Any], entry: Any, where: str) -> _Given:
    """Return the span for a start, an end, a type and a surface; raise CorpusError if a value is wrong or missing."""
    start, end, kind, surface = values
    if isinstance(kind, list) and len(kind) == 1:
        [kind] = kind
    found = _whole(start), _whole(end), plain_text(kind), "" if surface is None else plain_text(surface)
    for what, given, value in zip(("start", "end", "type", "text"), (start, end, kind, surface), found, strict=True):
        if value is None:
            wrong = "is not text" if what in ("type", "text") else "is not a whole number"
            problem = "is missing" if given is None else wrong
            shown = json.dumps(entry, ensure_ascii=False)[:60]
            raise CorpusError(f"{where}: the {what} of the span {shown} {problem}. Correct the span.")
    return _Given(*found)  # type: ignore[arg-type]


def _whole(value: Any) -> int | None:
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        return int(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _LARGEST and value == int(value):
        return int(value)
    return None


def _end_offset(name: str, sentences: Sequence[_Sentence]) -> int:
    """Return 1 if `end` is a span's last character, or 0 if it is the character after that."""
    votes = Counter(
        offset
        for sentence in sentences
        for span in sentence.spans
        for offset in (0, 1)
        if span.surface
        and span.end + offset <= len(sentence.text)
        and sentence.text[span.start : span.end + offset] == span.surface
    )
    if votes[0] and votes[1] and min(votes.values()) > 0.05 * votes.total():
        raise CorpusError(
            f"{name}: some spans ({votes[1]:,}) end at their last character, others ({votes[0]:,}) one character after"
            " it. Use the same convention for all spans."
        )
    return int(votes[1] > votes[0])


def _checked(name: str, sentence: _Sentence, past_end: int) -> list[Span]:
    spans = []
    for span in sentence.spans:
        start, end = span.start, span.end + past_end
        found = sentence.text[start:end] if 0 <= start < end <= len(sentence.text) else None
        problem = ""
        if found is None:
            problem = f"is empty or reaches outside the text (length in characters: {len(sentence.text)})"
        elif span.surface and found != span.surface:
            problem = f"covers {found[:20]!r}, not {span.surface[:20]!r}"
        elif _continues(sentence.text, start) or _continues(sentence.text, end):
            problem = "separates a character from its combining mark or variation selector"
        if problem or not span.kind.strip():
            problem = problem or "has no type"
            raise CorpusError(
                f"{name}: record {sentence.number}: the span ({span.start}, {span.end}, {span.kind[:20]}) {problem}."
                " Correct the span."
            )
        spans.append((start, end, span.kind.strip()))
    return spans


def _continues(text: str, place: int) -> bool:
    """Return whether a character belongs to the one before it: a combining mark, joiner or variation selector."""
    if not 0 < place < len(text):
        return False
    return (
        bool(unicodedata.combining(text[place])) or text[place] in "\u200d\ufe0e\ufe0f" or text[place - 1] == "\u200d"
    )


def _without_overlaps(spans: Sequence[Span]) -> list[Span]:
    kept: list[Span] = []
    for span in sorted(dict.fromkeys(spans), key=lambda span: (span[0] - span[1], span[0], span[2])):
        if all(span[1] <= other[0] or other[1] <= span[0] for other in kept):
            kept.append(span)
    return sorted(kept)


def has_token_lists(text: DecodedText, text_column: str, label_column: str) -> bool:
    """Return whether the first object in a file has tokens and an equally long list of tags."""
    return next((_fields(record, text_column, label_column) for record in iter_objects(text)), None) is not None


def _fields(record: dict[str, Any], text_column: str, label_column: str) -> tuple[str, str] | None:
    """Return the fields with the tokens and the tags, or None if they are missing, as in data with spans."""
    tags = next((name for name in ([label_column] if label_column else _TAG_NAMES) if _is_list(record.get(name))), "")
    names = [text_column] if text_column else _TOKEN_NAMES
    tokens = next((name for name in names if name != tags and isinstance(record.get(name), list | str)), "")
    return (tokens, tags) if tokens and tags and len(record[tokens]) == len(record[tags]) else None


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, str | int) for each in value)


def read_token_lists(text: DecodedText, text_column: str, label_column: str) -> tuple[list[Example], list[str], bool]:
    """Read sentences from JSON objects with tokens and lists of tags; return the same values as `read_conll`."""
    fields: tuple[str, str] | None = None
    sentences = []
    for number, record in enumerate(iter_objects(text), start=1):
        fields = fields or _fields(record, text_column, label_column)
        tokens, tags = (record.get(name) for name in fields or ("", ""))
        sentences.append(_sentence(f"{text.name}: record {number}", tokens, tags))
    return tagged_examples(text.name, [rows for rows in sentences if rows])


def _sentence(where: str, tokens: Any, tags: Any) -> list[TaggedToken]:
    if not isinstance(tokens, list | str) or not isinstance(tags, list) or len(tokens) != len(tags):
        a, b = (len(each) if isinstance(each, list | str) else 0 for each in (tokens, tags))
        raise CorpusError(f"{where} has {counted(a, 'token')} and {counted(b, 'tag')}. Give one tag per token.")
    wrong = next((tag for tag in tags if not isinstance(tag, str) or not tag.strip()), None)
    if wrong is not None:
        raise CorpusError(f"{where} has the tag {wrong!r}, which is not a name. Use names such as B-PER.")
    if not all(isinstance(token, str) and token for token in tokens):
        raise CorpusError(f"{where} has a token that is empty or not a string. Correct the token.")
    return [TaggedToken(token, tag.strip()) for token, tag in zip(tokens, tags, strict=True)]


def is_table_of_lists(text: DecodedText) -> bool:
    """Return whether the first rows after a header each have as many tags as tokens, and most have several."""
    rows = [_items(row) for row in islice(filter(None, cells_of(text, "tsv")), _SAMPLE_ROWS)]
    rows = rows[1:] if rows and _is_header(rows[0]) else rows
    are_alike = all(len(row) == 2 and len(row[0]) == len(row[1]) for row in rows)
    return bool(rows) and are_alike and sum(len(row[0]) > 1 for row in rows) > len(rows) / 2


def _items(row: Cells) -> list[list[str]]:
    return [
        cell.split(_ITEM_SEPARATOR) if _ITEM_SEPARATOR in cell else list(filter(None, cell.split(" "))) for cell in row
    ]


def _is_header(row: Sequence[Sequence[str]]) -> bool:
    return bool(row[-1]) and row[-1][0].lower() in LABEL_NAMES


def read_table_of_lists(text: DecodedText) -> tuple[list[Example], list[str], bool]:
    """Read sentences from a table with a sentence and its tags in each row; return the same values as `read_conll`."""
    sentences = []
    for number, row in enumerate(map(_items, cells_of(text, "tsv")), start=1):
        if any(row) and not (number == 1 and _is_header(row)):
            tokens, tags = row if len(row) == 2 else (row[0], [])
            sentences.append(_sentence(f"{text.name}: row {number}", tokens, tags))
    return tagged_examples(text.name, sentences)
