"""The distance between two groups of documents by four measures, with a significance test and an interval.

All are computed from each document's sum of unit vectors and its number of occurrences in each cluster, so one
matrix product evaluates many divisions of the documents.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

Vectors = NDArray[np.float64]
# The distances between two groups, and the spread within each, by name: arrays with one number per division.
Distances = dict[str, Vectors]

MEASURES = ("excess", "apd", "prt", "jsd")
# Numbers in a block of permutations, to bound memory.
_BLOCK_NUMBERS = 2_000_000
_LARGEST_BLOCK = 1000
# The test of a word ends when this many permutations have reached its distance (Besag and Clifford 1991).
_ENOUGH = 100
# Permutations that split the vectors in the same way have the same distance, except for rounding.
_ROUNDING = 1e-10
# Bootstrap samples, and the quantiles of the interval.
_DRAWS, _QUANTILES = 200, (0.025, 0.975)


def distinct_rows(vectors: NDArray[np.float16]) -> NDArray[np.int64]:
    """Return the indexes of the distinct non-zero rows in ascending order; repeated lines add no evidence."""
    as_bytes = np.ascontiguousarray(vectors).view(np.dtype((np.void, vectors.dtype.itemsize * vectors.shape[1])))
    _, first = np.unique(as_bytes.ravel(), return_index=True)
    first = np.sort(first)
    return np.asarray(first[vectors[first].any(axis=1)])


@dataclass(frozen=True, eq=False)
class DocumentSums:
    """A word's occurrences in D documents, stored as the sums that all measures are computed from."""

    # Sum of the unit vectors of each document, float64, shape (D, 2P), or vectors with the same products
    vectors: Vectors
    usages: Vectors  # number of each document's occurrences in each of U clusters, float64, shape (D, U)

    @classmethod
    def of(
        cls, units: Vectors, documents: NDArray[np.int64], labels: NDArray[np.int64] | None = None, num_usages: int = 1
    ) -> "DocumentSums":
        """Sum unit vectors, shape (n, 2P), by document; count them by document and, with `labels`, by cluster."""
        distinct, rows = np.unique(documents, return_inverse=True)
        vectors, usages = np.zeros((len(distinct), units.shape[1])), np.zeros((len(distinct), num_usages))
        np.add.at(vectors, rows, units)
        np.add.at(usages, (rows, np.zeros(len(rows), np.int64) if labels is None else labels), 1.0)
        return cls(vectors, usages)

    def __len__(self) -> int:
        """The number of documents."""
        return len(self.vectors)

    def joined(self, other: "DocumentSums") -> "DocumentSums":
        """Join two sets of documents, and reduce their vectors to at most one dimension per document."""
        vectors = np.concatenate([self.vectors, other.vectors])
        if len(vectors) < vectors.shape[1]:
            vectors = np.ascontiguousarray(np.asarray(np.linalg.qr(vectors.T, mode="r")).T)
        return DocumentSums(vectors, np.concatenate([self.usages, other.usages]))

    def groups(self, weights: Vectors) -> "_Groups":
        """Form K groups; `weights`, shape (K, D), says how often each document is in each group.

        Copies of a document are not compared with one another, so that drawing with replacement keeps the mean spread.
        """
        sums, usages, counts = weights @ self.vectors, weights @ self.usages, self.usages.sum(axis=1)
        copies, sizes = weights * weights - weights, weights @ counts
        own = np.square(self.vectors).sum(axis=1)
        products = np.square(sums).sum(axis=1) - copies @ own - sizes
        pairs = sizes * sizes - copies @ (counts * counts) - sizes
        with np.errstate(divide="ignore", invalid="ignore"):
            spreads = np.where(pairs > 0, 1 - products / pairs, np.nan)
        return _Groups(sums, usages, sizes, spreads)


class _Groups(NamedTuple):
    """K groups of documents: sums of unit vectors, occurrence counts by cluster and in total, and spreads."""

    sums: Vectors
    usages: Vectors
    sizes: Vectors
    spreads: Vectors

    def distances(self, other: "_Groups") -> Distances:
        """Return the distances between each group and the group at the same position in `other`, and the spreads."""
        product = (self.sums * other.sums).sum(axis=1)
        norms = np.linalg.norm(self.sums, axis=1) * np.linalg.norm(other.sums, axis=1)
        first, second = (each.usages / each.sizes[:, None] for each in (self, other))
        apd = 1 - product / (self.sizes * other.sizes)
        return {
            "apd": apd,
            "excess": apd - (self.spreads + other.spreads) / 2,
            "prt": 1 - product / np.where(norms > 0, norms, 1),
            "jsd": (entr((first + second) / 2) - (entr(first) + entr(second)) / 2).sum(axis=1) / np.log(2),
            "old_spread": self.spreads,
            "new_spread": other.spreads,
        }


def compare_groups(old: DocumentSums, new: DocumentSums) -> Distances:
    """Return distances and spreads of two groups of at least two occurrences each, as arrays of one number."""
    return old.groups(np.ones((1, len(old)))).distances(new.groups(np.ones((1, len(new)))))


def permutation_test(
    old: DocumentSums, new: DocumentSums, measure: str, permutations: int, generator: np.random.Generator
) -> tuple[float, float]:
    """Return the p-value (the share of random divisions that reach the distance) and the divisions' mean distance.

    The test is sequential: it ends early when 100 divisions have reached the distance. Their share of the divisions
    drawn until then is a valid p-value too (Besag and Clifford 1991, "Sequential Monte Carlo p-values").
    """
    pooled = old.joined(new)
    own = np.repeat([[1.0, 0.0]], [len(old), len(new)], axis=1)
    observed = pooled.groups(own).distances(pooled.groups(1 - own))[measure][0] - _ROUNDING
    drawn = reached = 0
    total = 0.0
    for weights in _divisions(len(old), len(pooled), permutations, generator):
        values = pooled.groups(weights).distances(pooled.groups(1 - weights))[measure]
        hits = np.flatnonzero(values >= observed)
        total, before, drawn = total + float(values.sum()), drawn, drawn + len(values)
        if reached + len(hits) >= _ENOUGH:
            return _ENOUGH / (before + int(hits[_ENOUGH - reached - 1]) + 1), total / drawn
        reached += len(hits)
    return (reached + 1) / (drawn + 1), total / drawn


def _divisions(num_first: int, num_all: int, permutations: int, generator: np.random.Generator) -> Iterator[Vectors]:
    """Yield random divisions in blocks of shape (K, D): 1 for documents in the first group, 0 for the others."""
    drawn = 0
    while drawn < permutations:
        size = min(permutations - drawn, _LARGEST_BLOCK, max(1, _BLOCK_NUMBERS // num_all))
        chosen = np.argpartition(generator.random((size, num_all)), num_first - 1, axis=1)[:, :num_first]
        weights = np.zeros((size, num_all))
        np.put_along_axis(weights, chosen, 1.0, axis=1)
        yield weights
        drawn += size


def bootstrap_interval(
    old: DocumentSums, new: DocumentSums, measure: str, generator: np.random.Generator
) -> tuple[float, float]:
    """Return the 95% interval of a measure, from 200 draws of each group's documents with replacement.

    It is shifted so that the mean over the draws is the measured distance.
    """
    observed = compare_groups(old, new)[measure][0]
    first, second = (
        each.groups(generator.multinomial(len(each), np.full(len(each), 1 / len(each)), _DRAWS).astype(np.float64))
        for each in (old, new)
    )
    values = first.distances(second)[measure]
    low, high = np.nanquantile(values, _QUANTILES) + observed - np.nanmean(values)
    return float(low), float(high)
