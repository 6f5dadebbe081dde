"""Count the words of a text by file, merge the counts, and select the words that get a row in the vocabulary.

Counts are kept in runs: files of words and their counts, sorted so that files of any size can be merged in little
memory. A line of a run is a word, U+0020, which no word contains, and the count. Words are sorted by their UTF-8 bytes,
which is the order of their code points.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from heapq import merge, nsmallest
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from elmo_zh.config import VocabConfig
from elmo_zh.corpus.text_files import iter_blocks
from elmo_zh.errors import RunError
from elmo_zh.language import _
from elmo_zh.run.files import file_stamp
from elmo_zh.run.job import Files, Json, Step, Work
from elmo_zh.run.reporter import Reporter
from elmo_zh.vocabulary.spelling import END_OF_WORD, SpellingModel
from elmo_zh.vocabulary.vocabulary import SPECIALS, UNKNOWN_ID, Vocabulary, save_counts

# Number of runs that are merged at a time; each takes a few hundred kilobytes.
MAX_MERGED_RUNS = 16

_BUFFER_BYTES = 2**18

# A word in UTF-8 and its count.
CountedWord = tuple[bytes, int]


@dataclass(frozen=True, kw_only=True)
class WordCounts:
    """The word counts of a text, stored on disk."""

    num_sentences: int
    runs: Sequence[Path]  # Runs that together hold each word's count; a word may be in several of them

    def iter_words(self) -> Iterator[CountedWord]:
        """Yield each word once with its count, sorted by the word's bytes."""
        return iter_merged(self.runs)


def count_words(files: Sequence[Path], work: Work) -> WordCounts:
    """Count the words in segmented files, and keep the counts as runs in the work folder."""
    step = Step(name="vocab", compute=_count_file, unit="tokens", size=itemgetter("tokens"))
    parts = list(work.run(step, [path.absolute() for path in files]))
    num_sentences = sum(part.value()["sentences"] for part in parts)
    return WordCounts(num_sentences=num_sentences, runs=_merge_until_few([part.file("run") for part in parts], work))


def _count_file(path: Path, files: Files) -> Json:
    words, num_sentences = Counter[str](), 0
    for block in iter_blocks(path):
        num_sentences += block.count("\n")
        words.update(block.replace("\n", " ").split(" "))
    del words[""]  # between two spaces, and at the end of a block
    with files.file("run") as unfinished:
        write_run(unfinished, ((word.encode("utf-8"), words[word]) for word in sorted(words)))
    return {"sentences": num_sentences, "tokens": words.total()}


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


@dataclass(frozen=True, kw_only=True)
class VocabularyCounts:
    """A vocabulary and how often each of its tokens occurs in the training text."""

    vocabulary: Vocabulary
    # Count of each row; <S> and </S> count the sentences, <UNK> the words outside the vocabulary.
    counts: Sequence[int]
    num_distinct_words: int
    num_refused: int  # Number of distinct words that are frequent enough for a row but match `config.refuse`
    spelling: SpellingModel

    @property
    def coverage(self) -> float:
        """Fraction of the training tokens that are in the vocabulary."""
        known = sum(self.counts[len(SPECIALS) :])
        return known / max(1, known + self.counts[UNKNOWN_ID])

    @property
    def absent(self) -> set[str]:
        """The words in the vocabulary that do not occur in the training text."""
        counted = zip(self.vocabulary.tokens, self.counts, strict=True)
        return {token for token, count in counted if not count}.difference(SPECIALS)


@dataclass(frozen=True, kw_only=True)
class VocabularyJob:
    """Makes the vocabulary of segmented files and, beside it, the counts of its tokens and the spelling model."""

    files: Sequence[Path]
    config: VocabConfig
    output: Path
    counts: Path
    character_counts: Path
    given: Collection[str] = ()  # words that always get a row
    source: Path | None = None  # the file that contains them
    split_unknown: bool = False

    inputs = ()
    valuable = ()
    may_replace = staticmethod(Path.is_file)

    def made_from(self) -> dict[str, Any]:
        """Return what the counts of words depend on.

        The settings that select words may change before an interrupted job resumes.
        """
        return {"files": list(map(file_stamp, self.files))}

    def make(self, path: Path, work: Work) -> VocabularyCounts:
        """Count the words, select those that get a row, and write the three files."""
        word_counts = count_words(self.files, work)
        selected = select_vocabulary(word_counts, self.config, self.given, split_unknown=self.split_unknown)
        require_words(selected, self.config, self.files[0].parent, self.source)
        save_counts(self.counts, zip(selected.vocabulary.tokens, selected.counts, strict=True))
        selected.spelling.save(self.character_counts)
        selected.vocabulary.save(path)
        return selected


