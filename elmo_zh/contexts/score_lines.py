"""Score all lines in texts, saving parts so that an interrupted command can resume, and score minimal pairs."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count, islice
from pathlib import Path
from typing import NamedTuple

from elmo_zh.contexts.line_scorer import LineScore, LineScorer
from elmo_zh.corpus.input_texts import InputText
from elmo_zh.corpus.readers.formats import Record
from elmo_zh.corpus.readers.record_texts import parse_fields
from elmo_zh.engine.engine import Engine, LoadedOnce
from elmo_zh.errors import ConfigError, CorpusError
from elmo_zh.run.files import atomic_path
from elmo_zh.run.reporter import Reporter, counted
from elmo_zh.run.work_folder import PartTask, Region, WorkFolder, part_name
from elmo_zh.text.windows import iter_windows

# Limits of a part, whose lines are scored together, so that an interruption loses little and memory stays bounded.
# Equal lines of a part are scored once.
PART_LINES = 2048
PART_CHARACTERS = 200_000
_PAIRS = 500


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


class LineScores:
    """Scores the lines of each part with one or two models, in this process or in workers."""

    def __init__(self, scorer: LineScorer, other: LineScorer | None) -> None:
        self._scorers = LoadedOnce(scorer, other)

    def compute(self, part: list[TextLine]) -> list[ScoredLine]:
        """Return the lines with their scores."""
        texts = [line.text for line in part]
        with self._scorers.used() as (scorer, other):
            scores = scorer.score(texts)
            compared = other.score(texts) if other else [None] * len(scores)
        return [
            ScoredLine(line.text_number, line.number, score, _difference(score, against))
            for line, score, against in zip(part, scores, compared, strict=True)
        ]

    def save(self, value: list[ScoredLine], path: Path) -> None:
        """Write scored lines as JSON."""
        records = [[*line[:2], line.score.as_record(), line.difference] for line in value]
        path.write_text(json.dumps(records), encoding="utf-8")

    def load(self, path: Path) -> list[ScoredLine]:
        """Read the scored lines that `save` wrote."""
        return [
            ScoredLine(text_number, number, LineScore.of_record(score), difference)
            for text_number, number, score, difference in json.loads(path.read_text(encoding="utf-8"))
        ]


def _difference(score: LineScore, other: LineScore | None) -> float | None:
    bits = [each.bits_per_character for each in (score, other) if each]
    return bits[0] - bits[1] if len(bits) == 2 and bits[0] is not None and bits[1] is not None else None


def iter_scored(
    scores: LineScores, texts: Iterable[InputText], work: WorkFolder | None, engine: Engine, reporter: Reporter
) -> Iterator[list[ScoredLine]]:
    """Yield the scored lines of all texts, part by part; without a work folder, nothing is saved or distributed."""
    lines = (
        TextLine(text_number, number, line)
        for text_number, text in enumerate(texts)
        for number, line in enumerate(text.lines_if_text(reporter))
    )
    windows = iter_windows(lines, lambda line: len(line.text), most_items=PART_LINES, most_size=PART_CHARACTERS)
    with reporter.progress("score", unit="lines") as progress:
        for part in _iter_parts(scores, windows, work, engine, reporter):
            progress.update(len(part))
            yield part


def _iter_parts(
    scores: LineScores,
    windows: Iterator[list[TextLine]],
    work: WorkFolder | None,
    engine: Engine,
    reporter: Reporter,
) -> Iterator[list[ScoredLine]]:
    if work is None:
        yield from map(scores.compute, windows)
        return
    num_finished = next(number for number in count() if work.figures(part_name(number), reporter) is None)
    for number, window in enumerate(islice(windows, num_finished)):
        part = scores.load(_path(work, number))
        if [line[:2] for line in part] != [line[:2] for line in window]:
            raise CorpusError("A text changed while it was being read. Run the same command again, with --force.")
        yield part
    tasks = (PartTask(f"computed-{number:08d}", window, number) for number, window in enumerate(windows, num_finished))
    for number, part in work.compute(engine, scores, tasks):
        with atomic_path(_path(work, number)) as unfinished:
            scores.save(part, unfinished)
        work.finish(part_name(number), files=[Region.whole(_path(work, number))])
        yield part


def iter_finished_lines(scores: LineScores, work: WorkFolder) -> Iterator[ScoredLine]:
    """Yield the scored lines of all parts in a work folder, in order."""
    return chain.from_iterable(scores.load(path) for path in sorted(work.path.glob("part-*.scores")))


def _path(work: WorkFolder, number: int) -> Path:
    return work.path / f"{part_name(number)}.scores"


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

    @property
    def is_right(self) -> bool:
        """Whether the first sentence is strictly more probable."""
        return self.first_nats < self.second_nats

    @property
    def is_right_by_perplexity(self) -> bool:
        """Whether the first sentence has the lower perplexity, the measure that SLING compares."""
        return self.first_perplexity < self.second_perplexity


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
    return {
        group: {"pairs": total, "right": right[group], "right_by_perplexity": by_perplexity[group]}
        for group, total in totals.items()
    }
