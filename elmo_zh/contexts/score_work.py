"""The computation of the scores of lines, here or on workers."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from elmo_zh.contexts.line_score import LineScore
from elmo_zh.contexts.line_scorer import LineScorer
from elmo_zh.contexts.score_cache import Known
from elmo_zh.engine.loaded_once import LoadedOnce


@dataclass(frozen=True)
class ComputedScores:
    """Scores of lines.

    Attributes:
        known: The score of each line, and its difference from that of the other model.
        unknown_words: The unknown words of the lines, each with its count.
        num_cut: Number of words that are longer than the model reads.
    """

    known: list[Known]
    unknown_words: Counter[str]
    num_cut: int


class LineScores:
    """Scores lines, each given once."""

    def __init__(self, scorer: LineScorer, other: LineScorer | None) -> None:
        """Prepare the work.

        Args:
            scorer: The model.
            other: The model to compare with, if any.
        """
        self._scorers = LoadedOnce(scorer, other)

    def compute(self, lines: Sequence[str]) -> ComputedScores:
        """Return the scores of lines."""
        with self._scorers.used() as (scorer, other):
            scores = scorer.score_distinct(lines)
            differences: list[float | None] = [None] * len(scores)
            if other is not None:
                pairs = zip(scores, other.score_distinct(lines), strict=True)
                differences = [_difference(score, compared) for score, compared in pairs]
            unknown_words, num_cut = scorer.take_counts()
        return ComputedScores(list(zip(scores, differences, strict=True)), unknown_words, num_cut)

    def save(self, value: ComputedScores, path: Path) -> None:
        """Write scores as JSON."""
        known = [[score.as_record(), difference] for score, difference in value.known]
        path.write_text(json.dumps([known, value.unknown_words, value.num_cut]), encoding="utf-8")

    def load(self, path: Path) -> ComputedScores:
        """Read scores."""
        known, unknown_words, num_cut = json.loads(path.read_text(encoding="utf-8"))
        scores = [(LineScore.of_record(record), difference) for record, difference in known]
        return ComputedScores(scores, Counter(unknown_words), num_cut)


def _difference(score: LineScore, other: LineScore) -> float | None:
    own_bits, other_bits = score.bits_per_character, other.bits_per_character
    return None if own_bits is None or other_bits is None else own_bits - other_bits