def select_vocabulary(
    counted: WordCounts, config: VocabConfig, given: Collection[str] = (), *, split_unknown: bool = False
) -> VocabularyCounts:
    """Select the words that get a row, sorted by descending count, then code points; keep no others in memory.

    With `split_unknown`, the counts of rows include occurrences inside the words that are split.
    """
    given_counts = {word: 0 for word in given if word not in SPECIALS}
    refuses = re.compile(config.refuse).search if config.refuse else lambda _: None
    num_distinct = num_refused = 0

    def iter_frequent() -> Iterator[tuple[int, str]]:
        """Yield (negated count, word) for each word that is frequent enough, and neither given nor refused."""
        nonlocal num_distinct, num_refused
        for encoded, count in counted.iter_words():
            num_distinct += 1
            word = encoded.decode("utf-8")
            if word in given_counts:
                given_counts[word] = count
            elif count >= config.min_count and word not in SPECIALS:
                if refuses(word):
                    num_refused += 1
                else:
                    yield -count, word

    words = iter_frequent()
    if config.words:
        added = []
    elif config.size:
        added = nsmallest(max(0, config.size - len(SPECIALS) - len(given_counts)), words)
    else:
        added = list(words)
    for _word in words:
        pass  # finish the scan: nsmallest reads no words if it has to return none
    counts = {word: -negated for negated, word in added} | given_counts
    spelling = _count_others(counted, counts, split_unknown=split_unknown)
    counts = dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
    return VocabularyCounts(
        vocabulary=Vocabulary((*SPECIALS, *counts)),
        counts=(counted.num_sentences, counted.num_sentences, spelling.counts[END_OF_WORD], *counts.values()),
        num_distinct_words=num_distinct,
        num_refused=num_refused,
        spelling=spelling,
    )


def _count_others(counted: WordCounts, counts: dict[str, int], *, split_unknown: bool) -> SpellingModel:
    """Return the spelling model of words without a row.

    With `split_unknown`, add their known parts to `counts`, and model only the other parts.
    """
    vocabulary, characters, num_unknown = Vocabulary((*SPECIALS, *counts)), Counter[str](), 0
    for encoded, count in counted.iter_words():
        word = encoded.decode("utf-8")
        if word in vocabulary:
            continue
        for part in vocabulary.split([word]) if split_unknown else [word]:
            if part in vocabulary:
                counts[part] += count
            else:
                num_unknown += count
                for character in part:
                    characters[character] += count
    return SpellingModel({**characters, END_OF_WORD: num_unknown})


def require_words(selected: VocabularyCounts, config: VocabConfig, text: Path, source: Path | None) -> None:
    """Raise RunError if the vocabulary has no word of the text or, unless words are given, only one."""
    num_words = len(selected.vocabulary) - len(SPECIALS)
    if num_words == 0 or (source is None and num_words == 1):
        raise RunError(
            _(
                "{text}: too few words for a vocabulary ({count}; vocab.min_count = {min_count}). Use more text, lower"
                " vocab.min_count, or check how the text is segmented."
            ).format(text=text, count=num_words, min_count=config.min_count)
        )
    if not selected.coverage:
        raise RunError(
            _(
                "No word in {source} occurs in {text}. Check that the file has one word per line, and uses the"
                " language, script and segmentation of the text."
            ).format(source=source, text=text)
        )


def report_given_words(selected: VocabularyCounts, num_given: int, source: Path, reporter: Reporter) -> None:
    """Report how many of the given words do not occur in the text, and how many other words got a row."""
    num_added = len(selected.vocabulary) - len(SPECIALS) - num_given
    message = _(
        "vocab: words in {source}: {num_given:,} (not found in the text: {num_absent:,}); words added from the text:"
        " {num_added:,}."
    )
    gaps = {"num_given": num_given, "num_absent": len(selected.absent), "num_added": num_added}
    reporter.note(message.format(source=source, **gaps))
