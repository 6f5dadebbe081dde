"""Occurrences of a word in a sentence, each as one token of its segmentation."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.errors import CorpusError
from elmo_zh.run.reporter import counted
from elmo_zh.text.alignment import TokenisedLine

_SHOWN_CHARACTERS = 40


@dataclass(frozen=True, kw_only=True)
class TokenInSentence:
    """A token of a sentence.

    Attributes:
        text: The sentence as given.
        source: Name of the file that it is from; empty if it was given alone.
        line: Number of its line in that file, from 0.
        start: The token's first character in the sentence.
        end: The character after its last one.
        tokens: The tokens of the sentence.
        position: The position of the token among them, from 0.
        segmented_as: The tokens as the segmenter made them, if the sentence was cut so that the word is one; else None.
    """

    text: str
    source: str = ""
    line: int = 0
    start: int
    end: int
    tokens: list[str]
    position: int
    segmented_as: list[str] | None = None

    @property
    def word(self) -> str:
        """The token."""
        return self.tokens[self.position]

    def describe_cut(self) -> str:
        """Return how the sentence was cut for the word, for messages; "" if the word is a token anyway."""
        if self.segmented_as is None:
            return ""
        return (
            f"{self.word} is not a word of the segmentation {' '.join(self.segmented_as)}, so the sentence was cut to"
            f" {' '.join(self.tokens)}."
        )


def find_occurrences(
    embedder: ElmoEmbedder, text: str, word: str, *, segmented: bool = False, place: tuple[str, int] = ("", 0)
) -> list[TokenInSentence]:
    """Return the occurrences of a word in a sentence, in order and without overlap.

    Where no token of the segmentation is the word, the sentence is cut before and after it, and what stands on either
    side is segmented by itself. Segmented text is never cut: only tokens that are the word are found.

    Args:
        embedder: The model, which knows how text is segmented.
        text: The sentence.
        word: The word as it stands in the sentence.
        segmented: The sentence's tokens are split at U+0020.
        place: The file that it is from and the number of the line there, for the result.
    """
    prepared = embedder.prepare(text, segmented=segmented)
    places = {(start, end): place for place, (start, end) in enumerate(prepared.offsets.tolist())}
    found = []
    for start, end in _spans(text, word):
        if (start, end) in places:
            chosen, position, segmented_as = prepared.tokens, places[start, end], None
        elif segmented:
            continue
        else:
            before, own, after = (embedder.prepare(part).tokens for part in (text[:start], word, text[end:]))
            if not own:
                continue
            chosen, position, segmented_as = [*before, "".join(own), *after], len(before), prepared.tokens
        found.append(
            TokenInSentence(
                text=text,
                source=place[0],
                line=place[1],
                start=start,
                end=end,
                tokens=chosen,
                position=position,
                segmented_as=segmented_as,
            )
        )
    return found


def require_occurrences(
    embedder: ElmoEmbedder, text: str, word: str, *, segmented: bool = False
) -> list[TokenInSentence]:
    """Return what `find_occurrences` returns.

    Raises:
        CorpusError: If the word is not in the sentence.
    """
    found = find_occurrences(embedder, text, word, segmented=segmented)
    if not found:
        _require_text(text)
        described = describe_tokens(text, embedder.prepare(text, segmented=segmented))
        raise CorpusError(f"{word} is not in the sentence: {described} Give a word of it.")
    return found


def best_occurrence(occurrences: Sequence[TokenInSentence]) -> TokenInSentence:
    """Return the first occurrence for which the sentence need not be cut; if there is none, the first."""
    return next((each for each in occurrences if each.segmented_as is None), occurrences[0])


def _spans(text: str, word: str) -> Iterator[tuple[int, int]]:
    start = text.find(word) if word else -1
    while start >= 0:
        yield start, start + len(word)
        start = text.find(word, start + len(word))


def occurrence_at(embedder: ElmoEmbedder, text: str, position: int, *, segmented: bool = False) -> TokenInSentence:
    """Return the token at a position of a sentence, counted from 0.

    Raises:
        CorpusError: If the sentence has no such position.
    """
    prepared = embedder.prepare(text, segmented=segmented)
    if not 0 <= position < len(prepared.tokens):
        _require_text(text)
        raise CorpusError(f"--position {position}: {describe_tokens(text, prepared)} Positions are counted from 0.")
    start, end = prepared.offsets[position].tolist()
    return TokenInSentence(text=text, start=start, end=end, tokens=prepared.tokens, position=position)


def _require_text(text: str) -> None:
    if not text.strip():
        raise CorpusError("The sentence is empty. Give one that has the word.")


def describe_tokens(text: str, prepared: TokenisedLine) -> str:
    """Return what tokens a sentence has, for messages."""
    shown = text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
    tokens = " ".join(prepared.tokens[:_SHOWN_CHARACTERS])
    count = len(prepared.tokens)
    return f"{shown!r} has {counted(count, 'token')}{f' ({tokens})' if count else ''}."
