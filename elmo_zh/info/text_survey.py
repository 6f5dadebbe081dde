"""Survey a run's segmented text in one pass: count characters, tokens and sentences, and find what looks odd."""

import re
import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import Any

from elmo_zh.corpus.cleaning.clean import looks_garbled
from elmo_zh.corpus.cleaning.line_counts import shortened
from elmo_zh.corpus.text_files import iter_sentences
from elmo_zh.language import N_
from elmo_zh.run.reporter import Reporter
from elmo_zh.text.han import HAN
from elmo_zh.vocabulary.coverage import ROUND_SIZES, coverage_of
from elmo_zh.vocabulary.vocabulary import BoundedCounts

KINDS = ("Han", "Latin", "digits", "punctuation", "other")
_MOST_TOKENS, _MOST_SENTENCES = 400_000, 100_000
_NUM_TOKENS, _NUM_SAMPLES = 20, 5
# Shorter sentences, such as 好的。, are repeated in any text.
_REPEATED_FROM_TOKENS, _LONGEST_KEPT_CHARACTERS = 6, 400
_LONGEST_COUNTED, _LONG_SENTENCE_TOKENS = 5000, 300
_QUANTILES = (0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)
# In modern text segmented by words, about a third of the tokens are single characters; in classical text, most are.
_MANY_SINGLE, _FEW_HAN = 0.65, 0.5
_MANY_COPIES, _MANY_COPIES_FRACTION = 20, 0.0005
# U+FFFD stands for bytes that could not be decoded; private characters have no meaning of their own.
_UNREADABLE = re.compile("[\ufffd\ue000-\uf8ff\U000f0000-\U0010ffff]")


@lru_cache(maxsize=2**16)
def kind_of_character(character: str) -> str:
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


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Something odd: what it is, how many there are (a fraction for shares), and an example if there is one."""

    what: str
    count: float
    example: str = ""


@dataclass
class TextSurvey:
    """Counts and examples from segmented text; `tokens` and `repeated` (sentences) include only frequent ones."""

    most_tokens: int = _MOST_TOKENS
    num_tokens: int = 0
    single_han_tokens: int = 0
    characters: Counter[str] = field(default_factory=Counter)  # by kind; those of `tokens` are added at the end
    lengths: Counter[int] = field(default_factory=Counter)
    longest: set[str] = field(default_factory=set)
    samples: list[str] = field(default_factory=list)
    repeated: BoundedCounts[str] = field(default_factory=lambda: BoundedCounts(_MOST_SENTENCES))
    num_unreadable: int = 0
    unreadable: str = ""  # an example
    random: Random = field(default_factory=lambda: Random(1))  # noqa: S311

    def __post_init__(self) -> None:
        self.tokens: BoundedCounts[str] = BoundedCounts(self.most_tokens, self._count_characters)

    @classmethod
    def of_files(cls, files: Iterable[Path], reporter: Reporter, most_tokens: int = _MOST_TOKENS) -> "TextSurvey":
        """Survey segmented files in one pass, in memory that does not grow with the text."""
        survey = cls(most_tokens)
        with reporter.progress("read the text", unit="tokens") as progress:
            for sentence in iter_sentences(files):
                survey.add(sentence)
                progress.update(len(sentence))
        for token, count in survey.tokens.counts.items():
            survey._count_characters(token, count)
        return survey

    def _count_characters(self, token: str, count: int) -> None:
        for character in token:
            self.characters[kind_of_character(character)] += count

    def add(self, sentence: Sequence[str]) -> None:
        """Count a sentence and its tokens."""
        line = " ".join(sentence)
        self.tokens.add(sentence)
        self.num_tokens += len(sentence)
        self.single_han_tokens += sum(len(token) == 1 and "\u4e00" <= token <= "\u9fff" for token in sentence)
        self.lengths[min(len(sentence), _LONGEST_COUNTED)] += 1
        self.longest.add(max(sentence, key=len, default=""))
        if len(self.longest) > 1000:
            self.longest = set(self.longest_tokens())
        if len(sentence) >= _REPEATED_FROM_TOKENS and len(line) <= _LONGEST_KEPT_CHARACTERS:
            self.repeated.add((line,))
        # Vitter (1985), algorithm R: each sentence is kept with the same probability.
        if len(self.samples) < _NUM_SAMPLES:
            self.samples.append(line)
        elif (place := self.random.randrange(self.num_sentences)) < _NUM_SAMPLES:
            self.samples[place] = line
        text = "".join(sentence)
        if not text.isascii() and (_UNREADABLE.search(text) or looks_garbled(text)):
            self.num_unreadable += 1
            self.unreadable = self.unreadable or shortened(line)

    @property
    def num_sentences(self) -> int:
        """The number of sentences."""
        return self.lengths.total()

    def longest_tokens(self) -> list[str]:
        """Return the longest tokens, at most one of each sentence."""
        return sorted(self.longest - {""}, key=lambda token: (-len(token), token))[:_NUM_TOKENS]

    def shares(self) -> dict[str, float]:
        """Return the share of each kind of character."""
        return {kind: self.characters[kind] / max(1, self.characters.total()) for kind in KINDS}

    def length_quantiles(self) -> dict[str, int]:
        """Return quantiles of sentence length in tokens, by percentage of sentences."""
        lengths = sorted(self.lengths)
        below = list(accumulate(self.lengths[length] for length in lengths))
        return {f"{part:.0%}": lengths[bisect_left(below, part * self.num_sentences)] for part in _QUANTILES if lengths}

    def findings(self) -> Iterator[Finding]:
        """Yield what looks odd in the text."""
        if self.num_unreadable:
            yield Finding(
                what=N_("sentences with wrong characters"), count=self.num_unreadable, example=self.unreadable
            )
        if num_long := sum(count for length, count in self.lengths.items() if length > _LONG_SENTENCE_TOKENS):
            yield Finding(what=N_("long sentences"), count=num_long)
        least = max(_MANY_COPIES, _MANY_COPIES_FRACTION * self.num_sentences)
        if copies := [(line, count) for line, count in self.repeated.counts.most_common(1000) if count >= least]:
            total = sum(count for _, count in copies)
            yield Finding(what=N_("sentences that occur again and again"), count=total, example=shortened(copies[0][0]))
        han, single = self.shares()["Han"], self.single_han_tokens / max(1, self.num_tokens)
        if self.num_tokens and han < _FEW_HAN:
            yield Finding(what=N_("share of Han characters is low"), count=round(han, 4))
        if single > _MANY_SINGLE:
            yield Finding(what=N_("share of single-character tokens is high"), count=round(single, 4))

    def described(self) -> dict[str, Any]:
        """Return the survey as JSON values."""
        counts = sorted(self.tokens.counts.items(), key=lambda item: (-item[1], item[0]))
        curve = coverage_of((count for _, count in counts), self.num_tokens)
        return {
            "sentences": self.num_sentences,
            "tokens": self.num_tokens,
            "characters": {kind: round(share, 4) for kind, share in self.shares().items()},
            "sentence_lengths": self.length_quantiles(),
            "coverage": {f"{size:,}": round(float(curve[size]), 4) for size in ROUND_SIZES if size < len(curve)},
            "most_frequent": dict(counts[:_NUM_TOKENS]),
            "longest": self.longest_tokens(),
            "samples": self.samples,
        }
