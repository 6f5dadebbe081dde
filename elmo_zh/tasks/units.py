"""Texts as networks read them: their units, which are characters or words, and the tokens that the units belong to."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.embed.unknown_rate import TokenForms
from elmo_zh.text.alignment import align_sentences, identity_spans
from elmo_zh.text.sentences import split_sentences

# Place of a unit in its token; the first is that of a unit without a token, such as a space.
NO_TOKEN, ALONE, FIRST, INSIDE, LAST = PLACES = range(5)


@dataclass(frozen=True, eq=False)
class UnitText:
    """A text and its n units.

    Attributes:
        text: The raw text.
        units: First character of each unit and the one after its last, int32, shape (n, 2).
        sentences: The tokens of each sentence, which get their vectors together.
        owners: Number of the token of each unit, counted through all sentences; -1 for a unit without one, int64, (n,).
        places: Place of each unit in its token, one of `PLACES`, int64, shape (n,).
    """

    text: str
    units: NDArray[np.int32]
    sentences: tuple[tuple[str, ...], ...]
    owners: NDArray[np.int64]
    places: NDArray[np.int64]


class TextReader:
    """Splits texts into sentences and tokens as the model's training text, and finds the token of each unit."""

    def __init__(self, embedder: ElmoEmbedder, *, by_words: bool) -> None:
        """Prepare to read texts.

        Args:
            embedder: The model.
            by_words: Units are the tokens of the model's segmenter; else characters.
        """
        self._embedder, self._by_words = embedder, by_words
        self._splits = embedder.bundle.text is not None and embedder.bundle.text.split_sentences
        self._forms = TokenForms(embedder.bundle)

    def read(self, text: str, units: NDArray[np.int32] | None = None) -> UnitText:
        """Return the units of a raw text, unless they are given.

        Raises:
            BundleError: If the bundle's segmenter is not installed, or not known.
        """
        lines = [line for line in align_sentences(text, self._embedder.prepare, split=self._splits) if line.tokens]
        sentences = tuple(tuple(line.tokens) for line in lines)
        tokens = np.concatenate([np.zeros((0, 2), np.int32), *(line.offsets for line in lines)])
        if units is None:
            units = tokens if self._by_words else identity_spans(len(text))
        owners, places = find_owners(units, tokens, len(text))
        return UnitText(text, units, sentences, owners, places)

    def sentences(self, text: str) -> list[str]:
        """Return the sentences of a text; the whole text for a model that was not trained on sentences."""
        return split_sentences(text) if self._splits else [text]

    def read_words(self, text: str, words: Sequence[str], units: NDArray[np.int32]) -> UnitText:
        """Return a text of given words as one sentence: each is a unit, and a token in the form the model knows."""
        tokens = tuple(self._forms.known_form(word) for word in words)
        owners = np.arange(len(tokens), dtype=np.int64)
        return UnitText(text, units, (tokens,) if tokens else (), owners, np.full(len(tokens), ALONE, np.int64))


def sentences_of(texts: Iterable[Sequence[UnitText]]) -> Iterator[tuple[str, ...]]:
    """Yield the sentences of the texts of examples, each as its tokens; a pair has two texts."""
    return (sentence for each in texts for text in each for sentence in text.sentences)


def find_owners(
    units: NDArray[np.int32], tokens: NDArray[np.int32], num_characters: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the token that holds the first character of each unit, -1 if there is none, and the place in it.

    Args:
        units: Start and end of each unit, int32, shape (n, 2).
        tokens: Start and end of each token in order, int32, shape (m, 2).
        num_characters: Length of the text.

    Returns:
        Two arrays, int64, shape (n,).
    """
    token_of = np.full(num_characters, -1)
    lengths = tokens[:, 1] - tokens[:, 0]
    inside = np.arange(lengths.sum()) - (lengths.cumsum() - lengths).repeat(lengths)
    token_of[tokens[:, 0].repeat(lengths) + inside] = np.arange(len(tokens)).repeat(lengths)
    owners = token_of[units[:, 0]]
    starts, ends = (
        (units[:, 0] <= tokens[owners, 0], units[:, 1] >= tokens[owners, 1]) if len(tokens) else (False, False)
    )
    places = np.select([owners < 0, starts & ends, starts, ends], [NO_TOKEN, ALONE, FIRST, LAST], INSIDE)
    return owners.astype(np.int64), places.astype(np.int64)
