r"""Read tagging data: tokens with tags, in lines or in lists, and texts with character spans.

Lines are CoNLL, with one token and its tag, or CoNLL-U. Lists are {"tokens": ["李", "白"], "ner_tags": ["B-PER",
"I-PER"]}, where the tokens may also be a text with a tag for each character, or tables of two columns, with items
separated by spaces or by \x02. Spans are {"text": ..., "entities": [[start, end, type], ...]}, or objects with start,
end and label, or CLUENER's {"text": ..., "label": {type: {surface: [[start, end], ...]}}}. The text of a span, if
given, shows whether `end` is the last character or the one after it.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice, pairwise
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np

from elmo_zh.config import TextConfig
from elmo_zh.config.task_settings import Reading
from elmo_zh.corpus.encodings import DecodedText
from elmo_zh.corpus.readers.annotation_tools import STATES, iter_accepted, left_out_notes
from elmo_zh.corpus.readers.columns import LABEL_NAMES, TEXT_NAMES, shown_names
from elmo_zh.corpus.readers.examples import (
    NO_EXAMPLES,
    OUTSIDE,
    Example,
    Labelled,
    Span,
    UnlabelledError,
    count_labels,
    describe_tags,
    detect_scheme,
    in_bioes,
    marks_span,
    tags_of,
)
from elmo_zh.corpus.readers.rows import cells_of, plain_text
from elmo_zh.errors import CorpusError
from elmo_zh.language import _
from elmo_zh.run.reporter import counted
from elmo_zh.text.normalise import identity_spans
from elmo_zh.text.script import HAN, count_han
from elmo_zh.text.segmenters import build_segmenter

# The number of columns in CoNLL-U; and, counted from 1, those of the word and of its universal part of speech.
_CONLLU_COLUMNS, _FORM, _UPOS = 10, 2, 4
_NUMBERED = re.compile(r"(.)(\d+)", re.DOTALL)
# The units of a file are characters if at least this fraction of the tokens with Han characters has one character.
_CHARACTER_FRACTION = 0.98
# A file with a single sentence longer than this lacks blank lines between sentences.
_LONGEST_SENTENCE = 1000
# So many Han characters are a sentence, not a word; at most this fraction of the tokens may be that long.
_LONG_TOKEN, _MOST_LONG = 20, 0.01
# At least this fraction of the lines must have the most frequent number of columns.
_ALIKE_FRACTION = 0.95
# A word and its tag as in running text: 我们/r, 我们_PN.
_WORD_AND_TAG = re.compile(r"\S+[/_][A-Za-z]\S*")
_ITEM_SEPARATOR, _SAMPLE_ROWS = "\x02", 50

_TEXTS = (*TEXT_NAMES, "originalText", "raw_text", "data")
_LIST_NAMES = ("label", "labels", "entities", "spans", "annotations", "ner", "entity", "实体")
_TOKEN_NAMES = ("tokens", "words", "chars", "characters", *TEXT_NAMES)
_TAG_NAMES = ("ner_tags", "tags", "pos_tags", "upos", "ner", *LABEL_NAMES)
# The keys of a span: its start, its end, its type and its text.
_SPAN_KEYS = (
    ("start", "start_idx", "start_offset", "begin", "start_index", "start_pos", "startOffset"),
    ("end", "end_idx", "end_offset", "end_index", "end_pos", "endOffset"),
    ("label", "type", "tag", "category", "entity_type", "label_type", "labels", "类型"),
    ("text", "entity", "word", "name", "mention", "surface"),
)
_WHOLE = Annotated[int, msgspec.Meta(ge=-(10**15), le=10**15)]
# Characters that count as two in UTF-16, in which browsers count.
_ASTRAL = re.compile("[\U00010000-\U0010ffff]")
# Spans are doubted if a larger fraction of a sample ends inside words, and the other reading more than halves it.
_MOST_INSIDE, _SAMPLE_SPANS = 0.3, 500


# The tokens of a sentence with their tags.
Sentence = list[tuple[str, str]]


def read_tagged(text: DecodedText, kind: str, reading: Reading) -> Labelled:
    """Return the tagged sentences of a file, with spans marked by BIOES tags."""
    if kind not in ("jsonl", "conll", "tsv"):
        has_spans = '""start""' in text.head(2**16)
        problem = _(
            "{name}: tags are not read from this format ({kind}). Export from Label Studio as JSON-MIN, or put a token,"
            " a tab and its tag on each line, with --input-format conll."
        ).format(name=text.name, kind=_("a CSV file of Label Studio") if has_spans else kind)
        advice = "" if has_spans else " " + _("For one label per text, use task fit classify.")
        raise CorpusError(problem + advice)
    left_out, scheme, by_words = Counter[str](), "BIOES", False
    records = list(iter_accepted(text, left_out)) if kind == "jsonl" else _records_of_table(text)
    names = records[0][1] if records else {*filter(str.isdecimal, reading.task_columns)}
    columns = reading.columns_in(names)
    fields = _list_fields(records[0][1], *columns) if records else ()
    if kind == "jsonl" and not fields:
        examples, notes, columns = _read_spans(text, records, *columns)
    else:
        if fields:
            where = f"{text.name}: " + _("record {number}")
            sentences = [_listed(where.format(number=n), *map(record.get, fields)) for n, record in records]
        else:
            sentences, by_words = _sentences_of_lines(text, *columns)
        examples, notes, by_words = _examples_of(text.name, sentences, by_words=by_words)
        scheme = detect_scheme(chain.from_iterable(example.labels for example in examples), text.name)
        if scheme:
            examples, num_wrong = in_bioes(examples)
            if num_wrong:
                notes.append(_("tags that continue no span and so start one, as in conlleval") + f": {num_wrong:,}")
    form = _("{kind} format, {scheme}").format(kind=kind, scheme=describe_tags(scheme, by_words=by_words))
    form += f" ({_counted_labels(examples, marks_spans=bool(scheme))})"
    return Labelled(
        name=text.name,
        examples=examples,
        scheme=scheme,
        by_words=by_words,
        columns=columns if any(columns) else (),
        notes=(form, *notes, *left_out_notes(left_out)),
    )


def _counted_labels(examples: Sequence[Example], *, marks_spans: bool) -> str:
    """Return how many spans there are, and how many distinct labels."""
    labels = count_labels((example.labels for example in examples), marks_spans=marks_spans)
    distinct = counted(len(labels), "{number} label", "{number} labels")
    return f"{counted(labels.total(), '{number} span', '{number} spans')}, {distinct}" if marks_spans else distinct


def _wrong(where: str, problem: str, line: str) -> CorpusError:
    return CorpusError(
        _(
            "{where} {problem} ({line}). Put one token and its tag on each line, and a blank line after each sentence."
            " To choose the columns: --text-column 1 --label-column 2"
        ).format(where=where, problem=problem, line=repr(line[:40]))
    )


def _examples_of(name: str, sentences: Sequence[Sentence], *, by_words: bool) -> tuple[list[Example], list[str], bool]:
    """Convert tagged sentences to examples; return them with notes, and whether their units are words."""
    sentences = [sentence for sentence in sentences if sentence]
    if not sentences:
        raise CorpusError(_(NO_EXAMPLES).format(name=name))
    tokens = [token for sentence in sentences for token, _tag in sentence]
    long = [token for token in tokens if len(token) >= _LONG_TOKEN and count_han([token]) >= _LONG_TOKEN]
    if len(long) > _MOST_LONG * len(tokens):
        raise _wrong(name, _("has tokens that are no words"), long[0])
    notes: list[str] = []
    if _are_numbered(sentences):
        sentences = [[(_without_place(token), tag) for token, tag in sentence] for sentence in sentences]
        notes.append(_("tokens are characters with their position in a word; the positions were dropped"))
    lengths = Counter(len(token) == 1 for sentence in sentences for token, _tag in sentence if HAN.search(token))
    by_words = by_words or lengths[True] < _CHARACTER_FRACTION * lengths.total()
    return [_example(sentence, by_words=by_words) for sentence in sentences], notes, by_words


def _sentences_of_lines(text: DecodedText, text_column: str, label_column: str) -> tuple[list[Sentence], bool]:
    """Return the sentences of CoNLL, and whether it is CoNLL-U, whose tokens are words.

    Raises:
        CorpusError: If lines are probably sentences, not tokens, or if no blank lines separate the sentences.
    """
    sentences: list[Sentence] = [[]]
    num_columns, is_conllu, has_tabs = Counter[int](), False, False
    for number, line in enumerate(text.whole_lines(), start=1):
        if not line.strip("\r\n\t "):
            sentences.append([])
        elif not line.startswith("-DOCSTART-") and not (_is_comment(line) and (has_tabs or not sentences[-1])):
            cells, where = _cells(line), _("{name}: line {number}").format(name=text.name, number=number)
            if len(cells) < 2 and not num_columns:
                raise UnlabelledError(*_wrong(where, _few_columns(cells), line).messages)
            num_columns[len(cells)] += 1
            is_conllu, has_tabs = len(cells) == _CONLLU_COLUMNS and cells[0][:1].isdecimal(), "\t" in line
            # In CoNLL-U, multiword tokens and empty nodes are not in the text.
            if not is_conllu or cells[0].isdecimal():
                sentences[-1].append(_token(where, line, cells, text_column, label_column, is_conllu=is_conllu))
    problem = ""
    if sum(map(bool, sentences)) == 1 and num_columns.total() > _LONGEST_SENTENCE:
        problem = _("has all {number:,} tokens in one sentence").format(number=num_columns.total())
    elif not label_column and num_columns and max(num_columns.values()) < _ALIKE_FRACTION * num_columns.total():
        problem = _("has lines of {least} to {most} columns").format(least=min(num_columns), most=max(num_columns))
    if problem:
        raise _wrong(text.name, problem, " ".join(token for sentence in sentences for token, _tag in sentence[:10]))
    return sentences, is_conllu


def _is_comment(line: str) -> bool:
    """Return whether a line outside a sentence is a comment, rather than the token # with its tag."""
    cells = _cells(line)
    if not line.startswith("#") or "\t" in line or len(cells) < 2:
        return False
    return "=" in cells or not (cells[-1] == OUTSIDE or marks_span(cells[-1]))


