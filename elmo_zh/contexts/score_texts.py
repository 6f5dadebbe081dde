"""Score whole texts line by line: as a table, or the lines that score best."""

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO

from elmo_zh.contexts.keep import KeepRule, write_kept
from elmo_zh.contexts.line_score import LineScore, ScoredLine
from elmo_zh.contexts.line_scorer import LineScorer
from elmo_zh.contexts.score_cache import Known, ScoreCache
from elmo_zh.contexts.score_parts import ScoreParts
from elmo_zh.contexts.score_rows import ScoreRows
from elmo_zh.contexts.score_work import LineScores
from elmo_zh.corpus.input_texts import InputText
from elmo_zh.engine.engine import Engine, ThisProcess
from elmo_zh.errors import CorpusError
from elmo_zh.run.files import atomic_path, file_digest
from elmo_zh.run.in_order import PartTask, compute_in_order
from elmo_zh.run.reporter import Reporter
from elmo_zh.run.resumable import claimed_output
from elmo_zh.training.scoring import Figures, TextMeasure

# Lines that are scored together and make a part: little is lost by an interruption, and memory stays bounded.
PART_LINES = 2048
PART_CHARACTERS = 200_000


@dataclass(kw_only=True)
class ScoreCounts:
    """Totals of a text.

    Attributes:
        lines: Number of lines.
        empty_lines: Lines without a token.
        sentences: Number of sentences with a token.
        tokens: Number of tokens.
        unknown: Tokens outside the vocabulary.
        characters: Characters of the tokens, plus one for each sentence end.
        forward_nats: Cost under the forward LM.
        backward_nats: Cost under the backward LM.
        spelling_nats: Cost of spelling the unknown words.
    """

    lines: int = 0
    empty_lines: int = 0
    sentences: int = 0
    tokens: int = 0
    unknown: int = 0
    characters: int = 0
    forward_nats: float = 0.0
    backward_nats: float = 0.0
    spelling_nats: float = 0.0

    def add(self, score: LineScore) -> None:
        """Add a line."""
        self.lines += 1
        self.empty_lines += not score.num_sentences
        self.sentences += score.num_sentences
        self.tokens += score.num_tokens
        self.unknown += score.num_unknown
        self.characters += score.num_characters
        self.forward_nats += score.forward_nats
        self.backward_nats += score.backward_nats
        self.spelling_nats += score.spelling_nats

    def figures(self) -> Figures | None:
        """Return what `evaluate` gives for the text; None without a sentence."""
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
class ScoreJob:
    """The texts to score, and the form of the output.

    Attributes:
        scorer: The model, and how lines are read.
        texts: The texts.
        other: The model to compare with, if any.
        kind: tsv or jsonl, unless lines are kept.
        keep: Which lines to write instead of the table.
    """

    scorer: LineScorer
    texts: Sequence[InputText]
    other: LineScorer | None = None
    kind: str = "tsv"
    keep: KeepRule | None = None

    def manifest(self) -> dict[str, Any]:
        """Return what the scores depend on."""
        texts = [
            {"name": text.name, "digest": file_digest(text.source.path), "reading": text.reading} for text in self.texts
        ]
        other = {"against_digest": self.other.bundle.digest} if self.other else {}
        return {"texts": texts, "model_digest": self.scorer.bundle.digest, **asdict(self.scorer.reading), **other}

    def rows(self) -> ScoreRows:
        """Return the form of the table."""
        return ScoreRows(
            self.texts,
            kind=self.kind,
            by_token=self.scorer.reading.by_token,
            with_difference=self.other is not None,
        )


@dataclass(frozen=True, kw_only=True)
class ScoreReport:
    """The counts of a finished scoring.

    Attributes:
        counts: Totals of the texts.
        kept: Number of lines that were kept, if lines were chosen.
    """

    counts: ScoreCounts
    kept: int | None = None


def score_texts(
    job: ScoreJob,
    output: Path | BinaryIO,
    *,
    force: bool = False,
    reporter: Reporter,
    engine: Engine | None = None,
) -> ScoreReport:
    """Write the score of each line of texts, or the lines that are kept.

    Memory does not grow with the texts. A line that was met shortly before is not scored again.

    Args:
        job: What to score.
        output: A file, which appears when it is complete: an interrupted call resumes. Or a stream, which receives each
            row as soon as it is known.
        force: Replace an existing file, and do not resume an unfinished one.
        reporter: Receives notes and progress.
        engine: Runs the computation; default this process. Workers need a file as output.

    Raises:
        CorpusError: If a text cannot be read.
        OutputError: If the file exists, or an unfinished one belongs to other texts, another model or other settings.
    """
    counts, engine = ScoreCounts(), engine or ThisProcess()
    if not isinstance(output, Path) and job.keep is None:
        rows = job.rows()
        output.write(rows.header().encode())
        for lines in _Scoring(job, None, counts, reporter).iter_scored(engine):
            output.write("".join(rows.of_lines(lines)).encode("utf-8", "surrogatepass"))
        return ScoreReport(counts=counts)
    with ExitStack() as stack:
        if isinstance(output, Path):
            models = [scorer.bundle.path for scorer in (job.scorer, job.other) if scorer]
            read = [*(text.source.path for text in job.texts), *models]
            stack.enter_context(claimed_output(output, read, Path.is_file, force=force))
            parts = ScoreParts.of(output)
        else:
            parts = ScoreParts(Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="elmo-zh-"))) / "parts")
        parts.open(job.manifest(), force=force)
        if parts.remove_damaged():
            reporter.warn(f"Some scores in {parts.path} are damaged, so they are computed again.")
        stack.callback(parts.remove, if_empty=True)
        for _ in _Scoring(job, parts, counts, reporter).iter_scored(engine):
            pass
        if isinstance(output, Path):
            with atomic_path(output) as unfinished, unfinished.open("wb") as file:
                kept = _write(job, parts, file)
        else:
            kept = _write(job, parts, output)
        parts.remove()
    return ScoreReport(counts=counts, kept=kept)


