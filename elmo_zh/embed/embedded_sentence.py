"""EmbeddedSentence: what ElmoEmbedder returns for one sentence."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class EmbeddedSentence:
    """The vectors of a sentence with its tokens.

    Attributes:
        vectors: float32, shape (L + 1, n, 2P), where n is the number of tokens.
        tokens: The n tokens.
        offsets: First character of each token in the sentence as given, and the one after its last, int32, shape
            (n, 2). For a sentence given as tokens they refer to the tokens joined by single spaces.
        is_unknown: True for each token outside the vocabulary in token mode, bool, shape (n,).
    """

    vectors: Vectors = field(repr=False)
    tokens: list[str]
    offsets: NDArray[np.int32] = field(repr=False)
    is_unknown: NDArray[np.bool_] = field(repr=False)
