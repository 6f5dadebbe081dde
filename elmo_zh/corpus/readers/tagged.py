"""Read tagging data: tokens with tags, in lines or in lists, and (with `annotation_tools`) texts with spans.

Lines are CoNLL (a token and its tag, perhaps with other columns) or CoNLL-U. Lists are in records such as {"tokens":
["李", "白"], "ner_tags": ["B-PER", "I-PER"]}, where the tokens may also be a text with a tag for each character.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain, pairwise
from typing import Any

import numpy as np

from elmo_zh.config.task_settings import Reading
from elmo_zh.corpus.content import shown
from elmo_zh.corpus.encodings import DecodedText
from elmo_zh.corpus.readers.annotation_tools import iter_accepted, left_out_notes, read_spans
from elmo_zh.corpus.readers.columns import LABEL_NAMES, TEXT_NAMES
from elmo_zh.corpus.readers.examples import (
    NO_EXAMPLES,
    OUTSIDE,
    Example,
    Labelled,
    UnlabelledError,
    count_labels,
    describe_tags,
    detect_scheme,
    in_bioes,
    marks_span,
)
from elmo_zh.errors import CorpusError
from elmo_zh.language import _
from elmo_zh.run.reporter import first_ten
from elmo_zh.text.script import HAN, count_han

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

_TOKEN_NAMES = ("tokens", "words", "chars", "characters", *TEXT_NAMES)
_TAG_NAMES = ("ner_tags", "tags", "pos_tags", "upos", "ner", *LABEL_NAMES)
# The tokens of a sentence with their tags.
Sentence = list[tuple[str, str]]


def read_tagged(text: DecodedText, kind: str, reading: Reading) -> Labelled:
    """Return the tagged sentences of a file; tags that mark spans are converted to BIOES."""
    if kind not in ("jsonl", "conll", "tsv"):
        message = _(
            "{name}: cannot read tags from this format ({kind}). From Label Studio, export as JSON-MIN; otherwise, put"
            " a token and its tag on each line, separated by a tab, and add: --input-format conll"
        )
        raise CorpusError(message.format(name=text.name, kind=kind))
    left_out, scheme, by_words = Counter[str](), "BIOES", False
    records = list(iter_accepted(text, left_out)) if kind == "jsonl" else []
    names = records[0][1] if records else {*filter(str.isdecimal, reading.task_columns)}
    columns = reading.columns_in(names)
    fields = _list_fields(records[0][1], *columns) if records else ()
    if kind == "jsonl" and not fields:
        examples, notes, columns = read_spans(text, records, *columns)
    else:
        if fields:
            place = _("record {number}")
            sentences = [
                _listed(f"{text.name}: {place.format(number=number)}", *map(record.get, fields))
                for number, record in records
            ]
        else:
            sentences, by_words = _sentences_of_lines(text, *columns)
        examples, notes, by_words = _examples_of(text.name, sentences, by_words=by_words)
        scheme = detect_scheme(chain.from_iterable(example.labels for example in examples), text.name)
        if scheme:
            examples, num_wrong = in_bioes(examples)
            if num_wrong:
                reason = _("tags that continue no span and so start one, as in conlleval")
                notes.append(_("{name}: {value}").format(name=reason, value=f"{num_wrong:,}"))
    labels = count_labels((example.labels for example in examples), marks_spans=bool(scheme))
    most = first_ten([f"{shown(label[:20])} {count:,}" for label, count in labels.most_common()])
    form = _("{name}: {value}").format(name=kind, value=f"{describe_tags(scheme, by_words=by_words)} ({most})")
    return Labelled(
        name=text.name,
        examples=examples,
        scheme=scheme,
        by_words=by_words,
        columns=columns if any(columns) else (),
        notes=(form, *notes, *left_out_notes(left_out)),
    )


def _wrong(where: str, line: str, problem: str = "") -> CorpusError:
    return CorpusError(
        _(
            "{where}: {problem} ({line}). Put one token and its tag on each line, and a blank line after each sentence."
            " To choose the columns: --text-column 1 --label-column 2"
        ).format(where=where, problem=problem or _("not one token and its tag"), line=repr(line[:40]))
    )


def _examples_of(name: str, sentences: Sequence[Sentence], *, by_words: bool) -> tuple[list[Example], list[str], bool]:
    """Convert tagged sentences to examples; return them with notes, and whether their units are words."""
    sentences = [sentence for sentence in sentences if sentence]
    if not sentences:
        raise CorpusError(_(NO_EXAMPLES).format(name=name))
    tokens = [token for sentence in sentences for token, _tag in sentence]
    long = [token for token in tokens if len(token) >= _LONG_TOKEN and count_han([token]) >= _LONG_TOKEN]
    if len(long) > _MOST_LONG * len(tokens):
        raise _wrong(name, long[0])
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
        UnlabelledError: If the first line has a single column.
        CorpusError: If a line is not a token with its tag, a long file has no blank lines between sentences, or lines
            often differ in their number of columns and no label column is given.
    """
    sentences: list[Sentence] = [[]]
    num_columns, is_conllu, has_tabs = Counter[int](), False, False
    for number, line in enumerate(text.whole_lines(), start=1):
        if not line.strip("\r\n\t "):
            sentences.append([])
        elif not line.startswith("-DOCSTART-") and not (_is_comment(line) and (has_tabs or not sentences[-1])):
            cells, where = _cells(line), f"{text.name}: {_('line {number}').format(number=number)}"
            if len(cells) < 2 and not num_columns:
                raise UnlabelledError(*_wrong(where, line).messages)
            num_columns[len(cells)] += 1
            is_conllu, has_tabs = len(cells) == _CONLLU_COLUMNS and cells[0][:1].isdecimal(), "\t" in line
            # In CoNLL-U, multiword tokens and empty nodes are not in the text.
            if not is_conllu or cells[0].isdecimal():
                sentences[-1].append(_token(where, line, cells, text_column, label_column, is_conllu=is_conllu))
    problem = ""
    if sum(map(bool, sentences)) == 1 and num_columns.total() > _LONGEST_SENTENCE:
        problem = _("all {number:,} tokens are in one sentence").format(number=num_columns.total())
    elif not label_column and num_columns and max(num_columns.values()) < _ALIKE_FRACTION * num_columns.total():
        problem = _("lines have {least} to {most} columns").format(least=min(num_columns), most=max(num_columns))
    if problem:
        raise _wrong(text.name, " ".join(token for sentence in sentences for token, _tag in sentence[:10]), problem)
    return sentences, is_conllu


