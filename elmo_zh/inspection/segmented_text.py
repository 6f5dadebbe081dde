"""One pass over a run's segmented text: tokens, sentences, lengths, samples, and what looks odd."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from heapq import nlargest
from pathlib import Path
from random import Random

from elmo_zh.corpus.segmented import iter_sentences
from elmo_zh.inspection.counting import BoundedCounts, KindCounts
from elmo_zh.inspection.odd_text import LONG_SENTENCE_TOKENS, LONG_TOKEN_CHARACTERS, OddCounts
from elmo_zh.run.reporter import Reporter

_MOST_TOKENS, _MOST_SENTENCES = 200_000, 50_000
# Shorter sentences are repeated in any text: 好的。
_REPEATED_FROM_TOKENS, _LONGEST_KEPT_CHARACTERS = 6, 400
_LONGEST_COUNTED = 5000
_QUANTILES = (0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)


@dataclass(kw_only=True)
class TextSurvey:
    """What segmented text holds.

    Attributes:
        num_sentences: Number of sentences.
        num_tokens: Number of tokens.
        single_han_tokens: Number of tokens of one Han character.
        tokens: Counts of the frequent tokens.
        kinds: Tokens and characters by kind, of all tokens.
        lengths: Sentences by their number of tokens; the longest are counted together.
        longest: The longest different tokens, longest first.
        sentences: Random sentences.
        repeated: Counts of the frequent sentences.
        odd: Counts and examples of what looks odd.
    """

    num_sentences: int = 0
    num_tokens: int = 0
    single_han_tokens: int = 0
    tokens: BoundedCounts
    kinds: KindCounts
    lengths: Counter[int] = field(default_factory=Counter)
    longest: Sequence[str] = ()
    sentences: list[str] = field(default_factory=list)
    repeated: BoundedCounts = field(default_factory=lambda: BoundedCounts(_MOST_SENTENCES))
    odd: OddCounts = field(default_factory=OddCounts)

    def length_quantiles(self) -> dict[str, int]:
        """Return sentence lengths in tokens by the percentage of sentences that are no longer."""
        found: dict[str, int] = {}
        below = 0
        wanted = list(_QUANTILES)
        for length, number in sorted(self.lengths.items()):
            below += number
            while wanted and below >= wanted[0] * self.num_sentences:
                found[f"{wanted.pop(0):.0%}"] = length
        return found


def survey_segmented(
    files: Iterable[Path],
    *,
    num_samples: int,
    num_longest: int,
    seed: int,
    reporter: Reporter,
    most_tokens: int = _MOST_TOKENS,
) -> TextSurvey:
    """Read segmented files once; memory does not grow with the text."""
    kinds = KindCounts()
    survey = TextSurvey(tokens=BoundedCounts(most_tokens, kinds.add), kinds=kinds)
    random = Random(seed)  # noqa: S311
    longest: set[str] = set()
    with reporter.progress("inspect", unit="tokens") as progress:
        for sentence in iter_sentences(files):
            survey.tokens.update(sentence)
            _count_sentence(survey, sentence, random, num_samples)
            longest.add(max(sentence, key=len, default=""))
            if len(longest) > 1000 + num_longest:
                longest = set(nlargest(num_longest, longest, key=lambda token: (len(token), token)))
            progress.update(len(sentence))
    for token, count in survey.tokens.most_common():
        kinds.add(token, count)
    kept = nlargest(num_longest, longest - {""}, key=lambda token: (len(token), token))
    survey.longest = sorted(kept, key=lambda token: (-len(token), token))
    return survey


def _count_sentence(survey: TextSurvey, sentence: Sequence[str], random: Random, num_samples: int) -> None:
    line = " ".join(sentence)
    survey.num_sentences += 1
    survey.num_tokens += len(sentence)
    survey.lengths[min(len(sentence), _LONGEST_COUNTED)] += 1
    if len(sentence) >= _REPEATED_FROM_TOKENS and len(line) <= _LONGEST_KEPT_CHARACTERS:
        survey.repeated.update((line,))
    # Vitter (1985), algorithm R: each sentence is kept with the same chance.
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
