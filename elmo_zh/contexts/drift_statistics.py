"""The distance between two groups of vectors: three measures and their permutation test; and word2vec's distances.

The measures follow from the sums of the two groups' unit vectors, so a permutation costs one product with a vector of
zeros and ones, and many permutations one product of matrices.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.contexts.nearest import unit_rows
from elmo_zh.corpus.text_files import iter_lines
from elmo_zh.errors import RunError
from elmo_zh.vocabulary.vocabulary import SPECIALS, Vocabulary
from elmo_zh.word2vec.vectors import load_word_vectors

Vectors = NDArray[np.float64]

MEASURES = ("excess", "apd", "prt")
# Numbers of a block of permutations, which bounds its memory.
_BLOCK_NUMBERS = 2_000_000
_LARGEST_BLOCK = 1000
# The test of a word ends when so many permutations have reached its distance (Besag and Clifford 1991).
_ENOUGH = 100
# Permutations that split the vectors alike have the same distance but for rounding.
_ROUNDING = 1e-10


@dataclass(frozen=True, kw_only=True)
class Distances:
    """Distances of two groups of vectors, described in `WordDrift`; for several divisions, an array of each."""

    apd: Any
    prt: Any
    old_spread: Any
    new_spread: Any

    @property
    def excess(self) -> Any:
        """APD minus the mean of the two spreads: 0 on average if both groups come from one distribution."""
        return self.apd - (self.old_spread + self.new_spread) / 2


def distinct_unit_rows(vectors: NDArray[np.float16]) -> Vectors:
    """Return the distinct rows in their order, each divided by its norm, float64, shape (n, D).

    Equal rows are occurrences in equal sentences: a repeated line is no further evidence. Rows of zeros have no
    direction and are left out.
    """
    as_bytes = np.ascontiguousarray(vectors).view(np.dtype((np.void, vectors.dtype.itemsize * vectors.shape[1])))
    _, first = np.unique(as_bytes.ravel(), return_index=True)
    found = unit_rows(vectors[np.sort(first)])
    return np.asarray(found[found.any(axis=1)])


def compare_groups(old: Vectors, new: Vectors) -> Distances:
    """Return the distances of two groups of unit vectors, shapes (n, D) and (m, D), both of at least two."""
    first, second = old.sum(axis=0), new.sum(axis=0)
    return _distances(first[None], first + second, len(old), len(new), one=True)


def permutation_p(old: Vectors, new: Vectors, measure: str, permutations: int, generator: np.random.Generator) -> float:
    """Return the share of random divisions of all unit vectors into two groups at least as far apart.

    The test is sequential: it ends when 100 permutations have reached the distance, and then their share of those drawn
    is the p-value, which is as valid as that of a fixed number (Besag and Clifford 1991, "Sequential Monte Carlo
    p-values"). The smallest p-value is 1 / (permutations + 1).
    """
    # The measures do not change when the groups change places, and the product is smaller with the smaller one first.
    first, second = (old, new) if len(old) <= len(new) else (new, old)
    pooled = _rotate(np.concatenate([first, second]))
    total, num_first, num_all = pooled.sum(axis=0), len(first), len(pooled)
    observed = _value(pooled[None, :num_first].sum(axis=1), total, num_first, num_all, measure)[0] - _ROUNDING
    drawn = reached = 0
    while drawn < permutations:
        size = min(permutations - drawn, _LARGEST_BLOCK, max(1, _BLOCK_NUMBERS // num_all))
        chosen = np.argpartition(generator.random((size, num_all)), num_first - 1, axis=1)[:, :num_first]
        indicators = np.zeros((size, num_all))
        np.put_along_axis(indicators, chosen, 1.0, axis=1)
        hits = np.flatnonzero(_value(indicators @ pooled, total, num_first, num_all, measure) >= observed)
        if reached + len(hits) >= _ENOUGH:
            return float(_ENOUGH / (drawn + int(hits[_ENOUGH - reached - 1]) + 1))
        drawn, reached = drawn + size, reached + len(hits)
    return float((reached + 1) / (drawn + 1))


def _rotate(vectors: Vectors) -> Vectors:
    """Return vectors with the same products in as few dimensions as there are vectors."""
    if len(vectors) >= vectors.shape[1]:
        return vectors
    return np.ascontiguousarray(np.asarray(np.linalg.qr(vectors.T, mode="r")).T)


def _value(sums: Vectors, total: Vectors, num_first: int, num_all: int, measure: str) -> NDArray[np.float64]:
    return np.asarray(getattr(_distances(sums, total, num_first, num_all - num_first), measure))


def _distances(sums: Vectors, total: Vectors, num_first: int, num_second: int, *, one: bool = False) -> Distances:
    """Return the distances for sums of the first group, shape (K, D), given the sum of both groups."""
    first = (sums * sums).sum(axis=1)
    with_all = sums @ total
    product = with_all - first
    second = total @ total - with_all - product
    norms = np.sqrt(np.maximum(first * second, 0))
    found = {
        "apd": 1 - product / (num_first * num_second),
        "prt": 1 - product / np.where(norms > 0, norms, 1),
        "old_spread": 1 - (first - num_first) / (num_first * (num_first - 1)),
        "new_spread": 1 - (second - num_second) / (num_second * (num_second - 1)),
    }
    return Distances(**{name: float(value[0]) for name, value in found.items()} if one else found)


def procrustes_distances(old_path: Path, new_path: Path) -> dict[str, float]:
    """Return the cosine distance between a word's two vectors, for each word that both files have.

    The files are in word2vec's text format. The vectors of the shared words are divided by their norms, and the old
    ones rotated onto the new ones by an orthogonal Procrustes alignment (Hamilton, Leskovec and Jurafsky 2016,
    "Diachronic Word Embeddings Reveal Statistical Laws of Semantic Change").
    """
    (old_words, old_width), (new_words, new_width) = _survey(old_path), _survey(new_path)
    if old_width != new_width:
        raise RunError(
            f"{old_path} has vectors of {old_width} numbers, {new_path} of {new_width}. Train both with one dimension."
        )
    shared = sorted(old_words & new_words)
    if not shared:
        raise RunError(f"{old_path} and {new_path} have no word in common. Give vectors of two texts in one language.")
    vocabulary = Vocabulary((*SPECIALS, *shared))
    return dict(zip(shared, distances_of_aligned(*(
        load_word_vectors(path, vocabulary, old_width).vectors for path in (old_path, new_path)
    )).tolist(), strict=True))  # fmt: skip


def distances_of_aligned(old: NDArray[np.float32], new: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the cosine distance of each pair of W rows after the best rotation of the old ones, shape (W,)."""
    first, second = (unit_rows(each) for each in (old, new))
    left, _, right = np.linalg.svd(first.T @ second)
    return np.asarray(1 - ((first @ (left @ right)) * second).sum(axis=1))


def _survey(path: Path) -> tuple[set[str], int]:
    """Return the words of a file of vectors, and the length of a vector."""
    words: set[str] = set()
    width = 0
    for number, line in enumerate(iter_lines(path), start=1):
        word, *numbers = line.rstrip(" ").split(" ")
        if number == 1 and len(numbers) == 1 and word.isdecimal():
            continue  # the header: number of words and dimension
        width = width or len(numbers)
        if len(numbers) != width or not numbers:
            raise RunError(
                f"{path}: line {number} has {len(numbers)} numbers, expected {width or 'a word and its vector'}."
                " Give a file in word2vec's text format, such as word2vec.txt of a run."
            )
        words.add(word)
    if not words:
        raise RunError(f"{path} has no vectors. Give a file in word2vec's text format, such as word2vec.txt of a run.")
    return words - set(SPECIALS), width
