"""Maps: places in the plane for the vectors of a word, near each other where the vectors are similar."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

METHODS = ("pca", "tsne")
# The largest coordinate of a map. Whole numbers keep the page small.
SCALE = 1000
# Below this t-SNE has no neighbourhood to keep.
_LEAST_FOR_TSNE = 5
# The number of neighbours whose distances t-SNE tries to keep (van der Maaten and Hinton 2008: 5 to 50).
_PERPLEXITY = 20.0
# Steps of gradient descent, half of them with early exaggeration. Maps of some hundred points hardly change after.
_STEPS = 500
# Distances of unit vectors below this are rounding: half precision keeps 11 bits.
_SAME = 2.0**-10


class WordMaps(NamedTuple):
    """The maps of a word in one layer; each is int64, shape (n, 2), within -SCALE and SCALE.

    Attributes:
        pca: The first two principal components.
        tsne: t-SNE, which starts from them.
    """

    pca: NDArray[np.int64]
    tsne: NDArray[np.int64]


def compute_maps(vectors: NDArray[np.float64], seed: int) -> WordMaps:
    """Return the maps of some vectors.

    Vectors that are all the same, such as those of one word in the token layer, are all at the origin. The same vectors
    and seed give the same maps on the same machine.

    Args:
        vectors: Unit vectors, float64, shape (n, 2P).
        seed: Seed of t-SNE.
    """
    from sklearn.manifold import TSNE

    centred = vectors - vectors.mean(axis=0)
    if np.abs(centred).max() < _SAME:
        origin = np.zeros((len(vectors), 2), np.int64)
        return WordMaps(origin, origin)
    components = principal_components(centred)
    if len(vectors) < _LEAST_FOR_TSNE:
        return WordMaps(_scaled(components), _scaled(components))
    # t-SNE wants a start that is small; scikit-learn scales its own start by PCA so.
    start = components / components[:, 0].std() * 1e-4
    perplexity = min(_PERPLEXITY, (len(vectors) - 1) / 3)
    tsne = TSNE(perplexity=perplexity, init=start.astype(np.float32), random_state=seed, max_iter=_STEPS)
    return WordMaps(_scaled(components), _scaled(tsne.fit_transform(vectors)))


def principal_components(centred: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the first two principal components of centred vectors, float64, shape (n, 2).

    The sign is chosen so that the largest coordinate of each component is positive.
    """
    left, values, _ = np.linalg.svd(centred, full_matrices=False)
    components = np.zeros((len(centred), 2))
    for axis in range(min(2, len(values))):
        component = left[:, axis] * values[axis]
        components[:, axis] = component * (np.sign(component[np.argmax(np.abs(component))]) or 1.0)
    return components


def _scaled(places: NDArray[np.floating]) -> NDArray[np.int64]:
    middle = (places.max(axis=0) + places.min(axis=0)) / 2
    largest = np.abs(places - middle).max() or 1.0
    return np.asarray(np.rint((places - middle) / largest * SCALE), np.int64)
