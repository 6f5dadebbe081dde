"""Score whole texts line by line; write a table or the best lines; compare minimal pairs."""

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain, compress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from msgspec import convert, to_builtins
from numpy.typing import NDArray

from elmo_zh.contexts.line_scorer import LineScore, LineScorer
from elmo_zh.corpus.content import is_archive_name, too_long
from elmo_zh.corpus.encodings import LONGEST_EXACT_LINE
from elmo_zh.corpus.input_texts import InputText
from elmo_zh.corpus.readers.formats import Record
from elmo_zh.corpus.readers.row_texts import parse_fields
from elmo_zh.errors import ConfigError, CorpusError
from elmo_zh.language import _
from elmo_zh.run.job import Files, Step, Work
from elmo_zh.run.reporter import Reporter, SilentReporter, first_ten
from elmo_zh.run.tables import write_rows
from elmo_zh.scoring import TextCost
from elmo_zh.text.sentences import iter_windows
from elmo_zh.vocabulary.vocabulary import BoundedCounts

# Limits of a part, whose lines are scored together, so that an interruption loses little and memory stays bounded.
# Equal lines of a part are scored once.
PART_LINES = 2048
PART_CHARACTERS = 200_000
_PAIRS = 2000
_DIGITS = 6
# The columns of a token or of a line, after its place.
_TOKEN_COLUMNS = ("place", "start", "end", "token", "forward_nats", "backward_nats", "unknown")
_LINE_COLUMNS = (
    "tokens", "unknown", "characters", "forward_nats", "backward_nats", "bits_per_character", "perplexity",
)  # fmt: skip


class TextLine(NamedTuple):
    """A line to score, with the number of its text and its number in that text."""

    text_number: int
    number: int
    text: str


class ScoredLine(NamedTuple):
    """A line of a text with its score."""

    text_number: int
    number: int
    score: LineScore
    difference: float | None = None  # in bits per character; None without a second model or for an empty line


@dataclass(frozen=True)
class LineScores:
    """Scores the lines of a part with one or two models."""

    scorer: LineScorer
    other: LineScorer | None = None

    def __call__(self, part: list[TextLine], _: Files) -> Any:
        """Return the lines with their scores as JSON values, from which `convert` rebuilds them."""
        return to_builtins(self.score(part))

    def score(self, part: list[TextLine]) -> list[ScoredLine]:
        """Return the lines with their scores."""
        texts = [line.text for line in part]
        others: Sequence[LineScore | None] = self.other.score(texts) if self.other else [None] * len(texts)
        scored = []
        for line, score, other in zip(part, self.scorer.score(texts), others, strict=True):
            bits, other_bits = score.bits_per_character, other.bits_per_character if other else None
            difference = None if bits is None or other_bits is None else bits - other_bits
            scored.append(ScoredLine(line.text_number, line.number, score, difference))
        return scored


def _iter_lines(text: InputText, reporter: Reporter) -> Iterator[str]:
    """Yield the lines of a text; raise CorpusError for one that is too long to score, as a cell of a table may be."""
    for number, line in enumerate(text.lines_if_text(reporter)):
        if len(line) > LONGEST_EXACT_LINE:
            name, line_number = text.place(number)
            place = _("line {number}").format(number=line_number + 1)
            raise too_long(f"{name}: {place}", LONGEST_EXACT_LINE)
        yield line


def _iter_line_parts(
    texts: Iterable[InputText], reporter: Reporter, *, most_lines: int = PART_LINES
) -> Iterator[list[TextLine]]:
    """Yield the lines of all texts in parts."""
    lines = (
        TextLine(text_number, number, line)
        for text_number, text in enumerate(texts)
        for number, line in enumerate(_iter_lines(text, reporter))
    )
    return iter_windows(lines, lambda line: len(line.text), most_items=most_lines, most_size=PART_CHARACTERS)


def _iter_scored(scores: LineScores, texts: Iterable[InputText], reporter: Reporter) -> Iterator[ScoredLine]:
    """Yield the scored lines of all texts; nothing is saved or distributed."""
    with reporter.progress("score", unit="lines") as progress:
        for part in _iter_line_parts(texts, reporter):
            yield from scores.score(part)
            progress.update(len(part))


@dataclass(kw_only=True)
class ScoreCounts:
    """Totals over texts; an empty line has no tokens."""

    lines: int = 0
    empty_lines: int = 0
    cost: TextCost = field(default_factory=TextCost)
    cut_words: int = 0
    unknown_words: BoundedCounts[str] = field(default_factory=BoundedCounts)
    kept: int | None = None  # the number of lines kept, if lines were selected

    def add(self, score: LineScore) -> None:
        """Add the score of a line to the totals."""
        self.lines += 1
        self.empty_lines += not score.num_sentences
        self.cost += score
        self.cut_words += score.num_cut
        self.unknown_words.add(score.unknown)

    def counted(self, lines: Iterable[ScoredLine]) -> Iterator[ScoredLine]:
        """Add the lines to the totals while passing them on."""
        for line in lines:
            self.add(line.score)
            yield line

    def described(self) -> dict[str, float]:
        """Return the number of lines and the total cost as JSON values."""
        totals = {name.removeprefix("num_"): total for name, total in asdict(self.cost).items()}
        return {"lines": self.lines, "empty_lines": self.empty_lines, **totals}


