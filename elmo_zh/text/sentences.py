"""Split a paragraph into sentences, and group a stream into windows that are computed together."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from elmo_zh.language import _

# A run of sentence ends and the closing quotes and brackets after it. An ASCII ! or ? directly before an ASCII letter,
# digit or one of =&/%_# is part of a web address or a name, not an end.
_SIGN = r"[。！？…!?](?<![!?](?=[A-Za-z0-9=&/%_#]))"
_CLOSING = r"\s*[”’」』）》〉】〕｝\)\]\}]"
# ASCII quotes look the same at both ends; counting tells whether one closes.
_END = re.compile(rf"{_SIGN}(?:{_SIGN}|{_CLOSING})*(?P<ascii_quotes>[\"']*)")
# Matches whole sentences of text without ASCII quotes, several times faster. It uses no possessive quantifiers, which
# early releases of Python 3.11 get wrong (python/cpython#100061).
_NO_SIGN = r"[^。！？…!?]*"
_SENTENCE = re.compile(
    rf"{_NO_SIGN}(?:[!?](?=[A-Za-z0-9=&/%_#]){_NO_SIGN})*{_SIGN}(?:{_SIGN}|{_CLOSING})*|.+", re.DOTALL
)

# White space that separates tokens in a line without U+0020, and in a line with it.
_SPACE = re.compile(r"[^\S\u00a0\u2007\u202f]")
_U0020 = re.compile(" ")

# Indexes and tasks, where vectors need not come from whole sentences, cut longer ones.
LONGEST_SENTENCE = 2000

# Windows bound the memory, and the work that can be lost.
WINDOW_ITEMS, WINDOW_TOKENS = 2000, 20_000
Item = TypeVar("Item")


def split_sentences(paragraph: str) -> list[str]:
    """Return the sentence texts of a paragraph; joining them restores the paragraph.

    A sentence ends after one or several of 。！？!?… and the closing quotes and brackets that follow, or at the end of
    the paragraph. An ASCII ! or ? inside a web address or a name does not end one. Split before normalising, which
    may replace these characters.

    Raises:
        TypeError: If the paragraph is not a string.
    """
    if '"' in paragraph or "'" in paragraph:
        return list(_iter_sentences(paragraph))
    return _SENTENCE.findall(paragraph)


def _separator(line: str) -> re.Pattern[str]:
    return _U0020 if " " in line.strip() else _SPACE


def split_between_tokens(paragraph: str) -> list[str]:
    """Return the sentence texts of a paragraph that its user has segmented: they end only between tokens.

    >>> split_between_tokens("看 《你好！李焕英》 吧 。 好")
    ['看 《你好！李焕英》 吧 。', ' 好']
    """
    sentences, begun, space = [], "", _separator(paragraph)
    for sentence in split_sentences(paragraph):
        between = begun[len(begun.rstrip()) :] + sentence[: len(sentence) - len(sentence.lstrip())]
        if begun and not space.search(between):
            begun += sentence
        else:
            sentences.append(begun)
            begun = sentence
    return [*sentences[1:], begun] if begun else []


def pieces(text: str, longest: int, *, segmented: bool = False) -> list[str]:
    """Cut a text into pieces of at most `longest` characters, preferably after a sentence or a space."""
    cut, start = [], 0
    split = split_between_tokens if segmented else split_sentences
    while len(text) - start > longest:
        within = text[start : start + longest]
        # Even if the last sentence seems complete, more closing characters may follow it.
        *sentences, last = split(within)
        to_space = re.match(rf"(?s:.*){_separator(text).pattern}", within)
        size = longest - len(last) if sentences else to_space.end() if to_space else longest
        cut.append(within[:size])
        start += size
    return [*cut, text[start:]]


def iter_pieces(
    text: str, *, split: bool, longest: int = 0, segmented: bool = False
) -> Iterator[tuple[int, str, bool]]:
    """Yield the start and text of each piece, and whether it continues a sentence.

    Without `split`, the whole text is one sentence. Pieces have at most `longest` characters (0: no limit). In
    `segmented` text, tokens of at most that length stay whole.
    """
    start = 0
    split_text = split_between_tokens if segmented else split_sentences
    for sentence in split_text(text) if split else [text]:
        for number, piece in enumerate(pieces(sentence, longest or len(sentence), segmented=segmented)):
            yield start, piece, number > 0
            start += len(piece)


def describe_cuts(name: str, num_cuts: int) -> str:
    """Return a message saying that long lines or sentences of a text were cut."""
    message = _(
        "{name}: long lines or sentences are read in pieces of at most {longest:,} characters (cuts: {count:,})."
    )
    return message.format(name=name, longest=LONGEST_SENTENCE, count=num_cuts)


def _iter_sentences(paragraph: str) -> Iterator[str]:
    start = 0
    for match in _END.finditer(paragraph):
        end = match.end()
        quotes = match["ascii_quotes"]
        # An ASCII quote closes if one is open in the sentence so far.
        if quotes and paragraph.count(quotes[0], start, match.start("ascii_quotes")) % 2 == 0:
            end = match.start("ascii_quotes")
        yield paragraph[start:end]
        start = end
    if start < len(paragraph):
        yield paragraph[start:]


def iter_windows(
    items: Iterable[Item], size: Callable[[Item], int], *, most_items: int = 0, most_size: int = 0
) -> Iterator[list[Item]]:
    """Yield consecutive items in lists; the item that reaches a limit (0 means the default) ends its list."""
    window: list[Item] = []
    total = 0
    for item in items:
        window.append(item)
        total += size(item)
        if len(window) >= (most_items or WINDOW_ITEMS) or total >= (most_size or WINDOW_TOKENS):
            yield window
            window, total = [], 0
    if window:
        yield window
