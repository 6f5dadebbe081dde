"""Find a word in sentences, and show its occurrences from an index as lines with the word in context."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.contexts.index import ContextIndex
from elmo_zh.contexts.index_files import IndexedLine, Neighbour
from elmo_zh.errors import CorpusError
from elmo_zh.language import _
from elmo_zh.run.reporter import aligned, display_width

if TYPE_CHECKING:
    from elmo_zh.embed.embedder import ElmoEmbedder

# Tokens of a sentence in a message, and columns of a terminal on either side of a word.
_SHOWN_TOKENS, _COLUMNS = 40, 30
# Repeated lines are skipped, so more occurrences are read than requested, up to this many times the number.
_MOST_PER_SHOWN = 64


@dataclass(frozen=True)
class TokenInSentence:
    """A token of a sentence, its offsets in the text, and the sentence's tokens; numbers start at 0."""

    text: str
    start: int
    end: int
    tokens: list[str]
    position: int
    # The tokens as first segmented, if the sentence was segmented again to make the word a token.
    segmented_as: list[str] | None = None

    @property
    def word(self) -> str:
        """The token at the position."""
        return self.tokens[self.position]

    def described(self) -> dict[str, Any]:
        """Return the sentence, the place and the tokens as JSON values."""
        place = {"start": self.start, "end": self.end, "position": self.position, "word": self.word}
        return {"text": self.text, "tokens": self.tokens, **place}

    def describe_cut(self) -> str:
        """Return a message that the sentence was segmented again to make the word a token; "" if it was not."""
        if self.segmented_as is None:
            return ""
        return _(
            "The segmentation {segmented_as} does not have {word} as a token, so the sentence was"
            " segmented again as {tokens}."
        ).format(segmented_as=_first(self.segmented_as), word=self.word, tokens=_first(self.tokens))


def _first(tokens: Sequence[str]) -> str:
    return " ".join(tokens[:_SHOWN_TOKENS]) + " …" * (len(tokens) > _SHOWN_TOKENS)


def find_occurrences(
    embedder: "ElmoEmbedder", text: str, word: str, *, segmented: bool = False
) -> list[TokenInSentence]:
    """Return the non-overlapping occurrences of a word in a sentence, in order.

    Where the word is not a token of raw text, the parts before and after it are segmented separately. In segmented
    text, only tokens count. If the word does not occur as written, the tokens that equal its normalised form are found.
    """
    prepared = embedder.prepare(text, segmented=segmented)
    places = {(start, end): place for place, (start, end) in enumerate(prepared.offsets.tolist())}
    spans = [match.span() for match in re.finditer(re.escape(word), text)] if word else []
    if word and not spans:
        normalised = "".join(embedder.prepare(word, segmented=segmented).tokens)
        spans = [span for span, place in places.items() if prepared.tokens[place] == normalised]
    occurrences = []
    for start, end in spans:
        if (start, end) in places:
            occurrences.append(TokenInSentence(text, start, end, prepared.tokens, places[start, end]))
        elif not segmented:
            before, within, after = (embedder.prepare(part).tokens for part in (text[:start], word, text[end:]))
            if within:
                tokens = [*before, "".join(within), *after]
                occurrences.append(TokenInSentence(text, start, end, tokens, len(before), prepared.tokens))
    return occurrences


def require_occurrences(
    embedder: "ElmoEmbedder", text: str, word: str, *, segmented: bool = False
) -> list[TokenInSentence]:
    """Return the result of `find_occurrences`; raise CorpusError if it is empty."""
    found = find_occurrences(embedder, text, word, segmented=segmented)
    if not found:
        tokens = _first(embedder.prepare(text, segmented=segmented).tokens)
        message = _("{word} is not a word of the sentence. Choose one of its words: {tokens}")
        raise CorpusError(message.format(word=word, tokens=tokens))
    return found


def best_occurrence(occurrences: Sequence[TokenInSentence]) -> TokenInSentence:
    """Return the first occurrence that is a token without segmenting again, otherwise the first one."""
    return next((place for place in occurrences if place.segmented_as is None), occurrences[0])


def distinct(neighbours: Iterable[Neighbour], top: int, *, by_place: bool = True) -> list[Neighbour]:
    """Return the first `top` neighbours, only one from equal lines or, with `by_place`, from the same place in them."""
    kept: dict[tuple[str, int], Neighbour] = {}
    for neighbour in neighbours:
        if len(kept) == top:
            break
        kept.setdefault((neighbour.line.text, neighbour.occurrence.start if by_place else 0), neighbour)
    return list(kept.values())


def distinct_neighbours(
    index: ContextIndex, vector: NDArray[np.float32], layer: int, top: int, word: str | None = None
) -> list[Neighbour]:
    """Return neighbours as `ContextIndex.neighbours` does, but only one from the same place in equal lines."""
    wanted = 2 * top
    while True:
        found = index.neighbours(vector, layer, wanted, word)
        kept = distinct(found, top)
        if len(kept) == top or len(found) < wanted or wanted >= _MOST_PER_SHOWN * top:
            return kept
        wanted *= 4


def keyword_lines(neighbours: Sequence[Neighbour]) -> list[str]:
    """Return a line for each neighbour: cosine, left context, word, right context, source and line number."""
    rows = []
    for neighbour in neighbours:
        text, start, end = neighbour.line.text, neighbour.occurrence.start, neighbour.occurrence.end
        cells = keyword_cells((text[:start], text[start:end], text[end:]), neighbour.line)
        rows.append([f"{neighbour.cosine:.4f}", *cells])
    return list(aligned(rows, left=(2, 3, 4))) if rows else []


def keyword_cells(parts: tuple[str, str, str], line: IndexedLine) -> list[str]:
    """Return the cells that show a match in its line: left context, match, right context, source and line number."""
    before, match, after = parts
    place = f"{line.source}:{line.number + 1}"
    return [_clip(reversed(before))[::-1], _printable(match), _clip(after), place]


def _clip(characters: Iterable[str]) -> str:
    """Return the characters that fit, followed by … if there are more."""
    kept, width = "", 0
    for character in characters:
        shown = _printable(character)
        width += display_width(shown)
        if width > _COLUMNS - 1:
            return kept + "…"
        kept += shown
    return kept


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text)