def lowest_share(figures: NDArray[np.float64], share: float) -> NDArray[np.bool_]:
    """Return which figures are in the lowest `share`, bool, shape (n,); ties go to earlier ones, NaN is ignored."""
    is_kept = np.zeros(len(figures), np.bool_)
    num_kept = int(share * np.count_nonzero(~np.isnan(figures)) + 0.5)
    is_kept[np.argsort(figures, kind="stable")[:num_kept]] = True  # NaN comes last
    return is_kept


@dataclass(frozen=True, kw_only=True)
class ScoreJob:
    """Scores the lines of texts; writes a table of lines or tokens, or copies the lines to keep."""

    scorer: LineScorer
    texts: Sequence[InputText]
    output: Path = Path("scores")
    other: LineScorer | None = None  # the model to compare with
    kind: str = "tsv"  # or jsonl
    keep_below: float | None = None  # write the lines with a figure below this, instead of the table
    keep_share: float | None = None  # or this share of the lines, those with the lowest figures
    part_lines: int = PART_LINES

    may_replace = staticmethod(Path.is_file)
    valuable = ("score",)

    @property
    def inputs(self) -> list[Path]:
        """The texts and the models."""
        models = [scorer.bundle.path for scorer in (self.scorer, self.other) if scorer]
        return [*(text.source.path for text in self.texts), *models]

    def made_from(self) -> dict[str, Any]:
        """Return everything that the scores depend on.

        The format of the output and the choice of lines to keep may change before an interrupted job resumes.
        """
        texts = [text.described() for text in self.texts]
        other = {"against_digest": self.other.bundle.digest} if self.other else {}
        reading = {**self.scorer.reading, "part_lines": self.part_lines}
        return {"texts": texts, "model_digest": self.scorer.bundle.digest, **reading, **other}

    def make(self, path: Path, work: Work) -> ScoreCounts:
        """Score the lines and write the output; return the totals."""
        step = Step(name="score", compute=LineScores(self.scorer, self.other), unit="lines", size=len)
        parts = work.run(step, _iter_line_parts(self.texts, work.reporter, most_lines=self.part_lines))
        with path.open("wb") as file:
            return self.write(chain.from_iterable(convert(part.value(), list[ScoredLine]) for part in parts), file)

    def print(self, file: BinaryIO, reporter: Reporter) -> ScoreCounts:
        """Write to a stream what `make` writes to a file; no scores are saved, so this cannot be resumed."""
        return self.write(_iter_scored(LineScores(self.scorer, self.other), self.texts, reporter), file)

    def write(self, lines: Iterable[ScoredLine], file: BinaryIO) -> ScoreCounts:
        """Write the table, line by line, or the lines to keep; return the totals."""
        counts = ScoreCounts()
        if self.keep_below is None and self.keep_share is None:
            _write_scores(self, counts.counted(lines), file)
            return counts
        figures = np.frombuffer(array("d", map(_figure, counts.counted(lines))))
        share, below = self.keep_share, self.keep_below or 0.0
        is_kept = figures < below if share is None else lowest_share(figures, share)
        again = chain.from_iterable(text.lines_if_text(SilentReporter()) for text in self.texts)
        file.writelines(f"{line}\n".encode() for line in compress(again, is_kept.tolist()))
        counts.kept = int(is_kept.sum())
        return counts


def _figure(line: ScoredLine) -> float:
    """Return the figure by which lines are selected; NaN for a line without tokens."""
    figure = line.score.bits_per_character if line.difference is None else line.difference
    return math.nan if figure is None else figure


def evaluate_texts(
    scorer: LineScorer, texts: Sequence[InputText], *, stateful: bool = False, reporter: Reporter
) -> ScoreCounts:
    """Score texts and return the totals; if `stateful`, carry the state from sentence to sentence within a source."""
    counts = ScoreCounts()
    if stateful:
        with reporter.progress("evaluate", unit="lines") as progress:
            for score in chain.from_iterable(scorer.iter_stream(_iter_lines(text, reporter)) for text in texts):
                counts.add(score)
                progress.update(1)
    else:
        for line in _iter_scored(LineScores(scorer), texts, reporter):
            counts.add(line.score)
    if not counts.cost.num_sentences:
        raise CorpusError.no_text(first_ten([text.name for text in texts]))
    return counts


