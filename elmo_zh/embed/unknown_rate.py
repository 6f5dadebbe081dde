"""Warnings about text with a far larger share of unknown words than in training, with the likely reason."""

import math
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

from elmo_zh.bundle.read import Bundle
from elmo_zh.config.privacy import shown
from elmo_zh.text.han import HAN, simplified_forms, traditional_forms
from elmo_zh.text.normalise import build_normaliser
from elmo_zh.vocabulary.vocabulary import UNKNOWN_ID, Vocabulary

# "Far above" means odds this many times as high as in training, and at least this fraction of the tokens.
_ODDS_RATIO = 2.5
_LEAST_FRACTION = 0.1
# Assumed for a model whose rate in training is unknown.
_USUAL_RATE = 0.1
# A rate must exceed the limit by this many standard deviations, on at least this many tokens: few words prove nothing.
_CERTAINTY, _LEAST_TOKENS = 2, 10
# A token with more characters than this is probably text that was not segmented.
_LONG_TOKEN = 8
_SHOWN_WORDS, _SHOWN_CHARACTERS = 3, 12

# In text of the other script about half of the unknown words have a character that only this script has.
_SCRIPT_FRACTION = 0.2
# In text of another language, or of numbers, nearly all of them have no Han character.
_WITHOUT_CHINESE = 0.95


class UnknownWordsWarning(UserWarning):
    """Too many words are unknown to the model, so their vectors mean little."""


def describe_unknown_rate(
    bundle: Bundle,
    num_tokens: int,
    num_unknown: int,
    unknown_words: Mapping[str, int],
    *,
    segmented: bool,
    read_as: str = "unk",
) -> str | None:
    """Return a one-line warning with the likely reason if the share of unknown words is far too high, or else None."""
    training_rate = training_unknown_rate(bundle.info)
    if bundle.vocabulary is None or not is_far_above(num_tokens, num_unknown, training_rate):
        return None
    known = (
        "the share in the training text is not known"
        if training_rate is None
        else f"the share in the model's held-out text is {training_rate:.1%}"
    )
    reason = _likely_reason(bundle, bundle.vocabulary, unknown_words, segmented=segmented)
    seen = f"{num_unknown / num_tokens:.1%} of the {num_tokens:,} tokens are outside the model's vocabulary"
    parts = " An unknown token's vector is built from the known words in it, if any." if read_as == "backoff" else ""
    return f"{seen}; {known}.{parts} {reason}"


def training_unknown_rate(info: Mapping[str, Any]) -> float | None:
    """Return the fraction of unknown tokens in the model's held-out text, from bundle.json, or None."""
    heldout = info.get("training", {}).get("heldout")
    rate = heldout.get("oov_rate") if isinstance(heldout, dict) else None
    return float(rate) if isinstance(rate, int | float) and 0 <= rate <= 1 else None


def is_far_above(num_tokens: int, num_unknown: int, training_rate: float | None) -> bool:
    """Return whether the rate of unknown tokens is clearly far above `training_rate` (None: a usual rate)."""
    if num_tokens < _LEAST_TOKENS:
        return False
    usual = _USUAL_RATE if training_rate is None else training_rate
    limit = max(_LEAST_FRACTION, _ODDS_RATIO * usual / (1 - usual + _ODDS_RATIO * usual))
    return _lower_bound(num_tokens, num_unknown) > limit


def _lower_bound(num_tokens: int, num_unknown: int) -> float:
    """Return the lower end of Wilson's score interval for the rate."""
    rate, square = num_unknown / num_tokens, _CERTAINTY**2 / num_tokens
    middle = rate + square / 2
    return (middle - math.sqrt(square * (rate * (1 - rate) + square / 4))) / (1 + square)


def _likely_reason(bundle: Bundle, vocabulary: Vocabulary, unknown_words: Mapping[str, int], *, segmented: bool) -> str:
    segmenter = (bundle.info["segmenter"] or {}).get("name", "the segmenter used in training")

    def matching(condition: Callable[[str], object]) -> tuple[float, str]:
        """Return the fraction of unknown words that meet a condition, and the most frequent ones among them."""
        found = {word: count for word, count in unknown_words.items() if condition(word)}
        return sum(found.values()) / max(1, sum(unknown_words.values())), _show(found)

    fraction, named = matching(lambda word: len(word) > _LONG_TOKEN)
    if segmented and fraction > 0.5:
        return f"Most unknown tokens are too long to be words ({named}). Give raw text, or segment it with {segmenter}."
    for script, other, own, foreign in (
        ("traditional", "simplified", simplified_forms(), traditional_forms()),
        ("simplified", "traditional", traditional_forms(), simplified_forms()),
    ):
        fraction, named = matching(foreign.intersection)
        if fraction > _SCRIPT_FRACTION and _is_written_in(vocabulary, own, foreign):
            return (
                f"The text is in {script} characters ({named}), but the model was trained on {other} ones. Convert the"
                f" text first, for example with OpenCC, or train a model with text.script={other}."
            )
    fraction, named = matching(lambda word: not HAN.search(word))
    if fraction > _WITHOUT_CHINESE:
        return f"Almost no unknown token is Chinese ({named}), but the model was trained on Chinese. Give Chinese text."
    characters = {character for token in vocabulary.tokens for character in token}
    fraction, named = matching(characters.isdisjoint)
    if fraction > 0.5:
        return (
            f"Most unknown tokens consist of characters that the model's vocabulary lacks ({named}): the text is"
            " probably in another language or script."
        )
    fraction, named = matching(lambda word: _is_compound(word, vocabulary))
    if segmented and fraction > 0.5:
        return (
            f"Most unknown tokens consist of words that the model knows ({named}). Segment the text as in training,"
            f" with {segmenter}."
        )
    return (
        "The text is probably from a different domain than the model's training text (unknown words:"
        f" {_show(unknown_words)}). Use a model trained on similar text."
    )


