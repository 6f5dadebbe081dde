"""From a raw line to segmented sentences, the same way in training and in embedding."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from elmo_zh.config import TextConfig
from elmo_zh.text.alignment import TokenisedLine, find_tokens
from elmo_zh.text.normalise import Normaliser, Told, build_normaliser
from elmo_zh.text.segmenters.registry import Segmenter, build_segmenter
from elmo_zh.text.sentences import split_sentences


@dataclass(frozen=True)
class TextPreparation:
    """The text settings at work."""

    normalise: Normaliser
    segment: Segmenter
    split_at_sentence_ends: bool

    @classmethod
    def build(cls, config: TextConfig, user_dictionary: Path | None = None) -> "TextPreparation":
        """Return the preparation that the settings describe.

        Args:
            config: The text settings.
            user_dictionary: The run's or bundle's copy of the user dictionary; the path in the settings is not used.
        """
        return cls(build_normaliser(config), build_segmenter(config, user_dictionary), config.split_sentences)

    def tokens(self, sentence: str) -> list[str]:
        """Return the tokens of one raw sentence, which is not split."""
        return self.segment(self.normalise(sentence))

    def prepare(self, sentence: str) -> TokenisedLine:
        """Return the tokens of one raw sentence, and where they stand in it as it was before normalisation.

        A token reaches from the first raw character that its first character stands for to the last one that its last
        character stands for. Two tokens meet in a raw character that became several, such as ㎏ in NFKC.

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
        """Return the tokens of each sentence of a raw line, leaving out sentences without any."""
        return [tokens for piece in self.pieces(line) if (tokens := self.segment(piece))]

    def pieces(self, line: str, told: Told | None = None) -> list[str]:
        """Return the normalised sentences of a raw line, also those without any token.

        Args:
            line: Raw.
            told: Is called with the name of a step, and a sentence before and after it, for each that it changes.
        """
        pieces = split_sentences(line) if self.split_at_sentence_ends else (line,)
        return self.normalise.pieces(line, pieces, told)
