"""The form of a token that a model knows: normalised as its training text, or with the other width of punctuation."""

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from elmo_zh.bundle.read import Bundle
from elmo_zh.embed.unknown_rate import UnknownWordsWarning, level_outside
from elmo_zh.text.normalise import build_normaliser

_PUNCTUATION = "!\"#$%&'()*+,-/:;<=>?@[\\]^_`{|}~"
# Corpora of segmented Chinese often have ASCII punctuation; the Chinese full stop is another sign than the wide dot.
_WIDE = {ord(sign): ord(sign) + 0xFEE0 for sign in _PUNCTUATION} | {ord("."): ord("。")}
_OTHER_WIDTH = _WIDE | {wide: narrow for narrow, wide in _WIDE.items()}
# A warning needs this fraction of the tokens and this many.
_LEAST_FRACTION, _LEAST_TOKENS = 0.01, 5
_SHOWN = 3


class TokenForms:
    """Finds the form of tokens that a token-mode model knows."""

    def __init__(self, bundle: Bundle) -> None:
        self._vocabulary = None if bundle.bilm.shape.characters is not None else bundle.vocabulary
        self._normalise: Callable[[str], str] = build_normaliser(bundle.text) if bundle.text is not None else str
        self._known: dict[str, str] = {}
        self._is_warned = False

    def known_form(self, token: str) -> str:
        """Return the token as the model's training text had it, or as it is if the model knows no form of it."""
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
        """Give a warning, once, if more than a few tokens are unknown only in the form in which they were given."""
        if self._vocabulary is None or self._is_warned:
            return
        counts = Counter(token for tokens in sentences for token in tokens)
        others = {token: self.known_form(token) for token in counts if token not in self._vocabulary}
        missed = {token: form for token, form in others.items() if form in self._vocabulary}
        num_missed = sum(counts[token] for token in missed)
        if num_missed < max(_LEAST_TOKENS, _LEAST_FRACTION * counts.total()):
            return
        self._is_warned = True
        most_frequent = sorted(missed, key=lambda token: -counts[token])[:_SHOWN]
        shown = ", ".join(f"{token!r} for {missed[token]!r}" for token in most_frequent)
        warnings.warn(
            f"{num_missed:,} of {counts.total():,} tokens are unknown only in this form ({shown})."
            " Give normalise=True to look up the form that the model knows.",
            UnknownWordsWarning,
            stacklevel=level_outside(),
        )


def known_forms(forms: TokenForms, sentences: Iterable[Sequence[str]]) -> list[Sequence[str]]:
    """Return sentences with each token in the form that the model knows."""
    return [[forms.known_form(token) for token in tokens] for tokens in sentences]
