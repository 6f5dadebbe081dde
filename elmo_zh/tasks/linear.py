"""Linear classifiers: logistic regression on character n-grams weighted by TF-IDF, or on pooled vectors.

Vectors are pooled into their mean, standard deviation, maximum and minimum over the tokens of a text. A pair is
described by how the features of its texts differ and what they share.
"""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags, hstack, issparse
from scipy.special import log_softmax
from torch import Tensor

from elmo_zh.bundle.word2vec_table import Word2Vec
from elmo_zh.model.kernels.execution import with_half_of_the_threads
from elmo_zh.tasks.encode_texts import UnitText
from elmo_zh.tasks.vector_cache import VectorCache

# The inverse strength of the penalty.
_STRENGTHS = (1.0, 10.0, 100.0)
# Kinds of features: character n-grams, or the pooled vectors of the tokens.
CHARACTERS, WORD2VEC, ELMO = "characters", "word2vec", "elmo"
LONGEST_GRAM = 3
# Mean, standard deviation, maximum and minimum.
POOLINGS = 4
# Limits the number of weights: many n-grams times many classes would need gigabytes.
_MOST_WEIGHTS = 5_000_000
_MOST_STEPS = 100
_SMALLEST = 1e-6
Floats = NDArray[np.float64]
Features = Any  # float32, shape (N, D): an array (float16 too), or a sparse matrix of rows


def log_loss(logs: Floats, classes: NDArray[np.int64]) -> float:
    """Return the mean negative log probability of the true class."""
    return float(-logs[np.arange(len(classes)), classes].mean())


def known_grams(texts: Iterable[str]) -> dict[str, int]:
    """Return the character n-grams that occur in at least two texts, numbered in alphabetical order."""
    num_texts = Counter(chain.from_iterable(set(_grams(text.lower())) for text in texts))
    return {gram: number for number, gram in enumerate(sorted(gram for gram, n in num_texts.items() if n > 1))}


def gram_features(texts: Sequence[str], numbers: Mapping[str, int]) -> Features:
    """Return 1 + log(count) for each numbered n-gram in each text, as a sparse float32 matrix, shape (N, D)."""
    rows = []
    for text in texts:
        counts = Counter(gram for gram in _grams(text.lower()) if gram in numbers)
        rows.append(np.array(sorted((numbers[gram], n) for gram, n in counts.items()), np.int32).reshape(-1, 2))
    columns, counts_of = np.concatenate([np.zeros((0, 2), np.int32), *rows]).T
    ends = np.cumsum([0, *map(len, rows)])
    return csr_matrix(((1 + np.log(counts_of)).astype(np.float32), columns, ends), (len(texts), len(numbers)))


def _grams(text: str) -> Iterator[str]:
    for length in range(1, LONGEST_GRAM + 1):
        yield from (text[start : start + length] for start in range(len(text) - length + 1))


@dataclass(frozen=True, eq=False)
class LinearModel:
    """Logistic regression on features that are shifted, scaled, and normalised to length 1 per text.

    Attributes:
        columns: The features to read, int64, shape (D,).
        shift: Subtracted from each feature, float32, shape (D,); zeros for sparse features.
        scale: Factor for each feature after the shift, float32, shape (D,).
        weights: Weight of each feature for each class, float32, shape (D, K).
        bias: Bias of each class, float32, shape (K,).
    """

    columns: NDArray[np.int64]
    shift: Features
    scale: Features
    weights: Features
    bias: Features

    def log_probabilities(self, features: Features) -> Floats:
        """Return the log-probability of each class for each text, float64, shape (N, K)."""
        scaled = _scaled(features[:, self.columns], self.shift, self.scale)
        found: Floats = log_softmax((scaled @ self.weights + self.bias).astype(np.float64), axis=1)
        return found


