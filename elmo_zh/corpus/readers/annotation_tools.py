"""Read the output of annotation tools, texts with spans or choices, and leave out rejected and skipped records.

A record with spans is {"text": ..., "entities": [[start, end, type], ...]}, where a span may also be an object with
start, end and label; other usual keys are read too. CLUENER's records are {"text": ..., "label": {type: {surface:
[[start, end], ...]}}}. If the file has the text of the spans, this text decides whether `end` is the last character or
the one after it.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import msgspec

from elmo_zh.config import TextConfig
from elmo_zh.corpus.encodings import DecodedText
from elmo_zh.corpus.readers.columns import TEXT_NAMES, shown_names
from elmo_zh.corpus.readers.examples import NO_EXAMPLES, Example, Span, UnlabelledError, tags_of
from elmo_zh.corpus.readers.rows import iter_rows, plain_text
from elmo_zh.errors import CorpusError
from elmo_zh.language import _
from elmo_zh.run.files import parse_json
from elmo_zh.run.reporter import joined
from elmo_zh.text.normalise import identity_spans
from elmo_zh.text.segmenters import build_segmenter

# A record says in these fields that a person rejected or skipped it: in Prodigy's exports and in Label Studio's.
_ANSWERS, _REJECTED = "answer", ("reject", "ignore")
_SKIPPED = ("was_cancelled", "cancelled", "is_skipped", "skipped")
STATES = (_ANSWERS, *_SKIPPED)
# How Label Studio's choices and spans begin in a cell of its CSV.
_CHOICES, _SPANS = '{"choices"', '[{"'
# A span in brat's standoff format, and one that YEDDA marks inside the text.
_BRAT, _YEDDA = re.compile(r"^T\d+\t\S+ \d+ \d+(;\d+ \d+)*\t", re.MULTILINE), re.compile(r"\[@[^][\n]+#[^][#*\s]+\*\]")

_TEXTS = (*TEXT_NAMES, "originalText", "raw_text", "data")
_LIST_NAMES = ("label", "labels", "entities", "spans", "annotations", "ner", "entity", "实体")
# The keys of a span: its start, its end, its type and its text.
_SPAN_KEYS = (
    ("start", "start_idx", "start_offset", "begin", "start_index", "start_pos", "startOffset"),
    ("end", "end_idx", "end_offset", "end_index", "end_pos", "endOffset"),
    ("label", "type", "tag", "category", "entity_type", "label_type", "labels", "类型"),
    ("text", "entity", "word", "name", "mention", "surface"),
)
_FORMS = "[[start, end, type], ...], [{start, end, label}, ...], {type: {text: [[start, end], ...]}}"
_WHOLE = Annotated[int, msgspec.Meta(ge=-(10**15), le=10**15)]
# Characters that count as two in UTF-16, in which browsers count.
_ASTRAL = re.compile("[\U00010000-\U0010ffff]")
# Spans are doubted if a larger fraction of a sample ends inside words, and the other reading more than halves it.
_MOST_INSIDE, _SAMPLE_SPANS = 0.3, 500


def iter_accepted(text: DecodedText, left_out: Counter[str]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the number and fields of each JSON record; rejected and skipped ones are only counted, by reason."""
    for number, record in iter_rows(text, "jsonl"):
        where = f"{text.name}: " + _("record {number}").format(number=number)
        if isinstance(record.get("data"), dict) and isinstance(record.get("annotations"), list):
            raise CorpusError(
                _("{where} is in Label Studio's full JSON format. Export as JSON-MIN.").format(where=where)
            )
        if "" in record:
            raise CorpusError.unexpected(f"{where}: {str(record[''])[:40]!r}", '{"text": "...", ...}')
        answer = record.get(_ANSWERS)
        skipped = next((name for name in _SKIPPED if record.get(name) is True), "")
        if answer in _REJECTED or skipped:
            left_out[_("left out because of {field}").format(field=skipped or f"{_ANSWERS}: {answer}")] += 1
        else:
            yield number, record


def left_out_notes(left_out: Counter[str]) -> list[str]:
    """Return one note per reason, with the number of records that were left out for it."""
    counts = {reason: f"{count:,}" for reason, count in left_out.items() if count}
    return [_("{name}: {value}").format(name=reason, value=count) for reason, count in counts.items()]


def labels_in(where: str, value: Any, field: str) -> Any:
    """Return a label as given or, for Label Studio's choices, a list of labels; raise CorpusError for spans."""
    if isinstance(value, str) and value.startswith((_CHOICES, _SPANS)):
        try:
            value = parse_json(value)
        except ValueError:
            return value
    if isinstance(value, list) and any(isinstance(item, dict) for item in value):
        raise CorpusError(
            _("{where} has spans in {field}. Use KIND tag; from Label Studio, export as JSON-MIN.").format(
                where=where, field=field
            )
        )
    return value["choices"] if isinstance(value, dict) and isinstance(value.get("choices"), list) else value


