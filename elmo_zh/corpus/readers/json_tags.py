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

from elmo_zh.config import TextConfig
from elmo_zh.corpus.decoding import DecodedText
from elmo_zh.corpus.readers.columns import LABEL_NAMES, TEXT_NAMES
from elmo_zh.corpus.readers.conll import TaggedToken, tagged_examples
from elmo_zh.corpus.readers.examples import Example, Span, tags_of
from elmo_zh.corpus.readers.labelled_records import STATES, UnlabelledError, iter_accepted, shown_names
from elmo_zh.corpus.readers.rows import Cells, cells_of, iter_objects, plain_text
from elmo_zh.errors import CorpusError
from elmo_zh.language import _
from elmo_zh.run.reporter import counted
from elmo_zh.text.alignment import identity_spans
from elmo_zh.text.segmenters.registry import build_segmenter

_TEXTS = (*TEXT_NAMES, "originalText", "raw_text", "data")
_LIST_NAMES = ("label", "labels", "entities", "spans", "annotations", "ner", "entity", "实体")
_TYPE_NAMES = ("label", "type", "tag", "category", "entity_type", "label_type", "labels", "类型")
_START_NAMES = ("start", "start_idx", "start_offset", "begin", "start_index", "start_pos", "startOffset")
_END_NAMES = ("end", "end_idx", "end_offset", "end_index", "end_pos", "endOffset")
_SURFACE_NAMES = ("text", "entity", "word", "name", "mention", "surface")
_NAMES = (_START_NAMES, _END_NAMES, _TYPE_NAMES, _SURFACE_NAMES)
_TOKEN_NAMES = ("tokens", "words", "chars", "characters", *TEXT_NAMES)
_TAG_NAMES = ("ner_tags", "tags", "pos_tags", "upos", "ner", *LABEL_NAMES)
_ITEM_SEPARATOR = "\x02"
_SAMPLE_ROWS = 50
_DIGITS = re.compile(r"\s*-?\d{1,15}\s*")
_LARGEST = 10**15
# Characters that count as two in UTF-16, in which browsers count.
_ASTRAL = re.compile("[\U00010000-\U0010ffff]")
# Spans are doubted if a larger fraction of a sample ends inside words, and less than half of it in the other reading.
_MOST_INSIDE, _SAMPLE_SPANS = 0.3, 500


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

    def places(self, span: _Given, reading: "_Reading") -> tuple[int, int]:
        """Return the first character of a span and the one after its last."""
        start, end = span.start, span.end + reading.past_end
        if not reading.in_utf16:
            return start, end
        units = self.text.encode("utf-16-le", "surrogatepass")
        start, end = (len(units[: 2 * max(0, place)].decode("utf-16-le", "ignore")) for place in (start, end))
        return start, end


@dataclass(frozen=True)
class _Reading:
    """How positions are read: whether `end` is a span's last character, and whether they count UTF-16 units."""

    past_end: int = 0
    in_utf16: bool = False


def read_spans(text: DecodedText, text_column: str, label_column: str) -> tuple[list[Example], list[str]]:
    """Return the texts in JSON lines with a BIOES tag for each character, and notes on how the file was read."""
    left_out, others = Counter[str](), Counter[str]()
    sentences = list(_sentences(text, text_column, label_column, left_out, others))
    if not sentences:
        raise CorpusError(_("{name} has no records. Give one JSON object per line.").format(name=text.name))
    reading, notes = _find_reading(text.name, sentences)
    notes += [f"{what}: {count:,}" for what, count in left_out.items()]
    if others:
        notes.append(_("fields that are not read: {names}").format(names=shown_names(list(others))))
    examples, num_overlaps = [], 0
    for sentence in sentences:
        spans = _checked(text.name, sentence, reading)
        kept = _without_overlaps(spans)
        num_overlaps += len(spans) - len(kept)
        units = identity_spans(len(sentence.text))
        examples.append(Example((sentence.text,), tuple(tags_of(kept, len(units))), units))
    if num_overlaps:
        message = (
            "{number} span left out for overlapping a longer span",
            "{number} spans left out for overlapping a longer span",
        )
        notes.append(counted(num_overlaps, *message))
    return examples, notes


