"""Turn a raw line into segmented sentences, in the same way for training and embedding."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from elmo_zh.config import TextConfig
from elmo_zh.run.reporter import Reporter
from elmo_zh.text.entries import Entries
from elmo_zh.text.normalise import Normaliser, build_normaliser, keeps_tokens
from elmo_zh.text.segmenters import Segmenter, build_segmenter
from elmo_zh.text.segmenters.user_dictionary import read_user_dictionary
from elmo_zh.text.sentences import iter_pieces, split_between_tokens, split_sentences


@dataclass(frozen=True, eq=False)
class TokenisedLine:
    """The non-empty tokens of a line, with their start and end in the raw line, in characters, int32, shape (n, 2)."""

    tokens: list[str]
    offsets: NDArray[np.int32]

    @classmethod
    def of_tokens(cls, tokens: Sequence[str]) -> "TokenisedLine":
        """Return the line in which the tokens are separated by single spaces."""
        lengths = np.array([len(token) for token in tokens], np.int32)
        ends = np.cumsum(lengths + 1, dtype=np.int32) - 1
        return cls(list(tokens), np.stack([ends - lengths, ends], axis=1))


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
            user_dictionary: The user dictionary, such as the copy in a run or bundle, if there is one.
            split: Splits unknown words in a list of tokens, if the settings ask for it; None without a vocabulary.
        """
        segment = whole = build_segmenter(config, user_dictionary)
        if split is not None and config.split_unknown:
            segment = lambda sentence: split(whole(sentence))  # noqa: E731
        return cls(build_normaliser(config), segment, config.split_sentences, keeps_tokens(config))

    def report_dictionary(self, path: Path, reporter: Reporter) -> None:
        """Warn of entries in this preparation's user dictionary that have no effect."""
        entries = Entries(path, self.normalise)
        words = read_user_dictionary(path, entries)
        entries.require_whole({entry.word: entry.line for entry in words}, self.segment)
        entries.report(reporter)

    def tokens(self, sentence: str) -> list[str]:
        """Return the tokens of one raw sentence, without looking for sentence ends in it."""
        return self.segment(self.normalise(sentence))

    def prepare(self, sentence: str) -> TokenisedLine:
        """Return the tokens of one raw sentence, and their positions before normalisation.

        A token starts with the first raw character that its first character comes from, and ends with the last one that
        its last character comes from. Tokens may overlap where one raw character became several, such as ㎏ in NFKC.

        >>> preparation = TextPreparation.build(TextConfig())
        >>> line = preparation.prepare("今天１０度")
        >>> line.tokens, line.offsets.tolist()
        (['今天', '10', '度'], [[0, 2], [2, 4], [4, 5]])
        """
        text, spans = self.normalise.with_spans(sentence)
        tokens = self.segment(text)
        places = find_tokens(text, tokens)
        return TokenisedLine(tokens, np.stack([spans[places[:, 0], 0], spans[places[:, 1] - 1, 1]], axis=1))

    def sentences(self, line: str) -> list[list[str]]:
        """Return the tokens of each sentence in a raw line, leaving out sentences without tokens."""
        return [tokens for text in self.sentence_texts(line) if (tokens := self.segment(text))]

    def sentence_texts(self, line: str) -> list[str]:
        """Return the normalised sentence texts of a raw line, including those without tokens."""
        split = split_between_tokens if self.keeps_tokens else split_sentences
        return self.normalise.sentence_texts(line, split(line) if self.split_at_sentence_ends else (line,))


def align_sentences(
    text: str, prepare: Callable[[str], TokenisedLine], *, split: bool, longest: int = 0, segmented: bool = False
) -> Iterator[TokenisedLine]:
    """Yield each sentence's tokens, in pieces of at most `longest` characters (0: no limit), with offsets in `text`."""
    for start, sentence, _ in iter_pieces(text, split=split, longest=longest, segmented=segmented):
        line = prepare(sentence)
        yield TokenisedLine(line.tokens, line.offsets + np.int32(start))


def find_tokens(text: str, tokens: Sequence[str]) -> NDArray[np.int32]:
    """Return each token's start and end in a text that has only tokens and white space, int32, shape (n, 2)."""
    offsets = np.zeros((len(tokens), 2), np.int32)
    end = 0
    for row, token in enumerate(tokens):
        # No token begins with white space, so the first place is the right one.
        start = text.index(token, end)
        end = start + len(token)
        offsets[row] = start, end
    return offsets
