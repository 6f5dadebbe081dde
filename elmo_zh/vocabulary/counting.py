"""Count the words in segmented files: one task per file, then a merge.

Counts are kept in runs: files of words and their counts, sorted so that files of any size can be merged in little
memory. A line of a run is a word, U+0020, which no word contains, and the count. Words are sorted by their UTF-8 bytes,
which is the order of their code points.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from heapq import merge
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from elmo_zh.corpus.text_files import iter_blocks
from elmo_zh.engine.engine import Engine
from elmo_zh.run.reporter import Reporter, counted
from elmo_zh.run.work_folder import Figures, PartWriter, WorkFolder

# Number of distinct words that are counted in memory, in a few megabytes, before they are written as a run.
MAX_WORDS = 30_000
# Number of runs that are merged at a time; each takes a few hundred kilobytes.
MAX_MERGED_RUNS = 16

_BUFFER_BYTES = 2**18

# A word in UTF-8 and its count.
CountedWord = tuple[bytes, int]


@dataclass(frozen=True, kw_only=True)
class WordCounts:
    """The word counts of a text, stored on disk."""

    num_sentences: int
    num_tokens: int
    runs: Sequence[Path]  # Runs that together hold each word's count; a word may be in several of them

    def iter_words(self) -> Iterator[CountedWord]:
        """Yield each word once with its count, sorted by the word's bytes."""
        return iter_merged(self.runs)


def count_words(files: Sequence[Path], engine: Engine, parts: WorkFolder, reporter: Reporter) -> WordCounts:
    """Count the words in segmented files, as runs in `parts`; runs that an interrupted command left are reused."""
    tasks = {f"count-{number:05d}": path.absolute() for number, path in enumerate(files)}
    if num_counted := parts.num_finished(tasks):
        reporter.note(f"Resuming: {num_counted:,} of {counted(len(tasks), 'file')} are already counted.")
    num_sentences = num_tokens = 0
    runs: dict[str, list[str]] = {}
    with reporter.progress("vocab", unit="tokens") as progress:
        for name, figures in parts.run(engine, _count_file, tasks):
            num_sentences += figures["sentences"]
            num_tokens += figures["tokens"]
            runs[name] = figures["runs"]
            progress.update(figures["tokens"])
    in_order = [parts.path / run for name in tasks for run in runs[name]]
    return WordCounts(
        num_sentences=num_sentences, num_tokens=num_tokens, runs=_merge_until_few(in_order, engine, parts)
    )


def _count_file(path: Path, writer: PartWriter) -> Figures:
    words: Counter[str] = Counter()
    figures: Figures = {"sentences": 0, "tokens": 0, "runs": []}

    def write_words() -> None:
        suffix = f"{len(figures['runs'])}.run"
        with writer.file(suffix) as unfinished:
            write_run(unfinished, ((word.encode("utf-8"), words[word]) for word in sorted(words)))
        figures["runs"] = list(writer.files)
        figures["tokens"] += words.total()
        words.clear()

    for block in iter_blocks(path):
        figures["sentences"] += block.count("\n")
        words.update(block.replace("\n", " ").split(" "))
        del words[""]  # between two spaces, and at the end of the block
        if len(words) > MAX_WORDS:
            write_words()
    if words:
        write_words()
    return figures


def _merge_until_few(runs: list[Path], engine: Engine, parts: WorkFolder) -> list[Path]:
    """Merge runs repeatedly until they are few enough to be read together."""
    level = 0
    while len(runs) > MAX_MERGED_RUNS:
        batches = [runs[start : start + MAX_MERGED_RUNS] for start in range(0, len(runs), MAX_MERGED_RUNS)]
        tasks = {
            f"merge-{level}-{number:05d}": [run.absolute() for run in batch] for number, batch in enumerate(batches)
        }
        for _ in parts.run(engine, _merge_runs, tasks):
            pass
        runs = [parts.path / f"{name}.run" for name in tasks]
        level += 1
    return runs


def _merge_runs(runs: list[Path], writer: PartWriter) -> Figures:
    with writer.file("run") as unfinished:
        write_run(unfinished, iter_merged(runs))
    return {}


def write_run(path: Path, counted: Iterable[CountedWord]) -> None:
    """Write sorted words and their counts as a run."""
    with path.open("wb", _BUFFER_BYTES) as file:
        file.writelines(b"%b %d\n" % entry for entry in counted)


def iter_run(path: Path) -> Iterator[CountedWord]:
    """Yield each word of a run with its count."""
    with path.open("rb", _BUFFER_BYTES) as file:
        for line in file:
            word, _, count = line.rpartition(b" ")
            yield word, int(count)


def iter_merged(paths: Iterable[Path]) -> Iterator[CountedWord]:
    """Merge runs: yield each word once, in order, with its counts added up."""
    with ExitStack() as stack:
        runs = [stack.enter_context(closing(iter_run(path))) for path in paths]  # type: ignore[type-var]
        for word, entries in groupby(merge(*runs), key=itemgetter(0)):
            yield word, sum(count for _, count in entries)