def _cells(line: str) -> list[str]:
    if "\t" in line:
        return line.split("\t")
    cells = list(filter(None, line.split(" ")))
    return [" ", *cells] if line[0] == " " else cells


def _few_columns(cells: Sequence[str]) -> str:
    return counted(len(cells), "has {number} column", "has {number} columns")


def _token(
    where: str, line: str, cells: Sequence[str], text_column: str, label_column: str, *, is_conllu: bool
) -> tuple[str, str]:
    """Return the token of a line, and its tag.

    Columns are separated by tabs, otherwise by spaces, and numbered from 1. By default the token is in the first column
    and the tag in the last; in CoNLL-U, in the second and the fourth.
    """
    if len(cells) > 2 and "\t" not in line and all(map(_WORD_AND_TAG.fullmatch, cells)):
        raise _wrong(where, _("has several words with their tags"), line)
    places = _place(text_column, _FORM if is_conllu else 1), _place(label_column, _UPOS if is_conllu else len(cells))
    if len(cells) < 2 or max(places) > len(cells):
        raise _wrong(where, _few_columns(cells), line)
    token, tag = (cells[place - 1] for place in places)
    if not token or not tag.strip():
        raise _wrong(where, _("has no tag") if token else _("has no token"), line)
    return token, tag.strip()


