"""Count the words of a text, and select those that get a row in the vocabulary."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from pathlib import Path
from typing import Any

from elmo_zh.config import VocabConfig
from elmo_zh.errors import RunError
from elmo_zh.language import _
from elmo_zh.run.files import file_stamp
from elmo_zh.run.job import Work
from elmo_zh.run.reporter import Reporter, counted
from elmo_zh.vocabulary.counting import WordCounts, count_words
from elmo_zh.vocabulary.spelling import END_OF_WORD, SpellingModel
from elmo_zh.vocabulary.vocabulary import SPECIALS, UNKNOWN_ID, Vocabulary, save_counts


@dataclass(frozen=True, kw_only=True)
class VocabularyCounts:
    """A vocabulary and how often each of its tokens occurs in the training text."""

    vocabulary: Vocabulary
    # Count of each row; <S> and </S> count the sentences, <UNK> the words outside the vocabulary.
    counts: Sequence[int]
    num_distinct_words: int
    num_refused: int  # Number of distinct words that are frequent enough for a row but contain `config.refuse`
    num_left_out: int  # Number of distinct words that are frequent enough for a row but did not get one
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
        """Return what the counts of words depend on; which words get a row may change until the end."""
        return {"files": list(map(file_stamp, self.files))}

    def make(self, path: Path, work: Work) -> VocabularyCounts:
        """Count the words, select those that get a row, and write the three files."""
        word_counts = count_words(self.files, work)
        selected = select_vocabulary(word_counts, self.config, self.given, split_unknown=self.split_unknown)
        require_words(selected, self.config, self.files[0].parent, self.source)
        save_counts(selected.vocabulary, selected.counts, self.counts)
        selected.spelling.save(self.character_counts)
        selected.vocabulary.save(path)
        return selected


def select_vocabulary(
    counted: WordCounts, config: VocabConfig, given: Collection[str] = (), *, split_unknown: bool = False
) -> VocabularyCounts:
    """Select the words that get a row, by descending count and then code points, keeping no others in memory.

    With `split_unknown`, the rows also count the parts of words that get none.
    """
    scan = _Scan(dict.fromkeys(given, 0), config.min_count, config.refuse)
    words = scan.iter_frequent(counted)
    if config.words:
        added = []
    elif config.size:
        added = nsmallest(max(0, config.size - len(SPECIALS) - len(scan.given)), words)
    else:
        added = list(words)
    for _word in words:
        pass  # finish the scan: nsmallest reads no words if it has to return none
    counts = {word: -negated for negated, word in added} | scan.given
    spelling = _count_others(counted, counts, split_unknown=split_unknown)
    counts = dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
    num_frequent_given = sum(count >= config.min_count for count in scan.given.values())
    return VocabularyCounts(
        vocabulary=Vocabulary((*SPECIALS, *counts)),
        counts=(counted.num_sentences, counted.num_sentences, spelling.counts[END_OF_WORD], *counts.values()),
        num_distinct_words=scan.num_distinct,
        num_refused=scan.num_refused,
        num_left_out=scan.num_frequent - len(added) - num_frequent_given,
        spelling=spelling,
    )


class _Scan:
    def __init__(self, given: dict[str, int], min_count: int, refuse: str) -> None:
        for special in SPECIALS:
            given.pop(special, None)
        self.given, self._min_count = given, min_count
        self._refuses = re.compile(refuse).search if refuse else lambda _: None
        self.num_distinct = self.num_frequent = self.num_refused = 0

    def iter_frequent(self, counted: WordCounts) -> Iterator[tuple[int, str]]:
        """Yield (negated count, word) for each word that is frequent enough and not listed."""
        for encoded, count in counted.iter_words():
            self.num_distinct += 1
            is_frequent = count >= self._min_count
            if not (is_frequent or self.given):
                continue
            word = encoded.decode("utf-8")
            if word in SPECIALS:
                continue
            is_given = word in self.given
            if is_frequent and not is_given and self._refuses(word):
                self.num_refused += 1
                continue
            self.num_frequent += is_frequent
            if is_given:
                self.given[word] = count
            elif is_frequent:
                yield -count, word


def _count_others(counted: WordCounts, counts: dict[str, int], *, split_unknown: bool) -> SpellingModel:
    """Count the known parts of words without a row in `counts`; return the spelling of the words or parts left over."""
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
    """Raise RunError if no word of the training text gets a row, or only one that the user did not list."""
    if len(selected.vocabulary) == len(SPECIALS):
        raise RunError(
            _(
                "No word in {text} reaches vocab.min_count = {min_count}, so the vocabulary would be empty. Give more"
                " text, or lower the limit: --set vocab.min_count=1"
            ).format(text=text, min_count=config.min_count)
        )
    if source is None and len(selected.vocabulary) == len(SPECIALS) + 1:
        word = selected.vocabulary.tokens[-1]
        raise RunError(
            _(
                "The vocabulary of {text} would contain only one word ({word}), but training needs several words."
                " Give more text, lower vocab.min_count, or check how the text is segmented."
            ).format(text=text, word=word)
        )
    if not selected.coverage:
        raise RunError(
            _(
                "No word in {source} occurs in {text}. Check that the file has one word per line, and uses the"
                " language, script and segmentation of the text."
            ).format(source=source, text=text)
        )


def report_given_words(
    selected: VocabularyCounts, config: VocabConfig, num_given: int, source: Path, reporter: Reporter
) -> None:
    """Report how many of the listed words do not occur in the text, and how many other words got a row."""
    rows = len(selected.vocabulary)
    num_added = rows - len(SPECIALS) - num_given
    others = counted(num_added, "{number} other word", "{number} other words")
    reporter.note(
        _("vocab: {source} contains {num_given} ({num_absent} not found in the text); {added}.").format(
            source=source,
            num_given=counted(num_given, "{number} word", "{number} words"),
            num_absent=f"{len(selected.absent):,}",
            added=_("no other words are added")
            if config.words
            else _("the text adds {num_added}").format(num_added=others),
        )
    )
    if config.init and selected.num_left_out and not num_added:
        reporter.warn(
            _(
                "The {rows} rows from {source} use up vocab.size = {size}, so {num_left_out} words in the text get no"
                " row. To add rows for those words: --set vocab.size={value}"
            ).format(
                rows=rows,
                source=source,
                size=config.size,
                num_left_out=f"{selected.num_left_out:,}",
                value=rows + selected.num_left_out,
            )
        )