def _is_written_in(vocabulary: Vocabulary, own: frozenset[str], foreign: frozenset[str]) -> bool:
    """Return whether the vocabulary has far more words with characters of one script than of the other."""
    num_own, num_foreign = (
        sum(not script.isdisjoint(token) for token in vocabulary.tokens) for script in (own, foreign)
    )
    return num_own > 10 * num_foreign


def _is_compound(word: str, vocabulary: Vocabulary) -> bool:
    subwords = vocabulary.find_subwords(word)
    num_longer = sum(len(subword) for subword in subwords if len(subword) > 1)
    return sum(map(len, subwords)) == len(word) and 2 * num_longer >= len(word)


def _show(words: Mapping[str, int]) -> str:
    most = sorted(words, key=lambda word: -words[word])[:_SHOWN_WORDS]
    cut = (word if len(word) <= _SHOWN_CHARACTERS else f"{word[:_SHOWN_CHARACTERS]}…" for word in most)
    return shown(", ".join(word if word.isalnum() else repr(word) for word in cut))


class UnknownWatch:
    """Gives a Python warning, only once, if the share of unknown words is far higher than in training."""

    def __init__(self, bundle: Bundle, read_as: str) -> None:
        self._bundle, self._read_as = bundle, read_as
        self.begin()
        self._is_over = bundle.vocabulary is None or bundle.bilm.shape.characters is not None

    def begin(self) -> "UnknownWatch":
        """Count from zero again, for a text of its own."""
        self._num_tokens = self._num_unknown = 0
        return self

    def look(self, sentences: Sequence[Sequence[str]], *, segmented: bool) -> None:
        """Count the unknown words of more sentences, each a list of tokens."""
        if self._is_over or self._bundle.vocabulary is None:
            return
        tokens = list(chain.from_iterable(sentences))
        ids = self._bundle.vocabulary.encode(tokens)
        unknown = Counter(token for token, row in zip(tokens, ids, strict=True) if row == UNKNOWN_ID)
        self._num_tokens += len(tokens)
        self._num_unknown += unknown.total()
        line = describe_unknown_rate(
            self._bundle,
            self._num_tokens,
            self._num_unknown,
            unknown,
            segmented=segmented,
            read_as=self._read_as,
        )
        if line:
            self._is_over = True
            warnings.warn(line, UnknownWordsWarning, stacklevel=level_outside())


def level_outside() -> int:
    """Return the `stacklevel` that makes the caller's warning show the line that called this package."""
    level = 1
    while sys._getframe(level).f_globals.get("__name__", "").startswith("elmo_zh."):
        level += 1
    return level


_PUNCTUATION = "!\"#$%&'()*+,-/:;<=>?@[\\]^_`{|}~"
# Segmented Chinese corpora often have ASCII punctuation. The Chinese full stop is not the wide form of the dot.
_WIDE = {ord(sign): ord(sign) + 0xFEE0 for sign in _PUNCTUATION} | {ord("."): ord("。")}
_OTHER_WIDTH = _WIDE | {wide: narrow for narrow, wide in _WIDE.items()}
# A warning needs at least this fraction of the tokens, and at least this many.
_LEAST_MISSED_FRACTION, _LEAST_MISSED_TOKENS = 0.01, 5
_SHOWN_FORMS = 3


class TokenForms:
    """Finds the form of a token that a model knows: normalised, or with punctuation of the other width."""

    def __init__(self, bundle: Bundle) -> None:
        self._vocabulary = None if bundle.bilm.shape.characters is not None else bundle.vocabulary
        self._normalise: Callable[[str], str] = build_normaliser(bundle.text) if bundle.text is not None else str
        self._known: dict[str, str] = {}
        self._is_warned = False

    def known_form(self, token: str) -> str:
        """Return the form of a token that the model knows, or the normalised token if it knows none."""
        if token not in self._known:
            self._known[token] = self._find(token)
        return self._known[token]

    def _find(self, token: str) -> str:
        normalised = self._normalise(token).replace(" ", "") or token
        if self._vocabulary is None:
            return normalised
        forms = (normalised, normalised.translate(_OTHER_WIDTH))
        return next((form for form in forms if form in self._vocabulary), normalised)

    def warn_of_others(self, sentences: Sequence[Sequence[str]]) -> None:
        """Warn, only once, if more than a few tokens would be known in a form other than the given one."""
        if self._vocabulary is None or self._is_warned:
            return
        counts = Counter(token for tokens in sentences for token in tokens)
        others = {token: self.known_form(token) for token in counts if token not in self._vocabulary}
        missed = {token: form for token, form in others.items() if form in self._vocabulary}
        num_missed = sum(counts[token] for token in missed)
        if num_missed < max(_LEAST_MISSED_TOKENS, _LEAST_MISSED_FRACTION * counts.total()):
            return
        self._is_warned = True
        most_frequent = sorted(missed, key=lambda token: -counts[token])[:_SHOWN_FORMS]
        named = ", ".join(f"{token!r} as {missed[token]!r}" for token in most_frequent)
        warnings.warn(
            f"{num_missed:,} of {counts.total():,} tokens are written differently in the model's vocabulary"
            f" ({named}). Pass normalise=True to look up the form that the model knows.",
            UnknownWordsWarning,
            stacklevel=level_outside(),
        )
