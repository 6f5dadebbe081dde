"""Which words of a text have a row, and what is known of the others."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from pathlib import Path

from elmo_zh.config import VocabConfig
from elmo_zh.errors import RunError
from elmo_zh.run.reporter import Reporter
from elmo_zh.vocabulary.counting import WordCounts
from elmo_zh.vocabulary.spelling import SpellingModel
from elmo_zh.vocabulary.vocabulary import SPECIALS, UNKNOWN_ID, Vocabulary


@dataclass(frozen=True, kw_only=True)
class VocabularyCounts:
    """A vocabulary and how often its tokens stand in the training text.

    Attributes:
        vocabulary: The tokens.
        counts: One for each row. <S> and </S> count sentences, <UNK> counts words outside the vocabulary.
        num_distinct_words: Different words in the training text, known or not.
        num_left_out: Different words that are frequent enough for a row, and have none.
        spelling: The spelling model of the words outside the vocabulary.
    """

    vocabulary: Vocabulary
    counts: Sequence[int]
    num_distinct_words: int
    num_left_out: int
    spelling: SpellingModel

    @property
    def coverage(self) -> float:
        """Share of the training tokens that are in the vocabulary."""
        known = sum(self.counts[len(SPECIALS) :])
        return known / max(1, known + self.counts[UNKNOWN_ID])

    @property
    def num_absent(self) -> int:
        """Words of the vocabulary that do not stand in the training text."""
        return list(self.counts[len(SPECIALS) :]).count(0)


def choose_vocabulary(counted: WordCounts, config: VocabConfig, given: Collection[str] = ()) -> VocabularyCounts:
    """Rank words by falling count, ties in the order of their code points, and take those that have a row.

    Memory holds these words and no others, so it grows with the text only where `config.size` is 0: no limit.

    Args:
        counted: The training text's words.
        config: Which words get a row: the most frequent, and with `words` none but the given ones.
        given: Words that get a row in any case, also those that the text lacks; their count is then 0.
    """
    passing = _Passing(dict.fromkeys(given, 0), config.min_count)
    words = passing.iter_others(counted)
    if config.words:
        added = []
    elif config.size:
        added = nsmallest(max(0, config.size - len(SPECIALS) - len(passing.given)), words)
    else:
        added = list(words)
    for _ in words:
        pass  # nsmallest looks at none where it is to give none
    ranked = sorted([*added, *((-count, word) for word, count in passing.given.items())])
    counts = {word: -negated for negated, word in ranked}
    num_frequent_given = sum(count >= config.min_count for count in passing.given.values())
    return VocabularyCounts(
        vocabulary=Vocabulary((*SPECIALS, *counts)),
        counts=(
            counted.num_sentences,
            counted.num_sentences,
            counted.num_tokens - sum(counts.values()),
            *counts.values(),
        ),
        num_distinct_words=passing.num_distinct,
        num_left_out=passing.num_frequent - len(added) - num_frequent_given,
        spelling=_spelling_of_others(counted, counts),
    )


class _Passing:
    """What is learnt of all words while they pass, sorted and once."""

    def __init__(self, given: dict[str, int], min_count: int) -> None:
        for special in SPECIALS:
            given.pop(special, None)
        self.given, self._min_count = given, min_count
        self.num_distinct = self.num_frequent = 0

    def iter_others(self, counted: WordCounts) -> Iterator[tuple[int, str]]:
        """Yield, of the words that are not given, those that are frequent enough: minus the count, and the word."""
        for encoded, count in counted.iter_words():
            self.num_distinct += 1
            is_frequent = count >= self._min_count
            if not (is_frequent or self.given):
                continue
            word = encoded.decode("utf-8")
            if word in SPECIALS:
                continue
            self.num_frequent += is_frequent
            if word in self.given:
                self.given[word] = count
            elif is_frequent:
                yield -count, word


def _spelling_of_others(counted: WordCounts, counts: dict[str, int]) -> SpellingModel:
    """Return the spelling model of all words but those of a vocabulary: its characters are taken from those of all."""
    characters = Counter(counted.characters)
    for word, count in counts.items():
        for character in word:
            characters[character] -= count
    return SpellingModel.of_characters(+characters, num_words=counted.num_tokens - sum(counts.values()))


def require_words(built: VocabularyCounts, config: VocabConfig, text: Path, source: Path | None) -> None:
    """Raise RunError if no word of `text`, the training text's folder, has a row; `source` gave words, if any did."""
    if len(built.vocabulary) == len(SPECIALS):
        raise RunError(
            f"No word stands {config.min_count} times in {text}, so the vocabulary would be empty."
            " Give more text, or --set vocab.min_count=1"
        )
    if not built.coverage:
        raise RunError(
            f"No word of {source} stands in {text}. Is it one word a line, of the same language, script and segmenter?"
        )


def report_given_words(
    built: VocabularyCounts, config: VocabConfig, num_given: int, source: Path, reporter: Reporter
) -> None:
    """Tell what became of the words of a bundle or a file, and whether other words of the text got a row."""
    rows = len(built.vocabulary)
    num_added = rows - len(SPECIALS) - num_given
    added = "no others have a row" if config.words else f"{num_added:,} words of the text are added"
    reporter.note(
        f"vocab: of the {num_given:,} words of {source}, {built.num_absent:,} do not stand in the text; {added}."
    )
    if config.init and built.num_left_out and not num_added:
        reporter.warn(
            f"vocab.size = {config.size} leaves no room beside the {rows} rows of {source}, so"
            f" {built.num_left_out:,} words of the text get none. To give them rows:"
            f" --set vocab.size={rows + built.num_left_out}"
        )
