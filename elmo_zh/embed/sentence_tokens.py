"""Turn text into tokens as a model reads them, with their offsets and whether the model knows them."""

import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from elmo_zh.bundle.read import Bundle
from elmo_zh.checks import check_spans, check_string, check_tokens
from elmo_zh.text.alignment import TokenisedLine, find_tokens
from elmo_zh.text.preparation import TextPreparation
from elmo_zh.text.segmenters.registry import split_tokens
from elmo_zh.vocabulary.vocabulary import UNKNOWN_ID


class SentenceTokens:
    """Turns sentences into tokens as a model reads them: the part of `ElmoEmbedder` that needs no vectors."""

    def __init__(self, bundle: Bundle, user_dictionary: Path | None) -> None:
        self.bundle, self.user_dictionary = bundle, user_dictionary
        self._lock = threading.RLock()
        self._lexicon = bundle.build_lexicon()
        self._preparation: TextPreparation | None = None

    def tokens(self, sentence: str) -> list[str]:
        """Return the tokens of a raw sentence, prepared as in training; raise the same errors as `prepare`."""
        return self._text_preparation().tokens(check_string(sentence, "tokens", "sentence"))

    def prepare(self, line: str, *, segmented: bool = False, keep: Sequence[tuple[int, int]] = ()) -> TokenisedLine:
        """Return the tokens of a line and their offsets in it.

            line = embedder.prepare("今天天气很好")
            line.tokens, line.offsets  # n strings; int32, (n, 2)

        Args:
            line: One sentence.
            segmented: Split the line at U+0020; otherwise it is normalised and segmented as in the model's training.
            keep: Spans of characters, start and end, that each become one token, such as names that segmenters split.

        Raises:
            BundleError: If the bundle's segmenter is unknown or not installed.
            TypeError: If the line is not a string, or `keep` is not a list of spans.
            ValueError: If spans are empty, overlap, reach beyond the line, or are given for a segmented line.
        """
        check_string(line, "prepare", "line")
        check_spans(keep, "prepare", "keep")
        if segmented:
            if len(keep) > 0:
                raise ValueError("prepare: keep= is for raw lines; segmented=True takes the tokens as they are")
            tokens = split_tokens(line)
            return TokenisedLine(tokens, find_tokens(line, tokens))
        return self._text_preparation().prepare(line, keep)

    def _text_preparation(self) -> TextPreparation:
        with self._lock:
            if self._preparation is None:
                self._preparation = self.bundle.build_preparation(self.user_dictionary)
            return self._preparation

    def find_unknown(self, tokens: Sequence[str]) -> NDArray[np.bool_]:
        """Return which tokens are outside the vocabulary.

        Args:
            tokens: The tokens of one sentence, looked up as they are.

        Returns:
            True for each token outside the vocabulary, bool, shape (n,); all False in character mode.

        Raises:
            TypeError: If the tokens are not a list of strings.
        """
        tokens = check_tokens(tokens, "find_unknown", "tokens")
        if self.bundle.vocabulary is None or self.bundle.shape.characters is not None:
            return np.zeros(len(tokens), np.bool_)
        return np.equal(self.bundle.vocabulary.encode(tokens), UNKNOWN_ID)

    def count_cut(self, tokens: Sequence[str]) -> int:
        """Return how many tokens are too long for the character slots; 0 in token mode."""
        return sum(self._lexicon.is_cut(token) for token in tokens)