def _write(job: ScoreJob, parts: ScoreParts, file: BinaryIO) -> int | None:
    """Write the result from the finished parts; return the number of kept lines."""
    if job.keep is not None:
        return write_kept(parts.iter_lines(), job.texts, job.keep, parts.path / "ranks", file)
    rows = job.rows()
    file.write(rows.header().encode())
    for row in rows.of_lines(parts.iter_lines()):
        file.write(row.encode("utf-8", "surrogatepass"))
    return None


@dataclass
class _Window:
    """Consecutive lines, each with the number of its text and its own number there."""

    lines: list[str] = field(default_factory=list)
    places: list[tuple[int, int]] = field(default_factory=list)
    num_characters: int = 0

    @property
    def is_full(self) -> bool:
        return len(self.lines) >= PART_LINES or self.num_characters >= PART_CHARACTERS

    def add(self, line: str, place: tuple[int, int]) -> None:
        self.lines.append(line)
        self.places.append(place)
        self.num_characters += len(line)

    def new_lines(self, planned: ScoreCache[None]) -> list[str]:
        """Return the lines that a cache does not know, each once."""
        new: list[str] = []

        def note(lines: list[str]) -> list[None]:
            new.extend(lines)
            return [None] * len(lines)

        planned.look_up(self.lines, note)
        return new

    def scored(self, cache: ScoreCache[Known], computed: list[Known]) -> list[ScoredLine]:
        """Return the lines with their scores, given those of the lines that the cache does not know."""
        return [
            ScoredLine(text_number=text_number, number=number, score=score, difference=difference)
            for (text_number, number), (score, difference) in zip(
                self.places, cache.look_up(self.lines, lambda _: computed), strict=True
            )
        ]

    def resume(self, cache: ScoreCache[Known], done: list[ScoredLine]) -> list[ScoredLine]:
        """Return the lines of a finished part, after giving their scores to the cache."""
        if [(line.text_number, line.number) for line in done] != self.places:
            raise CorpusError("A text has changed while it was read. Type the same command again, with --force.")
        known = {line: (each.score, each.difference) for line, each in zip(self.lines, done, strict=True)}
        cache.look_up(self.lines, lambda lines: [known[line] for line in lines])
        return done


class _Scoring:
    """The scoring of all texts in windows of consecutive lines, each of which becomes a part."""

    def __init__(self, job: ScoreJob, parts: ScoreParts | None, counts: ScoreCounts, reporter: Reporter) -> None:
        self._job, self._parts, self._counts, self._reporter = job, parts, counts, reporter
        by_token = job.scorer.reading.by_token
        # Which lines are new can be told ahead of their scores: so workers compute the windows that come next.
        self._planned: ScoreCache[None] = ScoreCache(by_token=by_token)
        self._cache: ScoreCache[Known] = ScoreCache(by_token=by_token)

    def iter_scored(self, engine: Engine) -> Iterator[list[ScoredLine]]:
        """Yield the lines of all texts, scored, a part at a time; add them to the counts.

        Finished parts are read, and fill the cache as they did when they were computed: so the lines of the others are
        computed in the same batches, and the same bits come out.
        """
        windows = enumerate(_iter_windows(self._job.texts, self._reporter))
        work = LineScores(self._job.scorer, self._job.other)
        with self._reporter.progress("score", unit="lines") as progress:
            for lines in chain(self._iter_finished(windows), self._iter_computed(engine, work, windows)):
                for line in lines:
                    self._counts.add(line.score)
                progress.update(len(lines))
                yield lines

    def _iter_finished(self, windows: Iterator[tuple[int, _Window]]) -> Iterator[list[ScoredLine]]:
        """Yield the finished parts, which are the first ones."""
        num_finished = self._parts.num_parts() if self._parts else 0
        for number, window in islice(windows, num_finished):
            assert self._parts is not None
            done = self._parts.load(number) or []
            self._job.scorer.add_counts(*self._parts.load_counts(number))
            window.new_lines(self._planned)
            yield window.resume(self._cache, done)

    def _iter_computed(
        self, engine: Engine, work: LineScores, windows: Iterator[tuple[int, _Window]]
    ) -> Iterator[list[ScoredLine]]:
        folder = self._parts.path if self._parts else None
        for (number, window), computed in compute_in_order(engine, work, self._iter_tasks(windows), folder):
            self._job.scorer.add_counts(computed.unknown_words, computed.num_cut)
            lines = window.scored(self._cache, computed.known)
            if self._parts:
                self._parts.save(number, lines, computed.unknown_words, computed.num_cut)
            yield lines

    def _iter_tasks(self, windows: Iterator[tuple[int, _Window]]) -> Iterator[PartTask[list[str], tuple[int, _Window]]]:
        for number, window in windows:
            lines = window.new_lines(self._planned)
            digest = blake2b("\n".join(lines).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
            yield PartTask(name=f"computed-{number:08d}-{digest}", task=lines, kept=(number, window))


def _iter_windows(texts: Iterable[InputText], reporter: Reporter) -> Iterator[_Window]:
    window = _Window()
    for text_number, text in enumerate(texts):
        for number, line in enumerate(text.lines_if_text(reporter)):
            window.add(line, (text_number, number))
            if window.is_full:
                yield window
                window = _Window()
    if window.lines:
        yield window
