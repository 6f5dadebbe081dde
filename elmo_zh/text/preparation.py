"""From a raw line to segmented sentences, the same way in training and in embedding."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from elmo_zh.config import TextConfig
from elmo_zh.text.corpus import iter_lines
from elmo_zh.text.normalise import Normaliser, build_normaliser
from elmo_zh.text.segmenters import Segmenter, build_segmenter, split_tokens
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

    def sentences(self, line: str) -> list[list[str]]:
        """Return the tokens of each sentence of a raw line, leaving out sentences without any."""
        pieces = split_sentences(line) if self.split_at_sentence_ends else (line,)
        return [tokens for piece in pieces if (tokens := self.tokens(piece))]


def iter_file_sentences(path: Path, preparation: TextPreparation | None) -> Iterator[list[str]]:
    """Yield the tokens of each sentence of a file, leaving out sentences without any.

    Args:
        path: UTF-8, plain or compressed.
        preparation: Of raw text; None for segmented text, one sentence a line, tokens split at U+0020.
    """
    for line in iter_lines(path):
        yield from preparation.sentences(line) if preparation else filter(None, [split_tokens(line)])