def _place(column: str, default: int) -> int:
    if column and not (column.isdecimal() and int(column)):
        raise CorpusError.unexpected(repr(column[:40]), f"{_('a whole number')} (x>=1)")
    return int(column) if column else default


def _are_numbered(sentences: Sequence[Sentence]) -> bool:
    """Return whether nearly all tokens end in their position in a word: 0, or one more than the previous token's."""
    fitting = Counter[bool]()
    for sentence in sentences:
        matches = [_NUMBERED.fullmatch(token) for token, _tag in sentence]
        places = [int(match[2]) if match else -1 for match in matches]
        fitting.update(after in (0, before + 1) for before, after in pairwise([-1, *places]))
    return fitting[True] >= _CHARACTER_FRACTION * fitting.total()


def _without_place(token: str) -> str:
    match = _NUMBERED.fullmatch(token)
    return match[1] if match else token.rstrip("0123456789") or token


def _example(sentence: Sentence, *, by_words: bool) -> Example:
    text, units = "", np.zeros((len(sentence), 2), np.int32)
    for place, (token, _tag) in enumerate(sentence):
        text += " " if by_words and needs_space(text, token) else ""
        units[place] = (len(text), len(text) + len(token))
        text += token
    tokens, tags = zip(*sentence, strict=True)
    return Example((text,), tags, units, tokens if by_words else None)


def needs_space(before: str, after: str) -> bool:
    """Return whether a word needs a space after other text, because both use a script that has spaces."""
    return all(sign.isascii() and sign.isalnum() for sign in (before[-1:], after[:1]))