def _write_scores(job: ScoreJob, lines: Iterable[ScoredLine], file: BinaryIO) -> None:
    names_files = len(job.texts) > 1 or any(is_archive_name(text.source.file_name) for text in job.texts)
    by_token = job.scorer.by_token
    columns = [*(["file"] if names_files else []), "line", *(_TOKEN_COLUMNS if by_token else _LINE_COLUMNS)]
    if job.other and not by_token:
        columns.append("difference")

    def rows() -> Iterator[dict[str, Any]]:
        for line in lines:
            place = job.texts[line.text_number].place(line.number) if names_files else [line.number]
            for values in _token_values(line) if by_token else [_line_values(line)]:
                # The difference comes last, and is left out where there is no other model.
                yield dict(zip(columns, [*place, *values], strict=False))

    write_rows(rows(), file, job.kind, columns, _fixed if job.kind == "tsv" else _rounded)


def _line_values(line: ScoredLine) -> list[Any]:
    score = line.score
    figures = [score.forward_nats, score.backward_nats, score.bits_per_character, score.perplexity, line.difference]
    return [score.num_tokens, score.num_unknown, score.num_characters, *figures]


def _token_values(line: ScoredLine) -> Iterator[list[Any]]:
    for place, token in enumerate(line.score.tokens or ()):
        costs = [token.forward_nats, token.backward_nats]
        yield [place, token.start, token.end, token.token, *costs, int(token.is_unknown)]


def _rounded(value: Any) -> Any:
    return round(value, _DIGITS) if isinstance(value, float) else value


def _fixed(value: Any) -> Any:
    if isinstance(value, float):
        return f"{value:.{_DIGITS}f}"
    return "" if value is None else value


# Minimal pairs: which of two sentences a model finds more probable, as in CLiMP and SLING


class PairScore(NamedTuple):
    """A pair of sentences with its figures.

    Costs in nats are the mean of both directions, plus the spelling of unknown words.
    """

    first: str  # the sentence that should be more probable
    second: str
    group: str  # the kind of pair, such as a grammatical phenomenon; empty if pairs have no kinds
    first_nats: float
    second_nats: float
    first_perplexity: float  # per prediction; ignores the spelling of unknown words
    second_perplexity: float
    first_slln_lp: float  # as in LineScore
    second_slln_lp: float

    def judgements(self) -> dict[str, bool]:
        """Return whether the first sentence is better: by probability, by perplexity (SLING), by SLLN-LP (ZhoBLiMP)."""
        return {
            "right": self.first_nats < self.second_nats,
            "right_by_perplexity": self.first_perplexity < self.second_perplexity,
            "right_by_slln_lp": self.first_slln_lp > self.second_slln_lp,
        }


def parse_pair_columns(given: str) -> tuple[str, ...]:
    """Return the columns named in FIRST,SECOND or FIRST,SECOND,KIND, as names or numbers from 1."""
    names = parse_fields(given)
    if len(names) not in (2, 3) or len(set(names)) < len(names):
        raise ConfigError.unexpected(f"--pairs {given!r}", "FIRST,SECOND[,KIND]")
    return names


def iter_pair_scores(
    scorer: LineScorer, texts: Sequence[InputText], names: Sequence[str], reporter: Reporter
) -> Iterator[PairScore]:
    """Yield the scores of each record's pair: its text and the column `names[1]`; `names[2]`, if given, is the kind."""
    pairs = chain.from_iterable(_iter_pairs(text, names, reporter) for text in texts)
    with reporter.progress("pairs", unit="pairs") as progress:
        for window in iter_windows(pairs, len, most_items=_PAIRS, most_size=3 * _PAIRS):
            scores = scorer.score([sentence for first, second, _ in window for sentence in (first, second)])
            for pair, *both in zip(window, scores[::2], scores[1::2], strict=True):
                figures = (
                    (score.mean_nats + score.spelling_nats, score.perplexity or math.inf, score.slln_lp or -math.inf)
                    for score in both
                )
                yield PairScore(*pair, *chain.from_iterable(zip(*figures, strict=True)))
            progress.update(len(window))


def _iter_pairs(text: InputText, names: Sequence[str], reporter: Reporter) -> Iterator[tuple[str, str, str]]:
    for number, record in enumerate(text.records_if_text(reporter)):
        second, *group = (_cell(record, name, text, number) for name in names[1:])
        if not record.line.strip() or not second.strip():
            source, line = text.place(number)
            raise CorpusError(
                _("{source}: record {line} needs two sentences. Complete or remove the record.").format(
                    source=source, line=line + 1
                )
            )
        yield record.line, second, "".join(group)


def _cell(record: Record, name: str, text: InputText, number: int) -> str:
    cell = record.columns.get(name, record.columns.get(f"column {name}"))
    if cell is None:
        source, line = text.place(number)
        others = first_ten([other.removeprefix("column ") for other in record.columns])
        raise CorpusError(
            _(
                "{source}: record {line} has no column or field {name}; besides the first sentence it has: {value}."
                " Correct the record or the names in --pairs."
            ).format(source=source, line=line + 1, name=name, value=others or "-")
        )
    return cell


def accuracies(scores: Sequence[PairScore]) -> dict[str, Counter[str]]:
    """Count the pairs and the correct judgements in each group; groups are in order of first appearance."""
    groups: dict[str, Counter[str]] = {}
    for score in scores:
        groups.setdefault(score.group, Counter()).update({"pairs": 1, **score.judgements()})
    return groups