def _scaling(features: Features, num_classes: int) -> tuple[NDArray[np.int64], Features, Features]:
    """Return the columns of the features to use, with their shift and scale.

    Sparse features, the most frequent that occur in two texts, are scaled by inverse document frequency; others are
    standardised.
    """
    if not issparse(features):
        scale = 1 / np.maximum(features.std(axis=0, dtype=np.float32), _SMALLEST)
        return np.arange(features.shape[1]), features.mean(axis=0, dtype=np.float32), scale
    texts = np.bincount(features.indices, minlength=features.shape[1])
    frequent = np.argsort(-texts, kind="stable")[: max(1, _MOST_WEIGHTS // num_classes)]
    columns = np.sort(frequent[texts[frequent] > 1])
    scale = np.log((1 + features.shape[0]) / (1 + texts[columns])) + 1
    return columns, np.zeros(len(columns), np.float32), scale.astype(np.float32)


def _scaled(features: Features, shift: Features, scale: Features) -> Features:
    if issparse(features):
        scaled = features @ diags(scale)
        lengths = np.sqrt(np.asarray(scaled.multiply(scaled).sum(axis=1)).ravel())
        return (diags(1 / np.maximum(lengths, _SMALLEST)) @ scaled).tocsr()
    scaled = (features - shift) * scale
    return scaled / np.maximum(np.linalg.norm(scaled, axis=1, keepdims=True), _SMALLEST)


@dataclass(frozen=True, eq=False)
class FittedLinear:
    """A linear model, and predictions for each training text by models that have not seen it.

    Attributes:
        model: The model fitted on all training texts.
        held_out: Log-probabilities of each training text from the model that had not seen its fold, shape (N, K).
        seconds: The total duration of all fits.
    """

    model: LinearModel
    held_out: Floats
    seconds: float


def fit_linear(
    features: Features,
    classes: NDArray[np.int64],
    num_classes: int,
    fold_of: NDArray[np.int64],
    strengths: Sequence[float] = _STRENGTHS,
) -> FittedLinear:
    """Fit a model on all texts, and one per fold on the other folds, with the penalty that suits the first fold best.

    Args:
        features: Shape (N, D).
        classes: Shape (N,).
        num_classes: K.
        fold_of: Number of the fold of each text, shape (N,).
        strengths: Inverse strengths of the penalty to choose from, in ascending order.
    """
    started = time.perf_counter()
    held_out = np.full((len(classes), num_classes), -np.log(num_classes))
    best = strengths[0]
    for fold in range(fold_of.max() + 1):
        rest, own = fold_of != fold, fold_of == fold
        if not rest.any() or not own.any():
            continue
        models = fit_path(features[rest], classes[rest], num_classes, [best] if fold else strengths)
        found = {strength: model.log_probabilities(features[own]) for strength, model in models}
        best = min(found, key=lambda strength: log_loss(found[strength], classes[own]))
        held_out[own] = found[best]
    [(_, model)] = fit_path(features, classes, num_classes, [best])
    return FittedLinear(model, held_out, time.perf_counter() - started)


@with_half_of_the_threads()
def fit_path(
    features: Features, classes: NDArray[np.int64], num_classes: int, strengths: Sequence[float]
) -> list[tuple[float, LinearModel]]:
    """Fit with each strength in turn, starting from the previous one's weights.

    Args:
        features: Shape (N, D).
        classes: Shape (N,).
        num_classes: K.
        strengths: Inverse strengths of the penalty, in ascending order.

    Returns:
        Each strength with its model.
    """
    columns, shift, scale = _scaling(features, num_classes)
    scaled = _scaled(features[:, columns], shift, scale)
    transposed = scaled.T.tocsr() if issparse(scaled) else scaled.T
    targets = torch.eye(num_classes, dtype=torch.float64)[torch.from_numpy(classes)]
    count, width = scaled.shape
    found, parameters = [], torch.zeros(width + 1, num_classes, dtype=torch.float64)
    for strength in strengths:
        penalty = 1 / (strength * count)

        def loss(penalty: float = penalty) -> Tensor:
            weights = parameters[:-1]
            logs = torch.log_softmax(_product(scaled, weights) + parameters[-1], dim=1)
            errors = (logs.exp() - targets) / count
            gradient = _product(transposed, errors) + penalty * weights
            parameters.grad = torch.cat([gradient, errors.sum(dim=0, keepdim=True)])
            value: Tensor = (weights**2).sum() * penalty / 2 - (logs * targets).sum() / count
            return value

        torch.optim.LBFGS(
            [parameters], max_iter=_MOST_STEPS, tolerance_grad=1e-4, tolerance_change=1e-6, history_size=10,
            line_search_fn="strong_wolfe",
        ).step(loss)  # type: ignore[no-untyped-call]  # fmt: skip
        fitted = parameters.float().numpy()
        found.append((strength, LinearModel(columns, shift, scale, fitted[:-1], fitted[-1])))
    return found


def _product(matrix: Features, right: Tensor) -> Tensor:
    """Return the product of features and float64 numbers, computed in float32 without NumPy's threads.

    NumPy's BLAS threads wait for each other in every short product, which takes twenty times as long on a busy machine.
    """
    if issparse(matrix):
        return torch.from_numpy(matrix @ right.float().numpy()).double()
    return (torch.from_numpy(matrix) @ right.float()).double()


def example_features(
    name: str,
    examples: Sequence[Sequence[UnitText]],
    numbers: Mapping[str, int],
    cache: VectorCache | None,
    word2vec: Word2Vec | None,
) -> Features:
    """Return the features of examples for a model on `CHARACTERS`, `WORD2VEC` or `ELMO`, float32, shape (N, D).

    Args:
        name: Kind of features.
        examples: The text of each example, or the two texts of a pair, which are compared in twice as many columns.
        numbers: The character n-grams to read, with their numbers.
        cache: The ELMo vectors of the texts; None for other features.
        word2vec: The word2vec vectors of their tokens; None for other features.
    """
    found = [_text_features(name, texts, numbers, cache, word2vec) for texts in zip(*examples, strict=True)]
    return found[0] if len(found) == 1 else _compared(*found)


def _text_features(
    name: str,
    texts: Sequence[UnitText],
    numbers: Mapping[str, int],
    cache: VectorCache | None,
    word2vec: Word2Vec | None,
) -> Features:
    if name == CHARACTERS:
        return gram_features([text.text for text in texts], numbers)
    if name == ELMO:
        assert cache is not None
        return np.stack([_pooled(cache.vectors[cache.rows(text.sentences)]) for text in texts])
    assert word2vec is not None
    return np.stack([_pooled(word2vec.table[word2vec.rows(text.tokens)]) for text in texts])


def _compared(first: Features, second: Features) -> Features:
    """Return the absolute differences of two texts' features, followed by their minima (sparse) or products."""
    if issparse(first):
        return hstack([abs(first - second), first.minimum(second)], format="csr")
    return np.concatenate([np.abs(first - second), first * second], axis=1)


def _pooled(vectors: NDArray[Any]) -> Features:
    """Pool the vectors of a text's tokens into one row, `POOLINGS` times as long; zeros for a text without tokens."""
    found = np.asarray(vectors, np.float32) if len(vectors) else np.zeros((1, *vectors.shape[1:]), np.float32)
    pooled = (found.mean(axis=0), found.std(axis=0), found.max(axis=0), found.min(axis=0))
    return np.concatenate([each.ravel() for each in pooled])