def _list_fields(record: Mapping[str, Any], text_column: str, label_column: str) -> tuple[str, ...]:
    """Return the fields with tokens and an equally long list of tags; () if they are missing, as in data with spans."""
    tags = next((name for name in ([label_column] if label_column else _TAG_NAMES) if _is_list(record.get(name))), "")
    names = [text_column] if text_column else _TOKEN_NAMES
    tokens = next((name for name in names if name != tags and isinstance(record.get(name), list | str)), "")
    return (tokens, tags) if tokens and tags and len(record[tokens]) == len(record[tags]) else ()


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, str | int) for item in value)


def _listed(where: str, tokens: Any, tags: Any) -> Sentence:
    num_tokens, num_tags = (len(items) if isinstance(items, list | str) else 0 for items in (tokens, tags))
    if num_tokens != num_tags or isinstance(tags, str):
        raise CorpusError(
            _("{where} has {a} tokens and {b} tags. Give one tag per token.").format(
                where=where, a=num_tokens, b=num_tags
            )
        )
    wrong = [item for item in (*(tokens or ()), *(tags or ())) if not isinstance(item, str) or not item]
    if wrong or any(not tag.strip() for tag in tags or ()):
        raise CorpusError.unexpected(f"{where}: {wrong[0] if wrong else ''!r}", "B-PER")
    return [(token, tag.strip()) for token, tag in zip(tokens or (), tags or (), strict=True)]


def _records_of_table(text: DecodedText) -> list[tuple[int, dict[str, Any]]]:
    """Return the rows of a table with a sentence and its tags in each row as records; [] for any other file."""
    rows = _rows_of_lists(text)
    sample = list(islice(rows, _SAMPLE_ROWS))
    are_alike = all(len(row) == 2 and len(row[0]) == len(row[1]) for _number, row in sample)
    if not are_alike or sum(len(row[0]) > 1 for _number, row in sample) <= len(sample) / 2:
        return []
    return [
        (number, {"tokens": row[0], "tags": row[1] if len(row) == 2 else []}) for number, row in chain(sample, rows)
    ]


def _rows_of_lists(text: DecodedText) -> Iterator[tuple[int, list[list[str]]]]:
    """Yield the number of each row below a header, and its cells divided into items."""
    for number, cells in enumerate(cells_of(text, "tsv"), start=1):
        if any(map(str.strip, cells)) and not (number == 1 and cells[-1].strip().lower() in LABEL_NAMES):
            signs = (_ITEM_SEPARATOR if _ITEM_SEPARATOR in cell else " " for cell in cells)
            yield number, [list(filter(None, cell.split(sign))) for cell, sign in zip(cells, signs, strict=True)]


class _GivenSpan(NamedTuple):
    """A span as given in the file; its surface is "" if the file does not include it."""

    start: int
    end: int
    kind: str
    surface: str


class _Convention(NamedTuple):
    """A way to write spans: `end` is the last character or the one after it, in characters or in UTF-16 units."""

    past_end: int = 0
    in_utf16: bool = False

    def places(self, text: str, span: _GivenSpan) -> tuple[int, int]:
        """Return the first character of a span and the one after its last."""
        start, end = span.start, span.end + self.past_end
        if self.in_utf16:
            units = text.encode("utf-16-le", "surrogatepass")
            start, end = (len(units[: 2 * max(0, place)].decode("utf-16-le", "ignore")) for place in (start, end))
        return start, end


def _read_spans(
    text: DecodedText, records: Sequence[tuple[int, Mapping[str, Any]]], text_column: str, label_column: str
) -> tuple[list[Example], list[str], tuple[str, ...]]:
    """Return the texts of records with a BIOES tag for each character, notes on how they were read, and the fields."""
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
        notes.append(_("texts without a spans field, treated as having no spans") + f": {num_without:,}")
    if others:
        notes.append(_("fields that are not read: {names}").format(names=shown_names(list(others))))
    examples, left_out = [], Counter[str]()
    for where, line, given_spans in sentences:
        spans = [_placed(where, line, span, convention) for span in given_spans]
        kept = _without_overlaps(spans)
        left_out += Counter(kind for _start, _end, kind in spans) - Counter(kind for _start, _end, kind in kept)
        examples.append(Example((line,), tuple(tags_of(kept, len(line))), identity_spans(len(line))))
    if left_out:
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in left_out.most_common())
        notes.append(_("spans left out for overlapping one that is longer or comes first") + f": {kinds}")
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
    """Return the span for a start, an end, a type and a surface; raise CorpusError if a value is wrong or missing."""
    start, end, kind, surface = values if len(values) == len(_SPAN_KEYS) else [None] * len(_SPAN_KEYS)
    if isinstance(kind, list):
        if len(kind) > 1:
            raise _wrong_span(where, entry, _("has {number} labels").format(number=len(kind)))
        kind = next(iter(kind), None)
    kind = (plain_text(kind) or "").strip() or None
    parsed = _whole(start), _whole(end), kind, "" if surface is None else plain_text(surface)
    for keys, value in zip(_SPAN_KEYS, parsed, strict=True):
        if value is None:
            raise _wrong_span(where, entry, _("has no {what}").format(what=", ".join(keys)))
    return _GivenSpan(*parsed)  # type: ignore[arg-type]


