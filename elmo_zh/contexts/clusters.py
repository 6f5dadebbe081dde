"""Vectors in clusters, whose number is chosen; one cluster is a possible answer.

The vectors are scaled to length 1 and reduced to the eight principal components with the most variance, since distances
in hundreds of dimensions hardly differ. k-means is run there for two to six clusters, and the number with the largest
mean silhouette (Rousseeuw 1987) is a candidate. k-means cuts any cloud, so this silhouette is compared with those of
k-means in one normal distribution with the same variances, drawn 20 times. Of more than 60 vectors a random sample is
tested.

- If it is not more than three standard deviations above their mean, there is one cluster.
- If it is, and also above 0.5, "a reasonable structure" (Kaufman and Rousseeuw 1990, "Finding Groups in Data"), there
  are as many clusters as the candidate.
- Otherwise there are two: more than one, but too blurred to be counted.

Blurred clouds have their largest silhouette nearly always at five or six. benchmarks/usages.py measures the choice.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.contexts.nearest import unit_rows
from elmo_zh.errors import ElmoZhError
from elmo_zh.extras import install_line

Floats = NDArray[np.float64]

NUM_COMPONENTS = 8
MOST_CLUSTERS = 6
# More clusters are tried only if each has so many vectors on average.
LEAST_PER_CLUSTER = 5
# k-means sees a random sample of so many vectors; the others join the nearest centre.
MOST_FITTED = 1000
# The tests see at most so many: with very many vectors the slightest bend of a cloud would pass for two usages.
MOST_TESTED = 60
# Standard deviations above the mean silhouette of drawn normal distributions.
LEAST_SCORE = 3.0
# The silhouette from which on there may be more than two clusters.
CLEAR_SILHOUETTE = 0.5
_STARTS, _DRAWS = 10, 20


@dataclass(frozen=True, eq=False)
class Clusters:
    """Vectors in clusters.

    Attributes:
        labels: The cluster of each vector, from 0; the largest cluster is the first. int64, shape (n,).
        places: The principal components of each vector, in descending order of variance, float64, shape (n, d).
        centres: The mean place of each cluster, float64, shape (K, d).
        choice: Reason for their number; None if the number was given.
    """

    labels: NDArray[np.int64]
    places: Floats
    centres: Floats
    choice: "ClusterChoice | None"


@dataclass(frozen=True)
class ClusterChoice:
    """Reason for the number of clusters.

    Attributes:
        candidate: The number of clusters with the largest silhouette; 1 if there are too few vectors for two.
        silhouette: The mean silhouette of these.
        score: By how many standard deviations it is above that of normal distributions.
    """

    candidate: int = 1
    silhouette: float = 0.0
    score: float = 0.0

    @property
    def number(self) -> int:
        """The number of clusters that is chosen."""
        if self.score <= LEAST_SCORE:
            return 1
        return self.candidate if self.silhouette > CLEAR_SILHOUETTE else 2


def find_clusters(vectors: NDArray[np.floating[Any]], number: int | None = None, seed: int = 1) -> Clusters:
    """Return vectors in clusters. The same vectors and seed give the same clusters.

    Args:
        vectors: Shape (n, D), at least two.
        number: The number of clusters; None chooses it.
        seed: Seed of the starts of k-means, and of the sample.

    Raises:
        ElmoZhError: If scikit-learn is not installed.
    """
    limits = _import_threadpoolctl()
    fitted = np.arange(len(vectors))
    if len(vectors) > MOST_FITTED:
        fitted = np.sort(np.random.default_rng(seed).choice(len(vectors), MOST_FITTED, replace=False))
    # Sums of several threads differ in their last bits from run to run.
    with limits(1):
        places = _principal_components(unit_rows(vectors), fitted)
        choice = choose_number(places[fitted], seed) if number is None else None
        _, centres = _means(places[fitted], choice.number if choice else number or 1, seed)
        labels = np.square(places[:, None] - centres).sum(axis=2).argmin(axis=1)
    order = np.argsort(-np.bincount(labels, minlength=len(centres)), kind="stable")
    return Clusters(np.argsort(order)[labels], places, centres[order], choice)


def choose_number(places: Floats, seed: int) -> ClusterChoice:
    """Choose the number of clusters of places, shape (n, d)."""
    from sklearn.metrics import silhouette_score

    generator = np.random.default_rng(seed)
    if len(places) > MOST_TESTED:
        places = places[generator.choice(len(places), MOST_TESTED, replace=False)]
    most = min(MOST_CLUSTERS, len(places) // LEAST_PER_CLUSTER, len(np.unique(places, axis=0)) - 1)
    silhouettes = {
        number: float(silhouette_score(places, _means(places, number, seed)[0])) for number in range(2, most + 1)
    }
    if not silhouettes:
        return ClusterChoice()
    best = max(silhouettes, key=lambda number: silhouettes[number])
    spread = places.std(axis=0)
    drawn = []
    for _ in range(_DRAWS):
        cloud = generator.standard_normal(places.shape) * spread
        drawn.append(silhouette_score(cloud, _means(cloud, best, seed, starts=1)[0]))
    score = float((silhouettes[best] - np.mean(drawn)) / np.std(drawn))
    return ClusterChoice(candidate=best, silhouette=silhouettes[best], score=score)


def _principal_components(vectors: Floats, fitted: NDArray[np.int64]) -> Floats:
    """Return the places of all vectors on the principal axes of the fitted ones, shape (n, d)."""
    mean = vectors[fitted].mean(axis=0)
    _, _, axes = np.linalg.svd(vectors[fitted] - mean, full_matrices=False)
    axes = axes[:NUM_COMPONENTS]
    # The sign of an axis is arbitrary.
    signs = np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)])
    return np.asarray((vectors - mean) @ (axes * signs[:, None]).T)


def _means(places: Floats, number: int, seed: int, starts: int = _STARTS) -> tuple[NDArray[np.int64], Floats]:
    """Return the clusters of k-means and their centres."""
    if number == 1:
        return np.zeros(len(places), np.int64), places.mean(axis=0, keepdims=True)
    from sklearn.cluster import KMeans

    fit = KMeans(number, n_init=starts, random_state=seed % 2**32, algorithm="lloyd").fit(places)
    return fit.labels_.astype(np.int64), fit.cluster_centers_


def _import_threadpoolctl() -> Any:
    """Return `threadpool_limits`, which comes with scikit-learn."""
    try:
        import sklearn.cluster  # noqa: F401
        from threadpoolctl import threadpool_limits
    except ImportError:
        raise ElmoZhError(f"senses needs scikit-learn. Install it with: {install_line('sklearn')}") from None
    return threadpool_limits
