"""The scores of all lines of texts, in parts of consecutive lines, from which an interrupted command resumes."""

import json
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import chain, count, islice
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from elmo_zh.contexts.line_scorer import LineScore, LineScorer
from elmo_zh.corpus.input_texts import InputText
from elmo_zh.engine.engine import Engine
from elmo_zh.engine.loaded_once import LoadedOnce
from elmo_zh.errors import CorpusError
from elmo_zh.run.files import atomic_path
from elmo_zh.run.reporter import Reporter
from elmo_zh.run.work_folder import PartTask, Region, WorkFolder, part_name
from elmo_zh.text.windows import iter_windows

# Lines that are scored together and make a part: little is lost by an interruption, and memory stays bounded.
PART_LINES = 2048
PART_CHARACTERS = 200_000
# Lines whose scores are remembered; with scores of tokens, each character counts as one more.
MAX_WEIGHT = 200_000

# A score, and the difference from that under the other model.
Known = tuple[LineScore, float | None]
Value = TypeVar("Value")


class ScoredLine(NamedTuple):
    """A line of a text with its score; both numbers count from 0.

    `difference` is bits per character under this model minus those under the other one; None without another model, and
    for an empty line.
    """

    text_number: int
    number: int
    score: LineScore
    difference: float | None = None


class ScoreCache(Generic[Value]):
    """A cache of the scores of the lines that were used last, by content, in bounded memory.

    Which lines it knows depends on the lines alone, in their order. So it is the same in a run that resumes, and can be
    told before their scores are computed.
    """

    def __init__(self, max_weight: int = MAX_WEIGHT, *, by_token: bool = False) -> None:
        self._values: OrderedDict[bytes, tuple[Value, int]] = OrderedDict()
        self._max_weight, self._weight, self._by_token = max_weight, 0, by_token

    def look_up(self, lines: Sequence[str], compute: Callable[[list[str]], Sequence[Value]]) -> list[Value]:
        """Return the value of each line; `compute` returns the values of unknown lines, each given once."""
        keys = [blake2b(line.encode("utf-8", "surrogatepass"), digest_size=16).digest() for line in lines]
        missing = {key: line for key, line in zip(keys, lines, strict=True) if key not in self._values}
        new = dict(zip(missing, compute(list(missing.values())) if missing else [], strict=True))
        found = [new[key] if key in new else self._values[key][0] for key in keys]
        for key, line, value in zip(keys, lines, found, strict=True):
            self._keep(key, value, 1 + len(line) * self._by_token)
        return found

    def _keep(self, key: bytes, value: Value, weight: int) -> None:
        if key not in self._values:
            self._weight += weight
        self._values[key] = value, weight
        self._values.move_to_end(key)
        while self._weight > self._max_weight and len(self._values) > 1:
            _, (_, dropped) = self._values.popitem(last=False)
            self._weight -= dropped


class ComputedScores(NamedTuple):
    """Scores of lines, and what was met on the way: unknown words with their counts, and words that were cut."""

    known: list[Known]
    unknown_words: Counter[str]
    num_cut: int


class LineScores:
    """Scores lines, each given once, with one model or with two, here or on workers."""

    def __init__(self, scorer: LineScorer, other: LineScorer | None) -> None:
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


class _Window(NamedTuple):
    """Consecutive lines, each with the number of its text and its own number there."""

    lines: list[str]
    places: list[tuple[int, int]]

    def new_lines(self, planned: ScoreCache[None]) -> list[str]:
        """Return the lines that a cache does not know, each once."""
        new: list[str] = []

        def note(lines: list[str]) -> list[None]:
            new.extend(lines)
            return [None] * len(lines)

        planned.look_up(self.lines, note)
        return new

    def scored(self, cache: ScoreCache[Known], computed: list[Known]) -> list[ScoredLine]:
        """Return the lines with their scores, given the scores of the lines that the cache lacks."""
        known = cache.look_up(self.lines, lambda _: computed)
        return [ScoredLine(*place, *found) for place, found in zip(self.places, known, strict=True)]

    def resume(self, cache: ScoreCache[Known], done: list[ScoredLine]) -> list[ScoredLine]:
        """Return the lines of a finished part, after giving their scores to the cache."""
        if [(line.text_number, line.number) for line in done] != self.places:
            raise CorpusError("A text has changed while it was read. Type the same command again, with --force.")
        known = {line: (each.score, each.difference) for line, each in zip(self.lines, done, strict=True)}
        cache.look_up(self.lines, lambda lines: [known[line] for line in lines])
        return done


