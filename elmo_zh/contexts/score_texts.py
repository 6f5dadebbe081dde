"""Score whole texts line by line; write a table or the best lines; compare minimal pairs."""

import codecs
import math
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from shutil import copyfile, copyfileobj
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from elmo_zh.contexts.line_scorer import LineScore, LineScorer
from elmo_zh.corpus.input_texts import InputText
from elmo_zh.corpus.names import is_archive_name
from elmo_zh.corpus.readers.formats import Record
from elmo_zh.corpus.readers.row_texts import parse_fields
from elmo_zh.corpus.sources import Stamp
from elmo_zh.errors import ConfigError, CorpusError
from elmo_zh.language import _
from elmo_zh.run.files import file_digest
from elmo_zh.run.job import Files, FinishedPart, Step, Work, run_job
from elmo_zh.run.reporter import Reporter, SilentReporter
from elmo_zh.run.tables import write_rows
from elmo_zh.scoring.exact import Figures, TextMeasure
from elmo_zh.text.windows import iter_windows
from elmo_zh.vocabulary.vocabulary import BoundedCounts

# Limits of a part, whose lines are scored together, so that an interruption loses little and memory stays bounded.
# Equal lines of a part are scored once.
PART_LINES = 2048
PART_CHARACTERS = 200_000
_PAIRS = 2000
_DIGITS = 6
_CHUNK_LINES = 2**18
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
    """A line of a text with its score; `difference`, in bits per character, is None without a second model."""

    text_number: int
    number: int
    score: LineScore
    difference: float | None = None


@dataclass(frozen=True)
class LineScores:
    """Scores the lines of a part with one or two models."""

    scorer: LineScorer
    other: LineScorer | None = None

    def __call__(self, part: list[TextLine], _: Files) -> list[Any]:
        """Return the scored lines as JSON values, from which `_load_scored` rebuilds them."""
        return [[*line[:2], line.score.as_record(), line.difference] for line in self.score(part)]

    def score(self, part: list[TextLine]) -> Iterator[ScoredLine]:
        """Yield the lines with their scores."""
        texts = [line.text for line in part]
        others: Sequence[LineScore | None] = self.other.score(texts) if self.other else [None] * len(texts)
        for line, score, other in zip(part, self.scorer.score(texts), others, strict=True):
            bits, other_bits = score.bits_per_character, other.bits_per_character if other else None
            difference = None if bits is None or other_bits is None else bits - other_bits
            yield ScoredLine(line.text_number, line.number, score, difference)


def _load_scored(part: FinishedPart) -> Iterator[ScoredLine]:
    for text_number, number, score, difference in part.value():
        yield ScoredLine(text_number, number, LineScore.of_record(score), difference)


def _iter_line_parts(
    texts: Iterable[InputText], reporter: Reporter, *, most_lines: int = PART_LINES
) -> Iterator[list[TextLine]]:
    """Yield the lines of all texts in parts."""
    lines = (
        TextLine(text_number, number, line)
        for text_number, text in enumerate(texts)
        for number, line in enumerate(text.lines_if_text(reporter))
    )
    return iter_windows(lines, lambda line: len(line.text), most_items=most_lines, most_size=PART_CHARACTERS)


def _iter_scored(
    scores: LineScores, texts: Iterable[InputText], reporter: Reporter, *, most_lines: int = PART_LINES
) -> Iterator[ScoredLine]:
    """Yield the scored lines of all texts; nothing is saved or distributed."""
    with reporter.progress("score", unit="lines") as progress:
        for part in _iter_line_parts(texts, reporter, most_lines=most_lines):
            yield from scores.score(part)
            progress.update(len(part))


@dataclass(kw_only=True)
class ScoreCounts:
    """Totals over texts, counted as in `LineScore`; an empty line has no tokens."""

    lines: int = 0
    empty_lines: int = 0
    sentences: int = 0
    tokens: int = 0
    unknown: int = 0
    characters: int = 0
    forward_nats: float = 0.0
    backward_nats: float = 0.0
    spelling_nats: float = 0.0
    cut_words: int = 0
    unknown_words: BoundedCounts[str] = field(default_factory=BoundedCounts)

    def add(self, score: LineScore) -> None:
        """Add the score of a line to the totals."""
        self.lines += 1
        self.empty_lines += not score.num_sentences
        self.sentences += score.num_sentences
        self.tokens += score.num_tokens
        self.unknown += score.num_unknown
        self.characters += score.num_characters
        self.forward_nats += score.forward_nats
        self.backward_nats += score.backward_nats
        self.spelling_nats += score.spelling_nats
        self.cut_words += score.num_cut
        self.unknown_words.add(score.unknown)

    def described(self) -> dict[str, float]:
        """Return the totals as JSON values."""
        names = (each.name for each in fields(self) if each.name not in ("cut_words", "unknown_words"))
        return {name: getattr(self, name) for name in names}

    def figures(self) -> Figures | None:
        """Return the figures that `evaluate` reports for the text; None if it has no sentences."""
        if not self.sentences:
            return None
        measure = TextMeasure(
            num_predictions=self.tokens + self.sentences,
            num_tokens=self.tokens,
            num_unknown=self.unknown,
            num_characters=self.characters,
            spelling_nats=self.spelling_nats,
        )
        return Figures.build(measure, self.forward_nats, self.backward_nats)


