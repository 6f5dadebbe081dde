"""Turn a raw line into segmented sentences, in the same way for training and embedding."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from elmo_zh.config import TextConfig
from elmo_zh.text.alignment import TokenisedLine, find_tokens
from elmo_zh.text.normalise import Normaliser, OnChange, build_normaliser
from elmo_zh.text.segmenters.registry import Segmenter, build_segmenter
from elmo_zh.text.sentences import split_sentences


@dataclass(frozen=True)
class TextPreparation:
    """Normaliser, sentence splitter and segmenter that the text settings describe."""

    normalise: Normaliser
    segment: Segmenter
    split_at_sentence_ends: bool

    @classmethod
    def build(cls, config: TextConfig, user_dictionary: Path | None = None) -> "TextPreparation":
        """Return the preparation that the settings describe.

        Args:
            config: The text settings.
            user_dictionary: The run's or bundle's copy of the user dictionary; the path in the settings is ignored.
        """
        return cls(build_normaliser(config), build_segmenter(config, user_dictionary), config.split_sentences)

    def tokens(self, sentence: str) -> list[str]:
        """Return the tokens of one raw sentence text, which is not split."""
        return self.segment(self.normalise(sentence))

    def prepare(self, sentence: str) -> TokenisedLine:
        """Return the tokens of one raw sentence text, and their positions in it before normalisation.

        A token reaches from the first raw character behind its first character to the last raw character behind its
        last one. Two tokens overlap in a raw character that became several, such as ㎏ in NFKC.

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
        """Return the tokens of each sentence of a raw line, without the sentences that have none."""
        return [tokens for text in self.sentence_texts(line) if (tokens := self.segment(text))]

    def sentence_texts(self, line: str, on_change: OnChange | None = None) -> list[str]:
        """Return the normalised sentence texts of a raw line, also those without a token.

        Args:
            line: The raw line.
            on_change: Called with the name of a step and a sentence text before and after it, for each change.
        """
        sentences = split_sentences(line) if self.split_at_sentence_ends else (line,)
        return self.normalise.sentence_texts(line, sentences, on_change)