def _iter_windows(texts: Iterable[InputText], reporter: Reporter) -> Iterator[_Window]:
    numbered = (
        (line, (text_number, number))
        for text_number, text in enumerate(texts)
        for number, line in enumerate(text.lines_if_text(reporter))
    )
    for window in iter_windows(numbered, lambda each: len(each[0]), most_items=PART_LINES, most_size=PART_CHARACTERS):
        lines, places = zip(*window, strict=True)
        yield _Window([*lines], [*places])


class LineScoring:
    """The scoring of texts in windows of consecutive lines, each of which becomes a part of a work folder."""

    def __init__(self, scorer: LineScorer, other: LineScorer | None, work: WorkFolder | None) -> None:
        """Prepare the scoring; without a work folder nothing is kept, and all is computed in this process."""
        self._scorer, self._other, self._work = scorer, other, work
        # Which lines are new can be told ahead of their scores: so workers compute the windows that come next.
        self._planned: ScoreCache[None] = ScoreCache(by_token=scorer.reading.by_token)
        self._cache: ScoreCache[Known] = ScoreCache(by_token=scorer.reading.by_token)

    def iter_scored(self, texts: Iterable[InputText], engine: Engine, reporter: Reporter) -> Iterator[list[ScoredLine]]:
        """Yield the lines of all texts, scored, a part at a time.

        Finished parts are read, and fill the cache as they did when they were computed: so the lines of the others are
        computed in the same batches, and the same bits come out.
        """
        windows = enumerate(_iter_windows(texts, reporter))
        with reporter.progress("score", unit="lines") as progress:
            for lines in chain(self._iter_finished(windows, reporter), self._iter_computed(engine, windows)):
                progress.update(len(lines))
                yield lines

    def _iter_finished(self, windows: Iterator[tuple[int, _Window]], reporter: Reporter) -> Iterator[list[ScoredLine]]:
        """Yield the finished parts, which are the first ones."""
        if (work := self._work) is None:
            return
        num_finished = next(number for number in count() if work.figures(part_name(number), reporter) is None)
        for number, window in islice(windows, num_finished):
            figures = work.whole_figures(part_name(number)) or {}
            self._scorer.add_counts(figures["unknown_words"], figures["num_cut"])
            window.new_lines(self._planned)
            yield window.resume(self._cache, list(_read_part(_part(work, number))))

    def _iter_computed(self, engine: Engine, windows: Iterator[tuple[int, _Window]]) -> Iterator[list[ScoredLine]]:
        scores, tasks = LineScores(self._scorer, self._other), self._iter_tasks(windows)
        if self._work:
            computed = self._work.compute(engine, scores, tasks)
        else:
            computed = ((each.kept, scores.compute(each.task)) for each in tasks)
        for (number, window), found in computed:
            self._scorer.add_counts(found.unknown_words, found.num_cut)
            lines = window.scored(self._cache, found.known)
            if self._work:
                self._finish_part(self._work, number, lines, found)
            yield lines

    def _iter_tasks(self, windows: Iterator[tuple[int, _Window]]) -> Iterator[PartTask[list[str], tuple[int, _Window]]]:
        for number, window in windows:
            lines = window.new_lines(self._planned)
            digest = blake2b("\n".join(lines).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
            yield PartTask(name=f"computed-{number:08d}-{digest}", task=lines, kept=(number, window))

    @staticmethod
    def _finish_part(work: WorkFolder, number: int, lines: Sequence[ScoredLine], found: ComputedScores) -> None:
        with atomic_path(_part(work, number)) as unfinished, unfinished.open("w", encoding="utf-8") as file:
            for line in lines:
                record = [line.text_number, line.number, line.difference, line.score.as_record()]
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
        figures = {"unknown_words": dict(found.unknown_words), "num_cut": found.num_cut}
        work.finish(part_name(number), figures, [Region.whole(_part(work, number))])


def iter_finished_lines(work: WorkFolder) -> Iterator[ScoredLine]:
    """Yield the lines of all parts of a work folder in order."""
    for path in sorted(work.path.glob("part-*.jsonl")):
        yield from _read_part(path)


def _part(work: WorkFolder, number: int) -> Path:
    return work.path / f"{part_name(number)}.jsonl"


def _read_part(path: Path) -> Iterator[ScoredLine]:
    with path.open(encoding="utf-8", newline="\n") as file:
        for record in file:
            text_number, number, difference, score = json.loads(record)
            yield ScoredLine(text_number, number, LineScore.of_record(score), difference)
