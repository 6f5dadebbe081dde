"""Measure how far vectors of lower precision are from those of float32."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elmo_zh.bundle.read import Bundle
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.model.precision import FLOAT32, PRECISIONS


@dataclass(frozen=True, kw_only=True)
class Deviation:
    """Deviation of one layer's vectors at one precision, over all tokens.

    Attributes:
        precision: Precision of the matrix products.
        layer: Number of the layer, 0 being the token layer.
        largest: Largest absolute difference of an element.
        mean: Mean absolute difference of the elements.
        cosine: Mean cosine of a vector and the same vector in float32.
        lowest_cosine: Lowest of these cosines.
    """

    precision: str
    layer: int
    largest: float
    mean: float
    cosine: float
    lowest_cosine: float


def measure_deviations(bundle: Bundle, sentences: Sequence[Sequence[str]]) -> list[Deviation]:
    """Return the deviations of every precision but float32, for segmented sentences, on the processor."""
    found = {
        name: np.concatenate(ElmoEmbedder(bundle, "cpu", name).compute_vectors(sentences), axis=1, dtype=np.float64)
        for name in PRECISIONS
    }
    exact = found.pop(FLOAT32.name)
    return [
        _compare(name, layer, vectors[layer], exact[layer])
        for name, vectors in found.items()
        for layer in range(len(exact))
    ]


def _compare(precision: str, layer: int, found: NDArray[np.float64], exact: NDArray[np.float64]) -> Deviation:
    difference = np.abs(found - exact)
    lengths = np.linalg.norm(found, axis=1) * np.linalg.norm(exact, axis=1)
    cosines = (found * exact).sum(axis=1) / lengths
    return Deviation(
        precision=precision,
        layer=layer,
        largest=float(difference.max()),
        mean=float(difference.mean()),
        cosine=float(cosines.mean()),
        lowest_cosine=float(cosines.min()),
    )
