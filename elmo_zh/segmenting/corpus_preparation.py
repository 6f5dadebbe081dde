"""Cleaning and segmentation of a raw corpus line, with counts of everything that is changed or dropped."""

from dataclasses import dataclass
from pathlib import Path

from elmo_zh.config import TextConfig
from elmo_zh.corpus.cleaning.clean import CLEANING_STEPS, EMPTY, LineCleaner
from elmo_zh.corpus.cleaning.counts import LineCounts
from elmo_zh.text.preparation import TextPreparation

# All steps that may change a line, in the order in which they run.
STEPS = (*CLEANING_STEPS, "fold_fullwidth", "remove_control", "unicode_form", "script", "collapse_whitespace")


@dataclass(frozen=True)
class CorpusPreparation:
    """Turns raw corpus lines into segmented sentences: cleaning, then the same preparation that embedding applies."""

    cleaner: LineCleaner
    preparation: TextPreparation

    @classmethod
    def build(cls, config: TextConfig, user_dictionary: Path | None = None) -> "CorpusPreparation":
        """Return the preparation that the settings describe, with the run's copy of the user dictionary."""
        return cls(LineCleaner.build(config), TextPreparation.build(config, user_dictionary))

    def sentences(self, line: str, counts: LineCounts) -> list[list[str]]:
        """Return the tokens of each sentence of a raw line, none if it is dropped; count the line and its changes."""
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