@dataclass(frozen=True, kw_only=True)
class KeepRule:
    """Selects the lines to keep: those with a figure below a limit, or the lowest share; ties go to earlier lines."""

    below: float | None = None
    share: float | None = None


@dataclass(frozen=True, kw_only=True)
class ScoreReport:
    """The totals over the texts and, if lines were selected, the number of lines kept."""

    counts: ScoreCounts
    kept: int | None = None


@dataclass(frozen=True, kw_only=True)
class ScoreJob:
    """Scores the lines of texts; writes a table of all lines, or the lines to keep as they are."""

    scorer: LineScorer
    texts: Sequence[InputText]
    output: Path = Path("scores")
    other: LineScorer | None = None  # the model to compare with
    kind: str = "tsv"  # or jsonl
    keep: KeepRule | None = None  # which lines to write instead of the table
    part_lines: int = PART_LINES

    may_replace = staticmethod(Path.is_file)
    valuable = ("score",)

    @property
    def inputs(self) -> list[Path]:
        """The texts and the models."""
        models = [scorer.bundle.path for scorer in (self.scorer, self.other) if scorer]
        return [*(text.source.path for text in self.texts), *models]

    @property
    def scores(self) -> LineScores:
        """The scores of a part's lines."""
        return LineScores(self.scorer, self.other)

    @cached_property
    def _stamps(self) -> list[Stamp]:
        return [Stamp.of(text.source) for text in self.texts]

    def made_from(self) -> dict[str, Any]:
        """Return everything that the scores depend on; how they are written may change until the end."""
        assert len(self._stamps) == len(self.texts)  # taken just before the digests
        texts = [
            {"name": text.name, "digest": file_digest(text.source.path), "reading": text.reading} for text in self.texts
        ]
        other = {"against_digest": self.other.bundle.digest} if self.other else {}
        reading = {**asdict(self.scorer.reading), "part_lines": self.part_lines}
        return {"texts": texts, "model_digest": self.scorer.bundle.digest, **reading, **other}

    def make(self, path: Path, work: Work) -> ScoreReport:
        """Score the lines and write the output."""
        counts = ScoreCounts()
        step = Step(name="score", compute=self.scores, unit="lines", size=len)
        parts = []
        for part in work.run(step, self._iter_parts(work.reporter)):
            for line in _load_scored(part):
                counts.add(line.score)
            parts.append(part)
        lines = chain.from_iterable(map(_load_scored, parts))
        with path.open("wb") as file:
            if self.keep is None:
                _write_scores(self, lines, file)
                return ScoreReport(counts=counts)
            kept = write_kept(lines, self.texts, self.keep, work.path / "keys", file)
            return ScoreReport(counts=counts, kept=kept)

    def _iter_parts(self, reporter: Reporter) -> Iterator[list[TextLine]]:
        yield from _iter_line_parts(self.texts, reporter, most_lines=self.part_lines)
        for text, stamp in zip(self.texts, self._stamps, strict=True):
            stamp.require(text.source)


def print_scores(job: ScoreJob, file: BinaryIO, reporter: Reporter) -> ScoreReport:
    """Write the same to a stream, line by line where all lines are written."""
    if job.keep is not None:
        with tempfile.TemporaryDirectory(prefix="elmo-zh-") as folder:
            job = replace(job, output=Path(folder) / "kept")
            report = run_job(job, force=False, reporter=reporter)
            with job.output.open("rb") as kept:
                copyfileobj(kept, file)
        return report
    counts = ScoreCounts()

    def iter_counted() -> Iterator[ScoredLine]:
        for line in _iter_scored(job.scores, job.texts, reporter, most_lines=job.part_lines):
            counts.add(line.score)
            yield line

    _write_scores(job, iter_counted(), file)
    return ScoreReport(counts=counts)


def evaluate_texts(
    scorer: LineScorer, texts: Sequence[InputText], *, stateful: bool = False, reporter: Reporter
) -> ScoreCounts:
    """Score texts and return the totals; if `stateful`, carry the state from sentence to sentence within each file."""
    counts = ScoreCounts()
    if stateful:
        with reporter.progress("evaluate", unit="lines") as progress:
            for score in chain.from_iterable(scorer.iter_stream(text.lines_if_text(reporter)) for text in texts):
                counts.add(score)
                progress.update(1)
    else:
        for line in _iter_scored(LineScores(scorer), texts, reporter):
            counts.add(line.score)
    if not counts.sentences:
        raise CorpusError(
            _("{value}: there is no sentence to score. Give a file with text.").format(
                value=", ".join(text.name for text in texts)
            )
        )
    return counts


def _write_scores(job: ScoreJob, lines: Iterable[ScoredLine], file: BinaryIO) -> None:
    names_files = len(job.texts) > 1 or any(is_archive_name(text.source.file_name) for text in job.texts)
    by_token = job.scorer.reading.by_token
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


