"""Warn about text with a far larger share of unknown words than in training, and find the known form of a token."""

import math
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import chain

from elmo_zh.bundle.read import Bundle
from elmo_zh.language import _
from elmo_zh.run.reporter import first_ten
from elmo_zh.text.normalise import build_normaliser
from elmo_zh.vocabulary.vocabulary import UNKNOWN_ID

# "Far above" means this many times the odds in training, but at least this fraction of at least this many tokens.
_ODDS_RATIO, _LEAST_FRACTION, _LEAST_TOKENS = 2.5, 0.1, 10
# Assumed for a model whose share in training is unknown.
_USUAL_RATE = 0.1
_SHOWN_WORDS, _SHOWN_CHARACTERS = 3, 12


class UnknownWordsWarning(UserWarning):
    """Too many words are unknown to the model, so their vectors mean little."""


def describe_unknown_rate(
    bundle: Bundle, num_tokens: int, num_unknown: int, unknown_words: Mapping[str, int]
) -> str | None:
    """Return a one-line warning if the share of unknown words is far above that in training, or else None."""
    rate = ((bundle.info.get("training") or {}).get("heldout") or {}).get("oov_rate", _USUAL_RATE)
    if bundle.vocabulary is None or not is_far_above(num_tokens, num_unknown, rate):
        return None
    most_frequent = sorted(unknown_words, key=lambda word: -unknown_words[word])[:_SHOWN_WORDS]
    return _(
        "{num_unknown} of the {num_tokens} tokens, such as {value}, are outside the model's vocabulary; {rate} would be"
        " usual. Use Chinese text in the script (simplified or traditional) and the domain of the model, raw or"
        " segmented as in its training."
    ).format(
        num_unknown=f"{num_unknown / num_tokens:.1%}",
        num_tokens=f"{num_tokens:,}",
        value=first_ten([word[:_SHOWN_CHARACTERS] for word in most_frequent]),
        rate=f"{rate:.1%}",
    )


def is_far_above(num_tokens: int, num_unknown: int, training_rate: float) -> bool:
    """Return whether the share of unknown tokens is far above that in training, and not just by chance."""
    limit = max(_LEAST_FRACTION, _ODDS_RATIO * training_rate / (1 - training_rate + _ODDS_RATIO * training_rate))
    certain = limit * num_tokens + 2 * math.sqrt(limit * (1 - limit) * num_tokens)
    return num_tokens >= _LEAST_TOKENS and num_unknown > certain


class UnknownWatch:
    """Gives a Python warning, only once, if the share of unknown words is far above that in training."""

    def __init__(self, bundle: Bundle) -> None:
        self._bundle = bundle
        self._is_over = bundle.shape.characters is not None or bundle.vocabulary is None

    def look(self, sentences: Sequence[Sequence[str]], stacklevel: int = 3) -> None:
        """Warn if sentences, each a list of tokens, have too many unknown words; `stacklevel` as in `warnings.warn`."""
        if self._is_over or self._bundle.vocabulary is None:
            return
        tokens = list(chain.from_iterable(sentences))
        rows = self._bundle.vocabulary.encode(tokens)
        unknown = Counter(token for token, row in zip(tokens, rows, strict=True) if row == UNKNOWN_ID)
        if line := describe_unknown_rate(self._bundle, len(tokens), unknown.total(), unknown):
            self._is_over = True
            warnings.warn(line, UnknownWordsWarning, stacklevel=stacklevel)


_PUNCTUATION = "!\"#$%&'()*+,-/:;<=>?@[\\]^_`{|}~"
# Segmented Chinese corpora often have ASCII punctuation. The Chinese full stop is not the wide form of the dot.
_WIDE = {ord(sign): ord(sign) + 0xFEE0 for sign in _PUNCTUATION} | {ord("."): ord("。")}
_OTHER_WIDTH = _WIDE | {wide: narrow for narrow, wide in _WIDE.items()}


class TokenForms:
    """Finds the form of a token that a model knows: normalised, or with punctuation of the other width."""

    def __init__(self, bundle: Bundle) -> None:
        self._vocabulary = None if bundle.shape.characters is not None else bundle.vocabulary
        self._normalise: Callable[[str], str] = build_normaliser(bundle.text) if bundle.text is not None else str

    def known_form(self, token: str) -> str:
        """Return the form of a token that the model knows, or the normalised token if it knows none."""
        normalised = self._normalise(token).replace(" ", "") or token
        other = normalised.translate(_OTHER_WIDTH)
        has_other = self._vocabulary is not None and normalised not in self._vocabulary and other in self._vocabulary
        return other if has_other else normalised
