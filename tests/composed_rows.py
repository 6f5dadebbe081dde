"""The rows of unknown words, computed plainly: what `Composition` has to give."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.vocabulary.vocabulary import SPECIALS


def composed_rows(tokens: Sequence[str], table: NDArray[Any], words: Sequence[str]) -> dict[str, NDArray[np.float64]]:
    """Return the row of each word by least squares, in which the penalty is further rows of the system."""
    rows = dict(zip(tokens, np.asarray(table, np.float64), strict=True))
    known = tokens[len(SPECIALS) :]
    centre = np.mean(list(rows.values()), axis=0)

    def mean_of_parts(word: str) -> NDArray[np.float64] | None:
        found, start = [], 0
        while start < len(word):
            ends = [end for end in range(len(word), start, -1) if word[start:end] in known and word[start:end] != word]
            found += [rows[word[start : ends[0]]]] if ends else []
            start = ends[0] if ends else start + 1
        return np.mean(found, axis=0) - centre if found else None

    # The rarer two thirds of a small vocabulary.
    rarer = known[len(known) // 3 :]
    pairs = [(mean, rows[word] - centre) for word in rarer if (mean := mean_of_parts(word)) is not None]
    means = {word: mean for word in words if (mean := mean_of_parts(word)) is not None}
    assert len(means) == len(words)
    if not pairs:
        return {word: centre + mean for word, mean in means.items()}
    inputs, targets = (np.array(each) for each in zip(*pairs, strict=True))
    width = inputs.shape[1]
    penalty = np.sqrt(0.1 * np.square(inputs).sum() / width) * np.eye(width)
    matrix = np.linalg.lstsq(np.vstack([inputs, penalty]), np.vstack([targets, np.zeros((width, width))]), rcond=None)[
        0
    ]
    return {word: centre + mean @ matrix + 0.3 * mean for word, mean in means.items()}