def refuse_other_formats(name: str, head: str) -> None:
    """Raise CorpusError if the start of a file contains brat's standoff format or YEDDA's inline markup."""
    brat, yedda = _BRAT.search(head), _YEDDA.search(head)
    if found := brat or yedda:
        shown = " ".join(found[0].split())[:40]
        raise CorpusError(
            _(
                "{name} is in {tool} format ({shown}), which the task commands cannot read. Convert each text to a line"
                " of JSON, {example}, with positions counted in characters."
            ).format(
                name=name,
                tool="brat" if brat else "YEDDA",
                shown=shown,
                example='{"text": "...", "entities": [[start, end, type], ...]}',
            )
        )


class _GivenSpan(NamedTuple):
    """A span as given in the file; its surface is "" if the file does not include it."""

    start: int
    end: int
    kind: str
    surface: str


class _Convention(NamedTuple):
    """Whether `end` is inclusive (`past_end` is 1), and whether positions count UTF-16 code units, not characters."""

    past_end: int = 0
    in_utf16: bool = False

    def places(self, text: str, span: _GivenSpan) -> tuple[int, int]:
        """Return where a span starts and ends in the text, in characters; the end is exclusive."""
        start, end = span.start, span.end + self.past_end
        if self.in_utf16:
            units = text.encode("utf-16-le", "surrogatepass")
            start, end = (len(units[: 2 * max(0, place)].decode("utf-16-le", "ignore")) for place in (start, end))
        return start, end


def read_spans(
    text: DecodedText, records: Sequence[tuple[int, Mapping[str, Any]]], text_column: str, label_column: str
) -> tuple[list[Example], list[str], tuple[str, ...]]:
    """Return examples with a BIOES tag per character, notes on the reading, and the fields of texts and spans."""
    if not records:
        raise CorpusError(_(NO_EXAMPLES).format(name=text.name))
    others = Counter[str]()
    text_names, list_names = [text_column] if text_column else _TEXTS, [label_column] if label_column else _LIST_NAMES
    # Label Studio leaves the field out where a text has no spans.
    usual = next((key for _number, record in records for key in list_names if _is_spans(record.get(key))), "")
    sentences: list[tuple[str, str, list[_GivenSpan]]] = []
    num_without, text_field = 0, ""
    for number, record in records:
        where = f"{text.name}: " + _("record {number}").format(number=number)
        field = next((key for key in text_names if isinstance(record.get(key), str)), None)
        key = next((key for key in list_names if _is_spans(record.get(key))), "")
        is_without = not key and bool(usual) and record.get(usual) is None
        if field is None or not (key or is_without):
            raise _no_spans(where, record, is_unlabelled=field is not None and number == 1)
        num_without, text_field = num_without + is_without, text_field or field
        others.update(other for other in record if other not in (field, key, usual, *STATES))
        sentences.append((where, record[field], list(_given_spans(where, record[key], others)) if key else []))
    convention, notes = _find_convention(
        text.name, [(line, span) for _where, line, spans in sentences for span in spans]
    )
    if num_without:
        reason = _("texts without a spans field, treated as having no spans")
        notes.append(_("{name}: {value}").format(name=reason, value=f"{num_without:,}"))
    if others:
        notes.append(_("fields that are not read: {names}").format(names=shown_names(list(others))))
    examples, left_out = [], Counter[str]()
    for where, line, given_spans in sentences:
        spans = [_placed(where, line, span, convention) for span in given_spans]
        kept = _without_overlaps(spans)
        left_out += Counter(kind for _start, _end, kind in spans) - Counter(kind for _start, _end, kind in kept)
        examples.append(Example((line,), tuple(tags_of(kept, len(line))), identity_spans(len(line))))
    if left_out:
        kinds = joined([f"{kind} {count:,}" for kind, count in left_out.most_common()])
        reason = _("spans left out because they overlap a longer or earlier one")
        notes.append(_("{name}: {value}").format(name=reason, value=kinds))
    return examples, notes, (text_field, usual)


def _no_spans(where: str, record: Mapping[str, Any], *, is_unlabelled: bool) -> CorpusError:
    return (UnlabelledError if is_unlabelled else CorpusError)(
        _(
            "{where}: cannot find the text or the spans in the fields {fields}. Choose them with --text-column and"
            " --label-column, or write records as {example}"
        ).format(
            where=where,
            fields=shown_names(list(record)),
            example='{"text": "...", "entities": [[start, end, type], ...]}',
        )
    )


def _is_spans(value: Any) -> bool:
    return isinstance(value, dict | list)


def _given_spans(where: str, value: Any, others: Counter[str]) -> Iterator[_GivenSpan]:
    if isinstance(value, dict):
        for kind, surfaces in value.items():
            places = surfaces.items() if isinstance(surfaces, dict) else [("", surfaces)]
            for surface, pairs in places:
                for pair in pairs if isinstance(pairs, list) else [pairs]:
                    yield _given_span(where, pair, [*pair, kind, surface] if isinstance(pair, list) else [])
        return
    for entry in value:
        if isinstance(entry, dict):
            used = [next((key for key in keys if entry.get(key) is not None), "") for keys in _SPAN_KEYS]
            others.update(key for key in entry if key not in used and key != "id")
            yield _given_span(where, entry, [entry.get(key) for key in used])
        else:
            yield _given_span(where, entry, [*entry[:3], None] if isinstance(entry, list) else [])


