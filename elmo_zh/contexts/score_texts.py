"""Score whole texts line by line: as a table, or the lines that score best."""

import json
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

from elmo_zh.contexts.keep import KeepRule, write_kept
from elmo_zh.contexts.line_scorer import LineScorer
from elmo_zh.contexts.score_lines import LineScoring, ScoredLine, iter_finished_lines
from elmo_zh.corpus.input_texts import InputText
from elmo_zh.corpus.names import is_archive_name
from elmo_zh.engine.engine import Engine, ThisProcess
from elmo_zh.run.files import atomic_path, claimed_output, file_digest
from elmo_zh.run.reporter import Reporter
from elmo_zh.run.work_folder import WorkFolder
from elmo_zh.scoring.exact import Figures, TextMeasure

_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
_DIGITS = 6


@dataclass(kw_only=True)
class ScoreCounts:
    """Totals of a text, counted as in `LineScore`; an empty line has no token."""

    lines: int = 0
    empty_lines: int = 0
    sentences: int = 0
    tokens: int = 0
    unknown: int = 0
    characters: int = 0
    forward_nats: float = 0.0
    backward_nats: float = 0.0
    spelling_nats: float = 0.0

    def add(self, lines: Iterable[ScoredLine]) -> None:
        """Add lines."""
        for score in (line.score for line in lines):
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
    """The texts to score, and the form of the output."""

    scorer: LineScorer
    texts: Sequence[InputText]
    other: LineScorer | None = None  # the model to compare with
    kind: str = "tsv"  # or jsonl
    keep: KeepRule | None = None  # which lines to write instead of the table

    def manifest(self) -> dict[str, Any]:
        """Return what the scores depend on."""
        texts = [
            {"name": text.name, "digest": file_digest(text.source.path), "reading": text.reading} for text in self.texts
        ]
        other = {"against_digest": self.other.bundle.digest} if self.other else {}
        return {"texts": texts, "model_digest": self.scorer.bundle.digest, **asdict(self.scorer.reading), **other}

    def rows(self) -> "ScoreRows":
        """Return the form of the table."""
        by_token, with_difference = self.scorer.reading.by_token, self.other is not None
        return ScoreRows(self.texts, kind=self.kind, by_token=by_token, with_difference=with_difference)


@dataclass(frozen=True, kw_only=True)
class ScoreReport:
    """The totals of the texts, and the number of lines that were kept, if lines were chosen."""

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
    """
    engine = engine or ThisProcess()
    if not isinstance(output, Path) and job.keep is None:
        rows, counts = job.rows(), ScoreCounts()
        output.write(rows.header().encode())
        for lines in LineScoring(job.scorer, job.other, None).iter_scored(job.texts, engine, reporter):
            counts.add(lines)
            output.write("".join(rows.of_lines(lines)).encode("utf-8", "surrogatepass"))
        return ScoreReport(counts=counts)
    with ExitStack() as stack:
        if isinstance(output, Path):
            models = [scorer.bundle.path for scorer in (job.scorer, job.other) if scorer]
            read = [*(text.source.path for text in job.texts), *models]
            stack.enter_context(claimed_output(output, read, Path.is_file, force=force))
            work = WorkFolder.of(output)
        else:
            work = WorkFolder(Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="elmo-zh-"))) / "parts")
        work.open(job.manifest(), force=force, refusal="an unfinished output of another text, model or settings")
        stack.callback(work.remove_unless, "part-*.json")
        report = _score_in_parts(job, work, output, engine, reporter)
        work.remove()
    return report


def _score_in_parts(
    job: ScoreJob, work: WorkFolder, output: Path | BinaryIO, engine: Engine, reporter: Reporter
) -> ScoreReport:
    counts = ScoreCounts()
    for lines in LineScoring(job.scorer, job.other, work).iter_scored(job.texts, engine, reporter):
        counts.add(lines)
    if not isinstance(output, Path):
        return ScoreReport(counts=counts, kept=_write(job, work, output))
    with atomic_path(output) as unfinished, unfinished.open("wb") as file:
        return ScoreReport(counts=counts, kept=_write(job, work, file))


def _write(job: ScoreJob, work: WorkFolder, file: BinaryIO) -> int | None:
    """Write the result from the finished parts; return the number of kept lines."""
    lines = iter_finished_lines(work)
    if job.keep is not None:
        return write_kept(lines, job.texts, job.keep, work.path / "ranks", file)
    rows = job.rows()
    file.write(rows.header().encode())
    for row in rows.of_lines(lines):
        file.write(row.encode("utf-8", "surrogatepass"))
    return None


class ScoreRows:
    """Turns scored lines into rows of a table (tsv) or of JSON lines (jsonl); `columns` names the values."""

    def __init__(self, texts: Sequence[InputText], *, kind: str, by_token: bool, with_difference: bool) -> None:
        """Choose the form; a row says which file its line is in if there are several texts, or an archive."""
        self._texts, self._is_table, self._by_token = texts, kind == "tsv", by_token
        self._with_difference = with_difference
        self._names_files = len(texts) > 1 or any(is_archive_name(text.source.file_name) for text in texts)
        place = ["file", "line"] if self._names_files else ["line"]
        if by_token:
            own = ["place", "start", "end", "token", "forward_nats", "backward_nats", "unknown"]
        else:
            own = ["tokens", "unknown", "characters", "forward_nats", "backward_nats", "bits_per_character"]
            own += ["perplexity", *(["difference"] if with_difference else [])]
        self.columns = [*place, *own]

    def header(self) -> str:
        """Return the first line of the file, "" if it has no header."""
        return "\t".join(self.columns) + "\n" if self._is_table else ""

    def of_lines(self, lines: Iterable[ScoredLine]) -> Iterator[str]:
        """Yield the rows of lines, each with its line end."""
        for line in lines:
            place = self._texts[line.text_number].place(line.number) if self._names_files else [line.number]
            for values in self._token_values(line) if self._by_token else [self._line_values(line)]:
                yield self._row([*place, *values])

    def _line_values(self, line: ScoredLine) -> list[Any]:
        score = line.score
        counts = [score.num_tokens, score.num_unknown, score.num_characters]
        figures = [score.forward_nats, score.backward_nats, score.bits_per_character, score.perplexity]
        return [*counts, *figures, *([line.difference] if self._with_difference else [])]

    @staticmethod
    def _token_values(line: ScoredLine) -> Iterator[list[Any]]:
        for place, token in enumerate(line.score.tokens or ()):
            costs = [token.forward_nats, token.backward_nats]
            yield [place, token.start, token.end, token.token, *costs, int(token.is_unknown)]

    def _row(self, values: Sequence[Any]) -> str:
        if self._is_table:
            return "\t".join(map(_cell, values)) + "\n"
        rounded = (round(value, _DIGITS) if isinstance(value, float) else value for value in values)
        return json.dumps(dict(zip(self.columns, rounded, strict=True)), ensure_ascii=False) + "\n"


def _cell(value: Any) -> str:
    """Return a value as a cell; it is empty for what an empty line lacks."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.{_DIGITS}f}"
    return str(value).translate(_ESCAPES)
