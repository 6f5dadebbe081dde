"""Count the words in segmented files: one part per file, then a merge.

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
from elmo_zh.run.job import Files, Json, Step, Work

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


def count_words(files: Sequence[Path], work: Work) -> WordCounts:
    """Count the words in segmented files, as runs in the work folder."""
    step = Step(name="vocab", compute=_count_file, unit="tokens", size=itemgetter("tokens"))
    num_sentences = num_tokens = 0
    runs: list[Path] = []
    for part in work.run(step, [path.absolute() for path in files]):
        counts = part.value()
        num_sentences += counts["sentences"]
        num_tokens += counts["tokens"]
        runs += [part.file(f"{number}.run") for number in range(counts["runs"])]
    return WordCounts(num_sentences=num_sentences, num_tokens=num_tokens, runs=_merge_until_few(runs, work))


def _count_file(path: Path, files: Files) -> Json:
    words: Counter[str] = Counter()
    counts = {"sentences": 0, "tokens": 0, "runs": 0}

    def write_words() -> None:
        with files.file(f"{counts['runs']}.run") as unfinished:
            write_run(unfinished, ((word.encode("utf-8"), words[word]) for word in sorted(words)))
        counts["runs"] += 1
        counts["tokens"] += words.total()
        words.clear()

    for block in iter_blocks(path):
        counts["sentences"] += block.count("\n")
        words.update(block.replace("\n", " ").split(" "))
        del words[""]  # between two spaces, and at the end of the block
        if len(words) > MAX_WORDS:
            write_words()
    if words:
        write_words()
    return counts


def _merge_until_few(runs: list[Path], work: Work) -> list[Path]:
    """Merge runs repeatedly until they are few enough to be read together."""
    level = 0
    while len(runs) > MAX_MERGED_RUNS:
        batches = [runs[start : start + MAX_MERGED_RUNS] for start in range(0, len(runs), MAX_MERGED_RUNS)]
        step = Step(name=f"merge-{level}", compute=_merge_runs, total=len(batches))
        runs = [part.file("run") for part in work.run(step, batches)]
        level += 1
    return runs


def _merge_runs(runs: list[Path], files: Files) -> None:
    with files.file("run") as unfinished:
        write_run(unfinished, iter_merged(runs))


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
