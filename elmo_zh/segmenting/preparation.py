"""From a raw line of a corpus to segmented sentences, with counts of all that was changed and dropped."""

from dataclasses import dataclass
from pathlib import Path

from elmo_zh.config import TextConfig
from elmo_zh.corpus.cleaning.clean import CLEANING_STEPS, EMPTY, LineCleaner
from elmo_zh.corpus.cleaning.counts import LineCounts
from elmo_zh.text.preparation import TextPreparation

# All that may change a line, in this order.
STEPS = (*CLEANING_STEPS, "fold_fullwidth", "remove_control", "unicode_form", "script", "collapse_whitespace")


@dataclass(frozen=True)
class CorpusPreparation:
    """What a corpus has done to its lines: they are cleaned, and then prepared as embedding prepares them."""

    cleaner: LineCleaner
    preparation: TextPreparation

    @classmethod
    def build(cls, config: TextConfig, user_dictionary: Path | None = None) -> "CorpusPreparation":
        """Return the preparation that the settings describe.

        Args:
            config: The text settings.
            user_dictionary: The run's copy of the user dictionary; the path in the settings is not used.

        Raises:
            ConfigError: If a package that the settings need is not installed.
            CorpusError: If ftfy is needed and not installed, or the user dictionary cannot be read.
        """
        return cls(LineCleaner.build(config), TextPreparation.build(config, user_dictionary))

    def sentences(self, line: str, counts: LineCounts) -> list[list[str]]:
        """Return the tokens of each sentence of a raw line; none where the line is dropped.

        Args:
            line: As it was read.
            counts: Takes the line, kept or dropped.
        """
        cleaned = self.cleaner.clean(line, counts)
        if cleaned is None:
            return []
        texts = self.preparation.sentence_texts(cleaned, counts.change)
        segment = self.preparation.segment
        sentences = [tokens for text in texts if (tokens := segment(text))]
        if sentences:
            counts.keep(line, sum(map(len, texts)))
        else:
            counts.drop(EMPTY, line)
        return sentences
