"""The rows of a dump: the lines of a text, or with `--split-sentences` the sentences of each line."""

from collections.abc import Iterator
from typing import NamedTuple

from elmo_zh.bundle.read import Bundle
from elmo_zh.corpus.input_texts import InputText
from elmo_zh.errors import BundleError
from elmo_zh.run.reporter import Reporter
from elmo_zh.text.sentences import split_sentences

# A line counts as long if it has so many characters and so many sentences.
_LONG_CHARACTERS = 100
_LONG_SENTENCES = 4


class Row(NamedTuple):
    """One sentence text to embed.

    Attributes:
        text: The raw text.
        line: Number of its line in the text, from 0.
        start: Its first character in that line.
    """

    text: str
    line: int
    start: int


def iter_rows(text: InputText, *, split: bool, reporter: Reporter | None = None) -> Iterator[Row]:
    """Yield the rows of a text in order.

    Args:
        text: The text.
        split: Split lines into sentences, as in training. A line without a sentence is one row.
        reporter: Receives how the text is read.
    """
    for number, line in enumerate(text.lines(reporter)):
        if split:
            yield from _sentence_rows(line, number)
        else:
            yield Row(line, number, 0)


def _sentence_rows(line: str, number: int) -> Iterator[Row]:
    start = 0
    is_empty = True
    for sentence in split_sentences(line):
        # White space between sentences is no sentence.
        if sentence.strip():
            is_empty = False
            yield Row(sentence, number, start)
        start += len(sentence)
    if is_empty:
        yield Row(line, number, 0)


def is_long(line: str) -> bool:
    """Return whether a line is much longer than the sentences of training: it consists of several."""
    return len(line) >= _LONG_CHARACTERS and sum(1 for text in split_sentences(line) if text.strip()) >= _LONG_SENTENCES


def require_sentences(bundle: Bundle) -> None:
    """Raise BundleError if the model was trained on whole lines, or nobody knows on what."""
    if bundle.text is None or not bundle.text.split_sentences:
        known = "it is not known how its text was split" if bundle.text is None else "it was trained on whole lines"
        raise BundleError(f"{bundle.path}: {known}. Leave out --split-sentences, and give one sentence on each line.")