def _given_span(where: str, entry: Any, values: Sequence[Any]) -> _GivenSpan:
    """Return a span, given its start, end, type and surface (or None); raise CorpusError if a value is wrong."""
    start, end, kind, surface = values if len(values) == len(_SPAN_KEYS) else [None] * len(_SPAN_KEYS)
    if isinstance(kind, list):
        kind = kind[0] if len(kind) == 1 else None
    kind = (plain_text(kind) or "").strip() or None
    parsed = _whole(start), _whole(end), kind, "" if surface is None else plain_text(surface)
    if None in parsed:
        raise CorpusError.unexpected(f"{where}: {json.dumps(entry, ensure_ascii=False)[:60]}", _FORMS)
    return _GivenSpan(*parsed)  # type: ignore[arg-type]


def _whole(value: Any) -> int | None:
    try:
        return msgspec.convert(value, _WHOLE, strict=False)
    except msgspec.ValidationError:
        return None


def _find_convention(name: str, spans: Sequence[tuple[str, _GivenSpan]]) -> tuple[_Convention, list[str]]:
    """Return how a file counts positions, with notes if it is unusual or doubtful; raise CorpusError if spans disagree.

    The text of the spans decides. Without it, positions are taken to count characters, and ends to be exclusive; notes
    say if characters such as emoji, or ends inside words, make that doubtful.
    """
    votes = {
        convention: sum(_covered(text, span, convention) == span.surface for text, span in spans if span.surface)
        for convention in (_Convention(past_end, in_utf16) for in_utf16 in (False, True) for past_end in (0, 1))
    }
    best = max(votes, key=lambda convention: votes[convention])
    other = _Convention(1 - best.past_end, best.in_utf16)
    if votes[other] > 0.05 * (votes[best] + votes[other]):
        raise CorpusError(
            _(
                "{name}: end is the last character of some spans ({votes}), but the one after it for others ({votes2})."
                " Use the same convention for all spans."
            ).format(
                name=name,
                votes=f"{votes[best if best.past_end else other]:,}",
                votes2=f"{votes[other if best.past_end else best]:,}",
            )
        )
    if not spans:
        return best, []
    notes = [_("span ends are inclusive")] if best.past_end else []
    if best.in_utf16:
        notes.append(_("positions are counted in UTF-16 code units"))
    if votes[best]:
        return best, notes
    if num_astral := sum(bool(_ASTRAL.search(text)) for text, _span in spans):
        notes.append(
            _(
                "positions are taken to count characters, which may be wrong for {number:,} spans in texts with"
                " characters such as emoji: if they count UTF-16 code units, as browsers do, add the text of each span"
            ).format(number=num_astral)
        )
    sample = spans[:_SAMPLE_SPANS]
    inside, inside_other = (_num_inside_words(sample, convention) for convention in (best, other))
    if inside > _MOST_INSIDE * len(sample) and 2 * inside_other < inside:
        notes.append(
            _(
                "span ends are taken to be exclusive, which may be wrong: {number} of {total} spans end inside words,"
                " but only {other} if ends are inclusive. If they are, add 1 to each end, or add the text of each span"
            ).format(number=inside, total=len(sample), other=inside_other)
        )
    return best, notes


def _covered(text: str, span: _GivenSpan, convention: _Convention) -> str:
    """Return the characters of a span, or "" if it is empty or reaches outside the text."""
    start, end = convention.places(text, span)
    return text[start:end] if 0 <= start < end <= len(text) else ""


def _num_inside_words(spans: Sequence[tuple[str, _GivenSpan]], convention: _Convention) -> int:
    """Return how many spans do not end where a word of the default segmenter ends."""
    segment = build_segmenter(TextConfig())
    ends_of: dict[str, set[int]] = {}
    for text, _span in spans:
        if text not in ends_of:
            place, ends_of[text] = 0, {len(text)}
            for word in segment(text):
                place = text.index(word, place) + len(word)
                ends_of[text].add(place)
    return sum(convention.places(text, span)[1] not in ends_of[text] for text, span in spans)


def _placed(where: str, text: str, span: _GivenSpan, convention: _Convention) -> Span:
    covered = _covered(text, span, convention)
    shown = f"{where}: {json.dumps(span[:3], ensure_ascii=False)[:60]}"
    if not covered:
        allowed = "0 <= start <= end <" if convention.past_end else "0 <= start < end <="
        raise CorpusError.unexpected(shown, f"{allowed} {len(text)}")
    if span.surface and covered != span.surface:
        raise CorpusError.unexpected(f"{shown} = {covered[:20]!r}", repr(span.surface[:20]))
    return (*convention.places(text, span), span.kind)


def _without_overlaps(spans: Sequence[Span]) -> list[Span]:
    """Return spans that do not overlap, sorted; longer ones are preferred, then earlier ones."""
    kept: list[Span] = []
    for span in sorted(dict.fromkeys(spans), key=lambda span: (span[0] - span[1], span[0])):
        if all(span[1] <= other[0] or other[1] <= span[0] for other in kept):
            kept.append(span)
    return sorted(kept)
