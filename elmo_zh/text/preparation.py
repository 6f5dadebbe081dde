"""Turn a raw line into segmented sentences, in the same way for training and embedding."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import index
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from elmo_zh.config import TextConfig
from elmo_zh.run.reporter import Reporter
from elmo_zh.text.alignment import TokenisedLine, find_tokens
from elmo_zh.text.entries import Entries
from elmo_zh.text.normalise import Normaliser, OnChange, build_normaliser, keeps_tokens
from elmo_zh.text.segmenters.registry import Segmenter, build_segmenter
from elmo_zh.text.segmenters.user_dictionary import read_user_dictionary
from elmo_zh.text.sentences import split_between_tokens, split_sentences


@dataclass(frozen=True)
class TextPreparation:
    """The normaliser, sentence splitter and segmenter that the text settings describe."""

    normalise: Normaliser
    segment: Segmenter
    split_at_sentence_ends: bool
    keeps_tokens: bool = False  # Lines come segmented, so that sentences end only between two tokens

    @classmethod
    def build(
        cls,
        config: TextConfig,
        user_dictionary: Path | None = None,
        split: Callable[[list[str]], list[str]] | None = None,
    ) -> "TextPreparation":
        """Build the preparation that the settings describe.

        Args:
            config: The settings.
            user_dictionary: The copy of the user dictionary in the run or bundle.
            split: Splits unknown words in a list of tokens, if the settings ask for it; None without a vocabulary.
        """
        segment = whole = build_segmenter(config, user_dictionary)
        if split is not None and config.split_unknown:
            segment = lambda sentence: split(whole(sentence))  # noqa: E731
        return cls(build_normaliser(config), segment, config.split_sentences, keeps_tokens(config))

    def report_dictionary(self, path: Path, reporter: Reporter) -> None:
        """Warn of the entries of a user dictionary, with which this was built, that have no effect."""
        entries = Entries(path, self.normalise)
        words = read_user_dictionary(path, entries)
        # jieba removes a word whose count is 0.
        entries.require_whole({entry.word: entry.line for entry in words if entry.frequency != 0}, self.segment)
        entries.report(reporter)

    def tokens(self, sentence: str) -> list[str]:
        """Return the tokens of one raw sentence, without looking for sentence ends in it."""
        return self.segment(self.normalise(sentence))

    def prepare(self, sentence: str, keep: Sequence[tuple[int, int]] = ()) -> TokenisedLine:
        """Return the tokens of one raw sentence, and their positions before normalisation.

        Each span to `keep`, given by its first character and the one after its last, becomes one token; the text
        between spans is segmented separately. Unsuitable spans raise ValueError, as in `check_spans`.

        A token reaches from the first raw character that its first character comes from to the last one that its last
        character comes from. Two tokens overlap where one raw character became several, such as ㎏ in NFKC.

        >>> preparation = TextPreparation.build(TextConfig())
        >>> line = preparation.prepare("今天１０度")
        >>> line.tokens, line.offsets.tolist()
        (['今天', '10', '度'], [[0, 2], [2, 4], [4, 5]])
        """
        text, spans = self.normalise.with_spans(sentence)
        if len(keep) > 0:
            tokens, places = self._tokens_around(text, _places_of(check_spans(keep, len(sentence)), spans))
        else:
            tokens = self.segment(text)
            places = find_tokens(text, tokens)
        return TokenisedLine(tokens, np.stack([spans[places[:, 0], 0], spans[places[:, 1] - 1, 1]], axis=1))

    def _tokens_around(self, text: str, kept: Sequence[tuple[int, int]]) -> tuple[list[str], NDArray[np.int32]]:
        """Return the tokens of a normalised text and their positions; each span to keep becomes one token."""
        tokens: list[str] = []
        places = [np.zeros((0, 2), np.int32)]
        borders = [(0, 0), *kept, (len(text), len(text))]
        for (start, end), (following, _) in pairwise(borders):
            # No token of the vocabulary has a space.
            if token := text[start:end].replace(" ", ""):
                tokens.append(token)
                places.append(np.array([(start, end)], np.int32))
            between = text[end:following]
            pieces = self.segment(between)
            tokens += pieces
            places.append(find_tokens(between, pieces) + np.int32(end))
        return tokens, np.concatenate(places)

    def sentences(self, line: str) -> list[list[str]]:
        """Return the tokens of each sentence in a raw line, leaving out sentences without tokens."""
        return [tokens for text in self.sentence_texts(line) if (tokens := self.segment(text))]

    def sentence_texts(self, line: str, on_change: OnChange | None = None) -> list[str]:
        """Return the normalised sentence texts of a raw line, including those without tokens."""
        split = split_between_tokens if self.keeps_tokens else split_sentences
        return self.normalise.sentence_texts(line, split(line) if self.split_at_sentence_ends else (line,), on_change)


def check_spans(spans: Sequence[tuple[int, int]], num_characters: int) -> list[tuple[int, int]]:
    """Return the spans of a text in order; raise ValueError if one is empty, overlaps another or exceeds the text."""
    ordered = sorted((index(start), index(end)) for start, end in spans)
    for start, end in ordered:
        if not 0 <= start < end <= num_characters:
            raise ValueError(f"the span ({start}, {end}) does not fit a text of {num_characters} characters")
    for before, after in pairwise(ordered):
        if after[0] < before[1]:
            raise ValueError(f"the spans {before} and {after} overlap")
    return ordered


def _places_of(kept: Sequence[tuple[int, int]], spans: NDArray[np.int32]) -> list[tuple[int, int]]:
    """Return the non-overlapping spans of normalised characters that come from raw spans."""
    places: list[tuple[int, int]] = []
    for start, end in kept:
        inside = np.flatnonzero((spans[:, 0] < end) & (spans[:, 1] > start))
        if len(inside):
            # A character that both spans cover belongs to the first.
            first = max(int(inside[0]), places[-1][1] if places else 0)
            places.append((first, max(first, int(inside[-1]) + 1)))
    return places
