"""Score all lines in texts part by part, and score minimal pairs."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

from elmo_zh.contexts.line_scorer import LineScore, LineScorer
from elmo_zh.corpus.input_texts import InputText
from elmo_zh.corpus.readers.formats import Record
from elmo_zh.corpus.readers.record_texts import parse_fields
from elmo_zh.errors import ConfigError, CorpusError
from elmo_zh.run.job import Files, FinishedPart
from elmo_zh.run.reporter import Reporter, counted
from elmo_zh.text.windows import iter_windows

# Limits of a part, whose lines are scored together, so that an interruption loses little and memory stays bounded.
# Equal lines of a part are scored once.
PART_LINES = 2048
PART_CHARACTERS = 200_000
_PAIRS = 2000


class TextLine(NamedTuple):
    """A line to score, with the number of its text and its number in that text."""

    text_number: int
    number: int
    text: str


class ScoredLine(NamedTuple):
    """A line of a text with its score; `difference`, in bits per character, is None without a second model."""

    text_number: int
    number: int
    score: LineScore
    difference: float | None = None


@dataclass(frozen=True)
class LineScores:
    """Scores the lines of a part with one or two models."""

    scorer: LineScorer
    other: LineScorer | None

    def __call__(self, part: list[TextLine], _: Files) -> list[Any]:
        """Return the scored lines as JSON values, from which `load_scored` rebuilds them."""
        return [[*line[:2], line.score.as_record(), line.difference] for line in self.score(part)]

    def score(self, part: list[TextLine]) -> list[ScoredLine]:
        """Return the lines with their scores."""
        texts = [line.text for line in part]
        scores = self.scorer.score(texts)
        compared = self.other.score(texts) if self.other else [None] * len(scores)
        return [
            ScoredLine(line.text_number, line.number, score, _difference(score, against))
            for line, score, against in zip(part, scores, compared, strict=True)
        ]


def _difference(score: LineScore, other: LineScore | None) -> float | None:
    bits = [each.bits_per_character for each in (score, other) if each]
    return bits[0] - bits[1] if len(bits) == 2 and bits[0] is not None and bits[1] is not None else None


def load_scored(part: FinishedPart) -> Iterator[ScoredLine]:
    """Yield the scored lines of a finished part."""
    for text_number, number, score, difference in part.value():
        yield ScoredLine(text_number, number, LineScore.of_record(score), difference)


def iter_line_parts(
    texts: Iterable[InputText], reporter: Reporter, *, most_lines: int = PART_LINES
) -> Iterator[list[TextLine]]:
    """Yield the lines of all texts in parts."""
    lines = (
        TextLine(text_number, number, line)
        for text_number, text in enumerate(texts)
        for number, line in enumerate(text.lines_if_text(reporter))
    )
    return iter_windows(lines, lambda line: len(line.text), most_items=most_lines, most_size=PART_CHARACTERS)


def iter_scored(
    scores: LineScores, texts: Iterable[InputText], reporter: Reporter, *, most_lines: int = PART_LINES
) -> Iterator[ScoredLine]:
    """Yield the scored lines of all texts; nothing is saved or distributed."""
    with reporter.progress("score", unit="lines") as progress:
        for part in iter_line_parts(texts, reporter, most_lines=most_lines):
            yield from scores.score(part)
            progress.update(len(part))


# Minimal pairs: which of two sentences a model finds more probable, as in CLiMP and SLING


@dataclass(frozen=True, kw_only=True)
class PairScore:
    """The costs of two sentences in nats: the mean of both directions, plus the spelling of unknown words."""

    first: str  # the sentence that should be more probable
    second: str
    group: str  # the kind of pair, such as a grammatical phenomenon; empty if pairs have no kinds
    first_nats: float
    second_nats: float
    first_perplexity: float  # ignores length and the spelling of unknown words
    second_perplexity: float
    first_slln_lp: float  # as in LineScore
    second_slln_lp: float

    @property
    def is_right(self) -> bool:
        """Whether the first sentence is strictly more probable."""
        return self.first_nats < self.second_nats

    @property
    def is_right_by_perplexity(self) -> bool:
        """Whether the first sentence has the lower perplexity, the measure that SLING compares."""
        return self.first_perplexity < self.second_perplexity

    @property
    def is_right_by_slln_lp(self) -> bool:
        """Whether the first sentence has the higher SLLN-LP, the measure that ZhoBLiMP compares."""
        return self.first_slln_lp > self.second_slln_lp


def parse_pair_columns(given: str) -> tuple[str, ...]:
    """Return the columns named in FIRST,SECOND or FIRST,SECOND,KIND, as names or numbers from 1."""
    names = parse_fields(given)
    if len(names) not in (2, 3):
        raise ConfigError(
            f"--pairs {given!r} has {counted(len(names), 'column')}; expected FIRST,SECOND or FIRST,SECOND,KIND."
        )
    return names


def iter_pair_scores(
    scorer: LineScorer, texts: Sequence[InputText], names: Sequence[str], reporter: Reporter
) -> Iterator[PairScore]:
    """Yield the score of each record, a pair of sentences in the columns `names`; the first is the record's text."""
    pairs = chain.from_iterable(_iter_pairs(text, names, reporter) for text in texts)
    with reporter.progress("pairs", unit="pairs") as progress:
        for window in iter_windows(pairs, len, most_items=_PAIRS, most_size=3 * _PAIRS):
            scores = scorer.score([sentence for first, second, _ in window for sentence in (first, second)])
            for (first, second, group), own, other in zip(window, scores[::2], scores[1::2], strict=True):
                yield PairScore(
                    first=first,
                    second=second,
                    group=group,
                    first_nats=own.mean_nats + own.spelling_nats,
                    second_nats=other.mean_nats + other.spelling_nats,
                    first_perplexity=own.perplexity or math.inf,
                    second_perplexity=other.perplexity or math.inf,
                    first_slln_lp=own.slln_lp or -math.inf,
                    second_slln_lp=other.slln_lp or -math.inf,
                )
            progress.update(len(window))


def _iter_pairs(text: InputText, names: Sequence[str], reporter: Reporter) -> Iterator[tuple[str, str, str]]:
    for number, record in enumerate(text.records_if_text(reporter)):
        second, *group = (_cell(record, name, text, number) for name in names[1:])
        if not record.line.strip() or not second.strip():
            source, line = text.place(number)
            raise CorpusError(f"{source}: record {line + 1} needs two sentences. Complete or remove the record.")
        yield record.line, second, "".join(group)


def _cell(record: Record, name: str, text: InputText, number: int) -> str:
    own = record.columns.get(name, record.columns.get(f"column {name}"))
    if own is None:
        source, line = text.place(number)
        raise CorpusError(
            f"{source}: record {line + 1} has no column {name}. Columns other than the first sentence:"
            f" {', '.join(record.columns) or 'none'}. Correct the record, or the column names: --pairs FIRST,SECOND"
        )
    return own


def accuracies(scores: Sequence[PairScore]) -> dict[str, dict[str, int]]:
    """Count the pairs and the correct judgements in each group; groups are in order of first appearance."""
    totals = Counter(each.group for each in scores)
    right = Counter(each.group for each in scores if each.is_right)
    by_perplexity = Counter(each.group for each in scores if each.is_right_by_perplexity)
    by_slln_lp = Counter(each.group for each in scores if each.is_right_by_slln_lp)
    return {
        group: {
            "pairs": total,
            "right": right[group],
            "right_by_perplexity": by_perplexity[group],
            "right_by_slln_lp": by_slln_lp[group],
        }
        for group, total in totals.items()
    }
