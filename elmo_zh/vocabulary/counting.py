"""Count the words of segmented files, a task for each, and merge what they give."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from elmo_zh.corpus.segmented import iter_blocks
from elmo_zh.engine.engine import Engine
from elmo_zh.engine.parts import Figures, PartWriter, run_parts
from elmo_zh.run.reporter import Reporter
from elmo_zh.vocabulary.runs import MOST_MERGED, Counted, iter_merged, write_run

# So many different words are counted in memory before they are written out: some megabytes.
MOST_WORDS = 30_000


@dataclass(frozen=True, kw_only=True)
class WordCounts:
    """How often each word stands in a text, on disk.

    Attributes:
        num_sentences: Lines of the text.
        num_tokens: Words in all, each time they stand there.
        characters: How often each character stands in the words.
        runs: Sorted files that together hold each word's count; a word may stand in several.
    """

    num_sentences: int
    num_tokens: int
    characters: Counter[str]
    runs: Sequence[Path]

    def iter_words(self) -> Iterator[Counted]:
        """Yield each word once, in the order of its bytes, with its count."""
        return iter_merged(self.runs)


def count_words(files: Sequence[Path], engine: Engine, parts: Path, reporter: Reporter) -> WordCounts:
    """Count the words of segmented files.

    Args:
        files: One sentence a line, tokens joined by U+0020.
        engine: Where to count.
        parts: Folder for the counts, which stay there; those of files that were counted before are taken as they are.
        reporter: Where to tell.

    Raises:
        CorpusError: If a file is not UTF-8.
    """
    tasks = {f"count-{number:05d}": path.absolute() for number, path in enumerate(files)}
    num_sentences = num_tokens = 0
    characters: Counter[str] = Counter()
    runs: dict[str, list[str]] = {}
    with reporter.progress("vocab", unit="tokens") as progress:
        for name, figures in run_parts(engine, _count_file, tasks, parts):
            num_sentences += figures["sentences"]
            num_tokens += figures["tokens"]
            characters.update(figures["characters"])
            runs[name] = figures["runs"]
            progress.update(figures["tokens"])
    in_order = [parts / run for name in tasks for run in runs[name]]
    return WordCounts(
        num_sentences=num_sentences,
        num_tokens=num_tokens,
        characters=characters,
        runs=_merge_down(in_order, engine, parts),
    )


def _count_file(path: Path, writer: PartWriter) -> Figures:
    """Write a file's words as sorted runs, each of at most so many different words as memory is meant to hold."""
    words: Counter[str] = Counter()
    characters: Counter[str] = Counter()
    figures: Figures = {"sentences": 0, "tokens": 0, "runs": []}

    def write_out() -> None:
        suffix = f"{len(figures['runs'])}.run"
        with writer.file(suffix) as unfinished:
            write_run(unfinished, ((word.encode("utf-8"), words[word]) for word in sorted(words)))
        figures["runs"] = list(writer.sizes)
        figures["tokens"] += words.total()
        for word, count in words.items():
            for character in word:
                characters[character] += count
        words.clear()

    for block in iter_blocks(path):
        figures["sentences"] += block.count("\n")
        words.update(block.replace("\n", " ").split(" "))
        del words[""]  # between two spaces, and at the end of the block
        if len(words) > MOST_WORDS:
            write_out()
    if words:
        write_out()
    return {**figures, "characters": characters}


def _merge_down(runs: list[Path], engine: Engine, parts: Path) -> list[Path]:
    """Merge runs into larger ones, as often as it takes to have few enough to be read together."""
    level = 0
    while len(runs) > MOST_MERGED:
        groups = [runs[start : start + MOST_MERGED] for start in range(0, len(runs), MOST_MERGED)]
        tasks = {
            f"merge-{level}-{number:05d}": [run.absolute() for run in group] for number, group in enumerate(groups)
        }
        for _ in run_parts(engine, _merge_runs, tasks, parts):
            pass
        runs = [parts / f"{name}.run" for name in tasks]
        level += 1
    return runs


def _merge_runs(runs: list[Path], writer: PartWriter) -> Figures:
    with writer.file("run") as unfinished:
        write_run(unfinished, iter_merged(runs))
    return {}