def _sentences(
    text: DecodedText, text_column: str, label_column: str, left_out: Counter[str], others: Counter[str]
) -> Iterator[_Sentence]:
    text_names, list_names = [text_column] if text_column else _TEXTS, [label_column] if label_column else _LIST_NAMES
    records = [*iter_accepted(text, left_out)]
    # Label Studio leaves the field out where a text has no spans.
    usual = next((name for _number, record in records for name in list_names if _is_spans(record.get(name))), None)
    for number, record in records:
        where = f"{text.name}: " + _("record {number}").format(number=number)
        field = next((name for name in text_names if isinstance(record.get(name), str)), None)
        spans = next((name for name in list_names if _is_spans(record.get(name))), None)
        is_without = spans is None and usual is not None and record.get(usual) is None
        if field is None or (spans is None and not is_without):
            option = "--text-column" if field is None else "--label-column"
            raise (UnlabelledError if field is not None and number == 1 else CorpusError)(
                _(
                    "{where}: cannot find the text or the spans in the fields {fields}. Choose a field: {option} NAME,"
                    " or write records as {example}"
                ).format(
                    where=where,
                    fields=shown_names(list(record)),
                    option=option,
                    example='{"text": "...", "entities": [[start, end, type], ...]}',
                )
            )
        if is_without:
            left_out[_("texts without a field of spans, taken to have none")] += 1
        others.update(name for name in record if name not in (field, spans, usual, *STATES))
        yield _Sentence(number, record[field], tuple(_given(record[spans], where, others)) if spans else ())


def _is_spans(value: Any) -> bool:
    return isinstance(value, dict | list)


def _given(value: Any, where: str, others: Counter[str]) -> Iterator[_Given]:
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
                used = [next((name for name in names if entry.get(name) is not None), "") for names in _NAMES]
                others.update(name for name in entry if name not in used and name != "id")
                yield _span([entry.get(name) for name in used], entry, where)
            else:
                start, end, kind, *_rest = _list(entry)
                yield _span((start, end, kind, None), entry, where)
    except (TypeError, ValueError, AttributeError):
        raise CorpusError(
            _("{where}: the spans are {value}; expected {forms}. Correct them.").format(
                where=where,
                value=repr(str(value)[:60]),
                forms="[[start, end, type], ...], [{start, end, label}, ...], {type: {text: [[start, end], ...]}}",
            )
        ) from None


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError
    return value


def _span(values: Sequence[Any], entry: Any, where: str) -> _Given:
    """Return the span for a start, an end, a type and a surface; raise CorpusError if a value is wrong or missing."""
    start, end, kind, surface = values
    if isinstance(kind, list) and len(kind) == 1:
        [kind] = kind
    parsed = _whole(start), _whole(end), plain_text(kind), "" if surface is None else plain_text(surface)
    for names, value in zip(_NAMES, parsed, strict=True):
        if value is None:
            raise CorpusError(
                _(
                    "{where}: the {what} of the span {span} is missing or wrong. Correct the span, or name the keys as"
                    " usual, such as {names}"
                ).format(
                    where=where,
                    what=names[0] if names != _TYPE_NAMES else "type",
                    span=json.dumps(entry, ensure_ascii=False)[:60],
                    names=", ".join(names),
                )
            )
    return _Given(*parsed)  # type: ignore[arg-type]