def write_kept(
    lines: Iterable[ScoredLine], texts: Sequence[InputText], rule: KeepRule, scratch: Path, output: BinaryIO
) -> int:
    """Write the kept lines in order, and return their number.

    If all texts are plain, compressed or not, and share an encoding other than UTF-16 or UTF-32, lines are written byte
    for byte; else in UTF-8. Each line ends with LF, without byte order marks. `scratch` takes eight bytes per line, and
    a share needs a second file of this size.
    """
    num_scored = _write_keys(lines, scratch)
    if not scratch.stat().st_size:
        return 0
    limit, num_equal = _choose_limit(scratch, num_scored, rule)
    keys = np.memmap(scratch, np.float64, mode="r")
    num_kept = num_lines = 0
    for key, line in zip(keys, _iter_raw_lines(texts), strict=False):
        num_lines += 1
        if key < limit or (key == limit and num_equal > 0):
            num_equal -= key == limit
            num_kept += 1
            output.write(line)
    if num_lines != len(keys):
        raise CorpusError(_("A text changed while it was being read. Run the same command again, with --force."))
    return num_kept


def _write_keys(lines: Iterable[ScoredLine], path: Path) -> int:
    """Write the key of each line, float64, infinite for lines without tokens; return the number of other lines."""
    num_scored = 0
    with path.open("wb") as file:
        for line in lines:
            key = line.score.bits_per_character if line.difference is None else line.difference
            num_scored += key is not None
            file.write(np.float64(np.inf if key is None else key).tobytes())
    return num_scored


def _choose_limit(path: Path, num_scored: int, rule: KeepRule) -> tuple[float, int]:
    if rule.share is None:
        return rule.below or 0.0, 0
    num_kept = int(rule.share * num_scored + 0.5)
    if num_kept == 0:
        return -np.inf, 0
    # Partitioned on disk, so that memory does not grow with the lines.
    copied = copyfile(path, path.with_name("partitioned"))
    ordered = np.memmap(copied, np.float64, mode="r+")
    ordered.partition(num_kept - 1)
    limit = float(ordered[num_kept - 1])
    chunks = (ordered[start : min(start + _CHUNK_LINES, num_kept)] for start in range(0, num_kept, _CHUNK_LINES))
    return limit, num_kept - sum(int(np.count_nonzero(chunk < limit)) for chunk in chunks)


def _iter_raw_lines(texts: Sequence[InputText]) -> Iterator[bytes]:
    texts = [text for text in texts if text.tally.forms]  # the others have no lines
    encodings = {_encoding_of_bytes(text) for text in texts}
    for text in texts:
        if len(encodings) > 1 or "" in encodings:
            for line in text.lines_if_text(SilentReporter()):
                yield f"{line}\n".encode()
        else:
            with text.source.open() as file:
                for number, raw in enumerate(file):
                    unmarked = raw if number else raw.removeprefix(codecs.BOM_UTF8)
                    yield unmarked.removesuffix(b"\n") + b"\n"


def _encoding_of_bytes(text: InputText) -> str:
    """Return the encoding of a text if its bytes can be split into lines at LF, otherwise ""."""
    forms = list(text.tally.forms.elements())
    if len(forms) != 1 or is_archive_name(text.source.file_name):
        return ""
    kind, encoding, _ = forms[0]
    return encoding if kind == "text" and "\n".encode(encoding) == b"\n" else ""


# Minimal pairs: which of two sentences a model finds more probable, as in CLiMP and SLING


# How it is judged which sentence of a pair is better.
MEASURES_OF_PAIRS = ("right", "right_by_perplexity", "right_by_slln_lp")


@dataclass(frozen=True)
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
    if len(names) not in (2, 3) or len(set(names)) < len(names):
        text = _("--pairs {given!r}; expected FIRST,SECOND or FIRST,SECOND,KIND, each a column of its own.")
        raise ConfigError(text.format(given=given))
    return names


def iter_pair_scores(
    scorer: LineScorer, texts: Sequence[InputText], names: Sequence[str], reporter: Reporter
) -> Iterator[PairScore]:
    """Yield the score of each record, a pair of sentences in the columns `names`; the first is the record's text."""
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
    own = record.columns.get(name, record.columns.get(f"column {name}"))
    if own is None:
        source, line = text.place(number)
        raise CorpusError(
            _(
                "{source}: record {line} has no column {name}. Columns other than the first sentence:"
                " {value}. Correct the record, or the column names: --pairs FIRST,SECOND"
            ).format(source=source, line=line + 1, name=name, value=", ".join(record.columns) or "none")
        )
    return own


def accuracies(scores: Sequence[PairScore]) -> dict[str, dict[str, int]]:
    """Count the pairs and the correct judgements in each group; groups are in order of first appearance."""
    groups: dict[str, dict[str, int]] = {}
    for score in scores:
        counts = groups.setdefault(score.group, {"pairs": 0, **dict.fromkeys(MEASURES_OF_PAIRS, 0)})
        counts["pairs"] += 1
        for name in MEASURES_OF_PAIRS:
            counts[name] += getattr(score, f"is_{name}")
    return groups
