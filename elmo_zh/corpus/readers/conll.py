"""Read tagging data in columns: CoNLL, with one unit and its tag per line, and CoNLL-U."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from elmo_zh.corpus.decoding import DecodedText
from elmo_zh.corpus.readers.examples import OUTSIDE, Example, marks_span
from elmo_zh.corpus.readers.labelled_records import UnlabelledError, excerpt
from elmo_zh.errors import CorpusError
from elmo_zh.language import _, ngettext
from elmo_zh.text.han import HAN, count_han

LONGEST_LINE = 2**20
# Columns of CoNLL-U, counted from 1: the word, and its universal part of speech.
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


@dataclass(frozen=True)
class TaggedToken:
    """A token with its tag, the number of columns on its line, and whether the line is CoNLL-U."""

    token: str
    tag: str
    is_conllu: bool = False
    num_columns: int = 2


def read_conll(text: DecodedText, text_column: str, label_column: str) -> tuple[list[Example], list[str], bool]:
    """Return the sentences of a CoNLL file, notes on how it was read, and whether its units are words.

    Columns are separated by tabs, otherwise by spaces, and numbered from 1. By default the token is in the first column
    and the tag in the last; in CoNLL-U, in the second and the fourth.
    """
    sentences = list(_sentences(text, text_column, label_column))
    if len(sentences) == 1 and len(sentences[0]) > _LONGEST_SENTENCE:
        raise CorpusError(
            _("{name}: all {sentences} tokens are in one sentence. Put a blank line after each sentence.").format(
                name=text.name, sentences=f"{len(sentences[0]):,}"
            )
        )
    if not label_column:
        _require_columns(text.name, sentences)
    return tagged_examples(text.name, sentences)


def tagged_examples(name: str, sentences: Sequence[Sequence[TaggedToken]]) -> tuple[list[Example], list[str], bool]:
    """Convert tagged sentences to examples; return the same values and raise the same errors as `read_conll`."""
    if not sentences:
        raise CorpusError(_("{name}: no sentence was found. Give one token and its tag per line.").format(name=name))
    tokens = [row.token for rows in sentences for row in rows]
    long = [token for token in tokens if len(token) >= _LONG_TOKEN and count_han([token]) >= _LONG_TOKEN]
    if len(long) > _MOST_LONG * len(tokens):
        raise CorpusError(
            _(
                "{name}: {token} is not a word. Put one word or character and its tag on each line, and a blank line"
                " after each sentence. For one label per text, use task fit classify."
            ).format(name=name, token=excerpt(long[0]))
        )
    notes: list[str] = []
    if _are_numbered(sentences):
        sentences = [[replace(row, token=_without_place(row.token)) for row in rows] for rows in sentences]
        notes.append(_("tokens are characters with their position in a word; the positions were dropped"))
    lengths = Counter(len(row.token) == 1 for rows in sentences for row in rows if HAN.search(row.token))
    by_words = sentences[0][0].is_conllu or lengths[True] < _CHARACTER_FRACTION * lengths.total()
    return [_example(rows, by_words=by_words) for rows in sentences], notes, by_words


def _require_columns(name: str, sentences: Sequence[Sequence[TaggedToken]]) -> None:
    """Raise CorpusError if the number of columns varies: such lines are probably sentences rather than tokens."""
    counts = Counter(row.num_columns for rows in sentences for row in rows)
    if counts and max(counts.values()) < _ALIKE_FRACTION * counts.total():
        raise CorpusError(
            _(
                "{name}: the lines have from {counts} to {counts2} columns. Put one token and its tag on each line, and"
                " a blank line after each sentence. If the tags are in another file, merge the two files."
            ).format(name=name, counts=min(counts), counts2=max(counts))
        )


def _sentences(text: DecodedText, text_column: str, label_column: str) -> Iterator[list[TaggedToken]]:
    rows: list[TaggedToken] = []
    is_first, has_tabs = True, False
    for number, line in enumerate(text.whole_lines(LONGEST_LINE), start=1):
        if not line.strip("\r\n\t "):
            if rows:
                yield rows
            rows = []
        elif not line.startswith("-DOCSTART-") and not (_is_comment(line) and (has_tabs or not rows)):
            cells = _cells(line)
            if len(cells) < 2 and is_first:
                raise UnlabelledError(_few_columns(text.name, number, line, cells, text_column, label_column))
            is_first, has_tabs = False, "\t" in line
            row = _row(text.name, number, line, text_column, label_column)
            rows += [row] if row else []
    if rows:
        yield rows


def has_columns(line: str) -> bool:
    """Return whether a line has tab-separated columns or is a token with a span tag."""
    cells = _cells(line) if line else []
    return "\t" in line or (len(cells) > 1 and marks_span(cells[-1])) or (len(cells) == 2 and cells[1] == OUTSIDE)


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


def _few_columns(name: str, number: int, line: str, cells: Sequence[str], text_column: str, label_column: str) -> str:
    needed = max(_column(text_column, 1), _column(label_column, 2))
    return ngettext(
        "{name}: line {number} has {cells} column ({line}); expected at least {needed}, for a token and its tag."
        " Correct the line, or choose the columns: --text-column 1 --label-column 2",
        "{name}: line {number} has {cells} columns ({line}); expected at least {needed}, for a token and its tag."
        " Correct the line, or choose the columns: --text-column 1 --label-column 2",
        len(cells),
    ).format(name=name, number=number, cells=len(cells), line=excerpt(line), needed=needed)


def _row(name: str, number: int, line: str, text_column: str, label_column: str) -> TaggedToken | None:
    cells = _cells(line)
    if len(cells) > 2 and "\t" not in line and all(map(_WORD_AND_TAG.fullmatch, cells)):
        raise CorpusError(
            _(
                "{name}: line {number} has several words with their tags ({line}). Put each word, a tab and its tag on"
                " a line of its own, and a blank line after each sentence."
            ).format(name=name, number=number, line=excerpt(line))
        )
    is_conllu = len(cells) == _CONLLU_COLUMNS and cells[0][:1].isdecimal()
    if is_conllu and not cells[0].isdecimal():
        return None  # a multiword token, or an empty node, which is not in the text
    columns = (
        _column(text_column, _FORM if is_conllu else 1),
        _column(label_column, _UPOS if is_conllu else len(cells)),
    )
    if len(cells) < 2 or max(columns) > len(cells):
        raise CorpusError(_few_columns(name, number, line, cells, text_column, label_column))
    token, tag = (cells[column - 1] for column in columns)
    if not token or not tag.strip():
        problem = _("has no tag") if token else _("has no token")
        raise CorpusError(
            _("{name}: line {number} {problem} ({line}). Correct the line.").format(
                name=name, number=number, problem=problem, line=excerpt(line)
            )
        )
    return TaggedToken(token, tag.strip(), is_conllu, len(cells))


def _column(given: str, default: int) -> int:
    if given and not (given.isdecimal() and int(given)):
        raise CorpusError(
            _("{given} is not the number of a CoNLL column. Give a column number, counting from 1.").format(
                given=repr(given[:40])
            )
        )
    return int(given) if given else default


def _are_numbered(sentences: Sequence[Sequence[TaggedToken]]) -> bool:
    """Return whether tokens end in their position within a word: 0, or one more than the previous token's."""
    fitting = Counter[bool]()
    for rows in sentences:
        matches = [_NUMBERED.fullmatch(row.token) for row in rows]
        places = [int(match[2]) if match else -1 for match in matches]
        fitting.update(after in (0, before + 1) for before, after in pairwise([-1, *places]))
    return fitting[True] >= _CHARACTER_FRACTION * fitting.total()


def _without_place(token: str) -> str:
    match = _NUMBERED.fullmatch(token)
    return match[1] if match else token.rstrip("0123456789") or token


def _example(rows: Sequence[TaggedToken], *, by_words: bool) -> Example:
    pieces: list[str] = []
    units = np.zeros((len(rows), 2), np.int32)
    end = 0
    for place, row in enumerate(rows):
        if by_words and place and _needs_space(rows[place - 1].token, row.token):
            pieces.append(" ")
            end += 1
        pieces.append(row.token)
        units[place] = (end, end + len(row.token))
        end += len(row.token)
    words = tuple(row.token for row in rows) if by_words else None
    return Example(("".join(pieces),), tuple(row.tag for row in rows), units, words)


def _needs_space(before: str, after: str) -> bool:
    """Return whether two words need a space between them, because both use a script that has spaces."""
    return before[-1].isascii() and before[-1].isalnum() and after[0].isascii() and after[0].isalnum()