def _whole(value: Any) -> int | None:
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        return int(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _LARGEST and value == int(value):
        return int(value)
    return None


def _find_reading(name: str, sentences: Sequence[_Sentence]) -> tuple[_Reading, list[str]]:
    """Return how positions are read, and notes that say so and what is doubtful about it.

    The text of the spans decides. Without it, `end` is taken for the character after a span; that is doubted if spans
    end inside words more often than in the other reading.
    """
    readings = [_Reading(past_end, in_utf16) for in_utf16 in (False, True) for past_end in (0, 1)]
    spans = [(sentence, span) for sentence in sentences for span in sentence.spans]
    votes = Counter(
        {
            reading: sum(_covers(sentence, span, reading) for sentence, span in spans if span.surface)
            for reading in readings
        }
    )
    best = max(readings, key=lambda reading: votes[reading])
    other = _Reading(1 - best.past_end, best.in_utf16)
    if votes[other] > 0.05 * (votes[best] + votes[other]):
        raise CorpusError(
            _(
                "{name}: some spans ({votes}) end at their last character, others ({votes2}) one character after it."
                " Use the same convention for all spans."
            ).format(
                name=name,
                votes=f"{votes[_Reading(1, best.in_utf16)]:,}",
                votes2=f"{votes[_Reading(0, best.in_utf16)]:,}",
            )
        )
    if not spans:
        return best, []
    notes = [_("span ends are inclusive") if best.past_end else _("span ends are exclusive")]
    if best.in_utf16:
        notes.append(_("positions count UTF-16 units"))
    if votes[best]:
        return best, notes
    num_astral = sum(bool(_ASTRAL.search(sentence.text)) for sentence in sentences if sentence.spans)
    if num_astral:
        notes.append(
            _(
                "positions are taken to count characters, which is doubtful in {number} texts with characters such as"
                " emoji: if a browser counted, add the text of each span, and they are read so"
            ).format(number=f"{num_astral:,}")
        )
    inside, inside_other = (_num_inside_words(spans[:_SAMPLE_SPANS], reading) for reading in (best, other))
    if inside > _MOST_INSIDE * min(len(spans), _SAMPLE_SPANS) and 2 * inside_other < inside:
        notes.append(
            _(
                "this is doubtful: {number} of {total} spans end inside words, but only {other} if each end is the"
                " last character: then add 1 to it, or add the text of each span"
            ).format(number=inside, total=min(len(spans), _SAMPLE_SPANS), other=inside_other)
        )
    return best, notes


def _covers(sentence: _Sentence, span: _Given, reading: _Reading) -> bool:
    start, end = sentence.places(span, reading)
    return 0 <= start < end <= len(sentence.text) and sentence.text[start:end] == span.surface


def _num_inside_words(spans: Sequence[tuple[_Sentence, _Given]], reading: _Reading) -> int:
    """Return how many spans end inside a word of the default segmenter."""
    segment = build_segmenter(TextConfig())
    ends_of: dict[str, set[int]] = {}
    for sentence, _span in spans:
        if sentence.text not in ends_of:
            ends, place = {len(sentence.text)}, 0
            for word in segment(sentence.text):
                place = sentence.text.index(word, place) + len(word)
                ends.add(place)
            ends_of[sentence.text] = ends
    return sum(sentence.places(span, reading)[1] not in ends_of[sentence.text] for sentence, span in spans)


def _checked(name: str, sentence: _Sentence, reading: _Reading) -> list[Span]:
    spans = []
    for span in sentence.spans:
        start, end = sentence.places(span, reading)
        covered = sentence.text[start:end] if 0 <= start < end <= len(sentence.text) else None
        problem = ""
        if covered is None:
            problem = _("is empty or reaches outside the text (length in characters: {text})").format(
                text=len(sentence.text)
            )
        elif span.surface and covered != span.surface:
            problem = _("covers {found}, not {surface}").format(
                found=repr(covered[:20]), surface=repr(span.surface[:20])
            )
        elif _continues(sentence.text, start) or _continues(sentence.text, end):
            problem = _("separates a character from its combining mark or variation selector")
        elif not span.kind.strip():
            problem = _("has no type")
        if problem:
            raise CorpusError(
                _("{name}: record {number}: the span ({start}, {end}, {kind}) {problem}. Correct the span.").format(
                    name=name,
                    number=sentence.number,
                    start=span.start,
                    end=span.end,
                    kind=span.kind[:20],
                    problem=problem,
                )
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
    sentences, left_out = [], Counter[str]()
    for number, record in iter_accepted(text, left_out):
        fields = fields or _fields(record, text_column, label_column)
        tokens, tags = (record.get(name) for name in fields or ("", ""))
        sentences.append(_sentence(f"{text.name}: " + _("record {number}").format(number=number), tokens, tags))
    examples, notes, by_words = tagged_examples(text.name, [rows for rows in sentences if rows])
    return examples, [*notes, *(f"{what}: {count:,}" for what, count in left_out.items())], by_words


def _sentence(where: str, tokens: Any, tags: Any) -> list[TaggedToken]:
    if not isinstance(tokens, list | str) or not isinstance(tags, list) or len(tokens) != len(tags):
        a, b = (len(each) if isinstance(each, list | str) else 0 for each in (tokens, tags))
        raise CorpusError(
            _("{where} has {a} tokens and {b} tags. Give one tag per token.").format(where=where, a=a, b=b)
        )
    wrong = next((tag for tag in tags if not isinstance(tag, str) or not tag.strip()), None)
    if wrong is not None:
        raise CorpusError(
            _("{where} has the tag {wrong}, which is not a name. Use names such as B-PER.").format(
                where=where, wrong=repr(wrong)
            )
        )
    if not all(isinstance(token, str) and token for token in tokens):
        raise CorpusError(
            _("{where} has a token that is empty or not a string. Correct the token.").format(where=where)
        )
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
            sentences.append(_sentence(f"{text.name}: " + _("row {number}").format(number=number), tokens, tags))
    return tagged_examples(text.name, sentences)
