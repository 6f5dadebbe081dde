"""Survey a run's segmented text in one pass: count tokens, sentences and lengths, and find samples and oddities."""

import re
import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from random import Random

from elmo_zh.corpus.cleaning.line_counts import LONGEST_EXAMPLE, shortened
from elmo_zh.corpus.text_files import iter_sentences
from elmo_zh.inspection import Shown
from elmo_zh.run.reporter import Reporter
from elmo_zh.text.han import HAN
from elmo_zh.vocabulary.vocabulary import BoundedCounts

KINDS = ("Han", "Latin", "digits", "punctuation", "other")
_MOST_TOKENS, _MOST_SENTENCES = 400_000, 100_000
# Shorter sentences, such as 好的。, are repeated in any text.
_REPEATED_FROM_TOKENS, _LONGEST_KEPT_CHARACTERS = 6, 400
_LONGEST_COUNTED = 5000
_QUANTILES = (0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)
LONG_TOKEN_CHARACTERS = 24
LONG_SENTENCE_TOKENS = 300
# UTF-8 read as Latin-1 or Windows-1252 becomes a row of accented letters; read as GBK, U+FFFD becomes 锟斤拷.
# Uninitialised memory reads 烫烫烫 or 屯屯屯 in GBK. Private characters have no meaning of their own.
_SIGNS = {
    "sentences with U+FFFD": re.compile("\ufffd"),
    "sentences that look wrongly decoded": re.compile(
        "(?:[\u00c3\u00c2\u00e2-\u00e9\u00ef] ?(?:[\u0080-\u00bf\u0152-\u0178\u2013-\u203a\u20ac\u2122] ?){1,3}){2,}"
        "|(?:[\u00c0-\u00ff] ?){4,}|锟 ?斤 ?拷|(?:烫 ?){3,}|(?:屯 ?){3,}|锘 ?[挎縷]"
    ),
    "sentences with private-use characters": re.compile("[\ue000-\uf8ff\U000f0000-\U0010ffff]"),
}


@lru_cache(maxsize=2**16)
def kind_of(character: str) -> str:
    """Return the kind of a character, one of `KINDS`."""
    if HAN.match(character):
        return "Han"
    category = unicodedata.category(character)
    if category == "Nd":
        return "digits"
    if category[0] in "PS":
        return "punctuation"
    if category[0] == "L" and unicodedata.name(character, "").startswith(("LATIN", "FULLWIDTH LATIN")):
        return "Latin"
    return "other"


def kind_of_token(token: str) -> str:
    """Return the kind of a token: the first of `KINDS` that one of its characters has."""
    return min(map(kind_of, token), key=KINDS.index)


@dataclass
class KindCounts:
    """Numbers of tokens and characters of each kind."""

    tokens: Counter[str] = field(default_factory=Counter)
    characters: Counter[str] = field(default_factory=Counter)

    def add(self, token: str, count: int) -> None:
        """Count `count` occurrences of a token."""
        self.tokens[kind_of_token(token)] += count
        for character in token:
            self.characters[kind_of(character)] += count

    def fractions(self) -> dict[str, dict[str, float]]:
        """Return fractions of tokens and of characters by kind; they add up to 1 unless there is no text."""
        counted = vars(self).items()
        return {what: {kind: counts[kind] / max(1, counts.total()) for kind in KINDS} for what, counts in counted}


@dataclass
class OddCounts:
    """How often each kind of oddity was seen, and its first example."""

    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)

    def add(self, kind: str, example: str) -> None:
        """Count one oddity, and keep the first example of its kind."""
        self.counts[kind] += 1
        self.examples.setdefault(kind, shortened(example))

    def check_decoding(self, line: str) -> None:
        """Count signs of wrong decoding in a segmented sentence."""
        if line.isascii():
            return
        for kind, sign in _SIGNS.items():
            if match := sign.search(line):
                self.add(kind, line[max(0, match.start() - LONGEST_EXAMPLE // 4) :])


@dataclass(kw_only=True)
class TextSurvey:
    """Counts and examples from segmented text; `tokens` and `repeated` (sentences) include only frequent ones."""

    num_sentences: int = 0
    num_tokens: int = 0
    single_han_tokens: int = 0
    tokens: BoundedCounts[str]
    kinds: KindCounts
    lengths: Counter[int] = field(default_factory=Counter)
    longest: Sequence[str] = ()
    sentences: list[str] = field(default_factory=list)
    repeated: BoundedCounts[str] = field(default_factory=lambda: BoundedCounts(_MOST_SENTENCES))
    odd: OddCounts = field(default_factory=OddCounts)

    def length_quantiles(self) -> dict[str, int]:
        """Return quantiles of sentence length in tokens, by percentage of sentences."""
        lengths = sorted(self.lengths)
        below = list(accumulate(self.lengths[length] for length in lengths))
        return {f"{part:.0%}": lengths[bisect_left(below, part * self.num_sentences)] for part in _QUANTILES if lengths}


def survey_segmented(
    files: Iterable[Path], shown: Shown, reporter: Reporter, most_tokens: int = _MOST_TOKENS
) -> TextSurvey:
    """Survey segmented files in one pass, in memory that does not grow with the text."""
    kinds = KindCounts()
    survey = TextSurvey(tokens=BoundedCounts(most_tokens, kinds.add), kinds=kinds)
    random = Random(shown.seed)  # noqa: S311
    longest: set[str] = set()
    with reporter.progress("inspect", unit="tokens") as progress:
        for sentence in iter_sentences(files):
            survey.tokens.add(sentence)
            _count_sentence(survey, sentence, random, shown.num_samples)
            longest.add(max(sentence, key=len, default=""))
            if len(longest) > 1000 + shown.num_tokens:
                longest = set(_longest_first(longest)[: shown.num_tokens])
            progress.update(len(sentence))
    for token, count in survey.tokens.counts.items():
        kinds.add(token, count)
    survey.longest = _longest_first(longest - {""})[: shown.num_tokens]
    return survey


def _longest_first(tokens: Iterable[str]) -> list[str]:
    return sorted(tokens, key=lambda token: (-len(token), token))


def _count_sentence(survey: TextSurvey, sentence: Sequence[str], random: Random, num_samples: int) -> None:
    line = " ".join(sentence)
    survey.num_sentences += 1
    survey.num_tokens += len(sentence)
    survey.lengths[min(len(sentence), _LONGEST_COUNTED)] += 1
    if len(sentence) >= _REPEATED_FROM_TOKENS and len(line) <= _LONGEST_KEPT_CHARACTERS:
        survey.repeated.add((line,))
    # Vitter (1985), algorithm R: each sentence is kept with the same probability.
    if len(survey.sentences) < num_samples:
        survey.sentences.append(line)
    elif num_samples and (place := random.randrange(survey.num_sentences)) < num_samples:
        survey.sentences[place] = line
    survey.odd.check_decoding(line)
    if len(sentence) > LONG_SENTENCE_TOKENS:
        survey.odd.add("long sentences", line)
    for token in sentence:
        if len(token) > LONG_TOKEN_CHARACTERS:
            survey.odd.add("long tokens", token)
        elif len(token) == 1 and "\u4e00" <= token <= "\u9fff":
            survey.single_han_tokens += 1
