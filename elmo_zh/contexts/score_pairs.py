"""Minimal pairs: which of two sentences a model finds more probable, as in CLiMP and SLING."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from elmo_zh.contexts.line_scorer import LineScorer
from elmo_zh.corpus.input_texts import InputText
from elmo_zh.corpus.readers.formats import Record
from elmo_zh.corpus.readers.record_texts import parse_fields
from elmo_zh.errors import ConfigError, CorpusError
from elmo_zh.run.reporter import Reporter, counted
from elmo_zh.text.windows import iter_windows

_PAIRS = 500


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

    @property
    def is_right(self) -> bool:
        """Whether the first sentence is strictly more probable."""
        return self.first_nats < self.second_nats

    @property
    def is_right_by_perplexity(self) -> bool:
        """Whether the first sentence has the lower perplexity, the measure that SLING compares."""
        return self.first_perplexity < self.second_perplexity


def parse_pair_columns(given: str) -> tuple[str, ...]:
    """Return the columns named in FIRST,SECOND or FIRST,SECOND,GROUP, as names or numbers from 1."""
    names = parse_fields(given)
    if len(names) not in (2, 3):
        raise ConfigError(
            f"--pairs {given!r} names {counted(len(names), 'column')}. Give FIRST,SECOND or FIRST,SECOND,GROUP."
        )
    return names


def iter_pair_scores(
    scorer: LineScorer, texts: Sequence[InputText], names: Sequence[str], reporter: Reporter
) -> Iterator[PairScore]:
    """Yield the score of each record in texts whose text field is the first of these columns."""
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
                )
            progress.update(len(window))


def _iter_pairs(text: InputText, names: Sequence[str], reporter: Reporter) -> Iterator[tuple[str, str, str]]:
    for number, record in enumerate(text.records_if_text(reporter)):
        second, *group = (_cell(record, name, text, number) for name in names[1:])
        if not record.line.strip() or not second.strip():
            source, line = text.place(number)
            raise CorpusError(f"{source}: record {line + 1} lacks a sentence. Complete or remove it.")
        yield record.line, second, "".join(group)


def _cell(record: Record, name: str, text: InputText, number: int) -> str:
    own = record.columns.get(name, record.columns.get(f"column {name}"))
    if own is None:
        source, line = text.place(number)
        raise CorpusError(
            f"{source}: record {line + 1} has no column {name} besides the first sentence; it has"
            f" {', '.join(record.columns) or 'none'}. Name the columns: --pairs FIRST,SECOND"
        )
    return own


def accuracies(scores: Sequence[PairScore]) -> dict[str, dict[str, int]]:
    """Return the number of pairs and of correct judgements in each group, in order of first appearance."""
    totals = Counter(each.group for each in scores)
    right = Counter(each.group for each in scores if each.is_right)
    by_perplexity = Counter(each.group for each in scores if each.is_right_by_perplexity)
    return {
        group: {"pairs": total, "right": right[group], "right_by_perplexity": by_perplexity[group]}
        for group, total in totals.items()
    }