def _is_comment(line: str) -> bool:
    """Return whether a line is a comment, rather than the token # with its tag."""
    cells = _cells(line)
    if not line.startswith("#") or "\t" in line or len(cells) < 2:
        return False
    return "=" in cells or not (cells[-1] == OUTSIDE or marks_span(cells[-1]))


def _cells(line: str) -> list[str]:
    if "\t" in line:
        return line.split("\t")
    cells = list(filter(None, line.split(" ")))
    return [" ", *cells] if line[0] == " " else cells


def _token(
    where: str, line: str, cells: Sequence[str], text_column: str, label_column: str, *, is_conllu: bool
) -> tuple[str, str]:
    """Return the token and the tag in the cells of a line; raise CorpusError if it does not have one of each.

    Columns are numbered from 1. By default the token is in the first and the tag in the last; in CoNLL-U, they are in
    the second and the fourth.
    """
    if len(cells) > 2 and "\t" not in line and all(map(_WORD_AND_TAG.fullmatch, cells)):
        raise _wrong(where, line)
    places = _place(text_column, _FORM if is_conllu else 1), _place(label_column, _UPOS if is_conllu else len(cells))
    if len(cells) < 2 or max(places) > len(cells):
        raise _wrong(where, line)
    token, tag = (cells[place - 1] for place in places)
    if not token or not tag.strip() or "\x02" in token or len(token.split()) == len(tag.split()) > 1:
        raise _wrong(where, line)
    return token, tag.strip()


def _place(column: str, default: int) -> int:
    if column and not (column.isdecimal() and int(column)):
        raise CorpusError.unexpected(repr(column[:40]), f"{_('a whole number')} (x>=1)")
    return int(column) if column else default


def _are_numbered(sentences: Sequence[Sentence]) -> bool:
    """Return whether nearly all tokens are a character and its place in a word: 0 or the previous place plus 1."""
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
    """Return whether a word needs a space after other text, because ASCII letters or digits would meet."""
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
            _("{where} has {a} tokens and {b} tags. Write one tag per token.").format(
                where=where, a=num_tokens, b=num_tags
            )
        )
    wrong = [item for item in (*(tokens or ()), *(tags or ())) if not isinstance(item, str) or not item]
    if wrong or any(not tag.strip() for tag in tags or ()):
        raise CorpusError.unexpected(f"{where}: {wrong[0] if wrong else ''!r}", "B-PER")
    return [(token, tag.strip()) for token, tag in zip(tokens or (), tags or (), strict=True)]