def _wrong_span(where: str, span: Any, problem: str) -> CorpusError:
    return CorpusError(
        _("{where}: the span {span} {problem}. Correct it; spans are written as {forms}").format(
            where=where,
            span=json.dumps(span, ensure_ascii=False)[:60],
            problem=problem,
            forms="[[start, end, type], ...], [{start, end, label}, ...], {type: {text: [[start, end], ...]}}",
        )
    )


def _whole(value: Any) -> int | None:
    try:
        return msgspec.convert(value, _WHOLE, strict=False)
    except msgspec.ValidationError:
        return None


def _find_convention(name: str, spans: Sequence[tuple[str, _GivenSpan]]) -> tuple[_Convention, list[str]]:
    """Return how positions are read, and notes that say so and what is doubtful about it.

    The text of the spans decides. Without it, `end` is taken for the character after a span; that is doubted if spans
    end inside words more often than in the other reading.
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
                "{name}: some spans ({votes}) end at their last character, others ({votes2}) one character after it."
                " Use the same convention for all spans."
            ).format(
                name=name,
                votes=f"{votes[best if best.past_end else other]:,}",
                votes2=f"{votes[other if best.past_end else best]:,}",
            )
        )
    if not spans:
        return best, []
    notes = [_("span ends are inclusive") if best.past_end else _("span ends are exclusive")]
    if best.in_utf16:
        notes.append(_("positions count UTF-16 units"))
    if votes[best]:
        return best, notes
    if num_astral := sum(bool(_ASTRAL.search(text)) for text, _span in spans):
        notes.append(
            _(
                "positions are assumed to count characters, which may be wrong for {number} spans in texts with emoji:"
                " if they count UTF-16 units, as browsers do, add the text of each span, which shows it"
            ).format(number=f"{num_astral:,}")
        )
    sample = spans[:_SAMPLE_SPANS]
    inside, inside_other = (_num_inside_words(sample, convention) for convention in (best, other))
    if inside > _MOST_INSIDE * len(sample) and 2 * inside_other < inside:
        notes.append(
            _(
                "this is doubtful: {number} of {total} spans end inside words, but only {other} if each end is the"
                " last character: then add 1 to it, or add the text of each span"
            ).format(number=inside, total=len(sample), other=inside_other)
        )
    return best, notes


def _covered(text: str, span: _GivenSpan, convention: _Convention) -> str:
    """Return the characters of a span, "" if it is empty or reaches outside the text."""
    start, end = convention.places(text, span)
    return text[start:end] if 0 <= start < end <= len(text) else ""


def _num_inside_words(spans: Sequence[tuple[str, _GivenSpan]], convention: _Convention) -> int:
    """Return how many spans end inside a word of the default segmenter."""
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
    if not covered:
        problem = _("is empty or reaches outside the text (length in characters: {text})").format(text=len(text))
        raise _wrong_span(where, span[:3], problem)
    if span.surface and covered != span.surface:
        problem = _("covers {found}, not {surface}").format(found=repr(covered[:20]), surface=repr(span.surface[:20]))
        raise _wrong_span(where, span[:3], problem)
    return (*convention.places(text, span), span.kind)


def _without_overlaps(spans: Sequence[Span]) -> list[Span]:
    """Return the longest spans that do not overlap; of equally long ones, the first in the text, then in the file."""
    kept: list[Span] = []
    for span in sorted(dict.fromkeys(spans), key=lambda span: (span[0] - span[1], span[0])):
        if all(span[1] <= other[0] or other[1] <= span[0] for other in kept):
            kept.append(span)
    return sorted(kept)
