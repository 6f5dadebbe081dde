"""Linear models of classes: logistic regression on runs of characters weighted by TF-IDF, or on pooled vectors."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_matrix, diags, issparse
from scipy.special import log_softmax

from elmo_zh.bundle.word2vec import Word2Vec
from elmo_zh.tasks.datasets import Dataset, fold_numbers
from elmo_zh.tasks.encode_texts import Texts
from elmo_zh.tasks.examples import Example
from elmo_zh.tasks.mixture import Floats, choose_weights, log_loss, mix
from elmo_zh.tasks.predictions import ClassPrediction, Prediction
from elmo_zh.tasks.vectors import VectorCache

# The inverse strength of the penalty.
_STRENGTHS = (1.0, 10.0, 100.0)
_NUM_FOLDS = 5
# What a linear model reads: runs of characters, or the mean of the vectors of the tokens.
CHARACTERS, WORD2VEC, ELMO = "characters", "word2vec", "elmo"
_LONGEST_GRAM = 3
_MOST_STEPS = 100
_SMALLEST = 1e-6
Features = Any  # float32, shape (N, D): an array, or a sparse matrix of rows


def gram_features(texts: Sequence[str]) -> Features:
    """Return one plus the logarithm of how often each text has each run of characters that two texts have, sparse."""
    counts = [Counter(_grams(text.lower())) for text in texts]
    num_texts = Counter(chain.from_iterable(counts))
    numbers = {gram: number for number, gram in enumerate(sorted(gram for gram, n in num_texts.items() if n > 1))}
    rows = [sorted((numbers[gram], count) for gram, count in each.items() if gram in numbers) for each in counts]
    columns, values = [[pair[side] for row in rows for pair in row] for side in (0, 1)]
    ends = np.cumsum([0, *map(len, rows)])
    return csr_matrix(((1 + np.log(values)).astype(np.float32), columns, ends), (len(texts), len(numbers)))


def _grams(text: str) -> Iterator[str]:
    for length in range(1, _LONGEST_GRAM + 1):
        yield from (text[start : start + length] for start in range(len(text) - length + 1))


@dataclass(frozen=True, eq=False)
class LinearModel:
    """Logistic regression on features that are shifted, scaled, and brought to length 1 in each text.

    Attributes:
        columns: The features that it reads, int64, shape (D,).
        shift: Taken from each of them, float32, shape (D,); zeros for sparse features.
        scale: Factor of each of them after that, float32, shape (D,).
        weights: Factor of each of them for each class, float32, shape (D, K).
        bias: Added for each class, float32, shape (K,).
    """

    columns: NDArray[np.int64]
    shift: Features
    scale: Features
    weights: Features
    bias: Features

    def log_probabilities(self, features: Features) -> Floats:
        """Return the logarithms of the probabilities of the classes, float64, shape (N, K)."""
        scaled = _scaled(features[:, self.columns], self.shift, self.scale)
        found: Floats = log_softmax((scaled @ self.weights + self.bias).astype(np.float64), axis=1)
        return found


def _scaling(features: Features) -> tuple[NDArray[np.int64], Features, Features]:
    """Return which features to read, with shift and scale.

    Sparse ones have to be in two texts, and are scaled by the inverse document frequency; others are standardised.
    """
    if not issparse(features):
        scale = 1 / np.maximum(features.std(axis=0), _SMALLEST)
        return np.arange(features.shape[1]), features.mean(axis=0), scale
    texts = np.bincount(features.indices, minlength=features.shape[1])
    columns = np.flatnonzero(texts > 1)
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
    """A linear model, and what models that had not seen a training text predict for it.

    Attributes:
        model: The model that has learned from all training texts.
        held_out: Logarithms of the probabilities of the training texts by the models of the other folds, (N, K).
        seconds: The duration of all fits.
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
    """Fit a model on all texts and, for each fold, on the others; the penalty is the best for the first fold.

    Args:
        features: Shape (N, D).
        classes: Shape (N,).
        num_classes: K.
        fold_of: Number of the fold of each text, shape (N,).
        strengths: Inverse strengths of the penalty to choose from, rising.
    """
    started = time.perf_counter()
    held_out = np.full((len(classes), num_classes), -np.log(num_classes))
    best = strengths[0]
    for fold in range(fold_of.max() + 1):
        rest, own = fold_of != fold, fold_of == fold
        if not rest.any():
            continue
        models = _fit_path(features[rest], classes[rest], num_classes, [best] if fold else strengths)
        found = {strength: model.log_probabilities(features[own]) for strength, model in models}
        best = min(found, key=lambda strength: log_loss(found[strength], classes[own]))
        held_out[own] = found[best]
    [(_, model)] = _fit_path(features, classes, num_classes, [best])
    return FittedLinear(model, held_out, time.perf_counter() - started)


def _fit_path(
    features: Features, classes: NDArray[np.int64], num_classes: int, strengths: Sequence[float]
) -> list[tuple[float, LinearModel]]:
    """Fit with each strength, starting from the weights of the one before."""
    columns, shift, scale = _scaling(features)
    scaled = _scaled(features[:, columns], shift, scale)
    transposed = scaled.T.tocsr() if issparse(scaled) else scaled.T
    targets = np.eye(num_classes)[classes]
    count, width = scaled.shape
    found, start = [], np.zeros((width + 1) * num_classes)

    def loss(flat: Floats, strength: float) -> tuple[float, Floats]:
        parameters = flat.reshape(width + 1, num_classes)
        weights, penalty = parameters[:-1], 1 / (strength * count)
        logs = log_softmax(scaled @ weights.astype(np.float32) + parameters[-1], axis=1)
        errors = (np.exp(logs) - targets) / count
        gradient = np.empty_like(parameters)
        gradient[:-1] = transposed @ errors.astype(np.float32) + penalty * weights
        gradient[-1] = errors.sum(axis=0)
        return float((weights**2).sum() * penalty / 2 - (logs * targets).sum() / count), gradient.ravel()

    for strength in strengths:
        options = {"maxiter": _MOST_STEPS, "gtol": 1e-4, "ftol": 1e-6}
        start = minimize(loss, start, args=(strength,), jac=True, method="L-BFGS-B", options=options).x
        parameters = start.reshape(width + 1, num_classes).astype(np.float32)
        found.append((strength, LinearModel(columns, shift, scale, parameters[:-1], parameters[-1])))
    return found


class LinearModels:
    """Fits linear models on some of the examples of a dataset; the features of all are computed once, when needed."""

    def __init__(
        self, dataset: Dataset, texts: Texts, *, cache: Callable[[], VectorCache], word2vec: Word2Vec, seed: int
    ) -> None:
        """Take all examples and their texts; `seed` determines the folds."""
        self._examples = [*chain.from_iterable(dataset.parts().values())]
        # Examples have no equality of their own, so each is one of its own.
        self._rows = {id(example): row for row, example in enumerate(self._examples)}
        self._texts = [text for [text] in chain.from_iterable(texts.values())]
        self._cache, self._word2vec, self._seed = cache, word2vec, seed
        self._features: dict[str, Features] = {}
        self._fitted: dict[tuple[Any, ...], FittedLinear] = {}

    def predict(self, names: Sequence[str], data: Dataset) -> tuple[list[Prediction], float]:
        """Return what models of `CHARACTERS`, `WORD2VEC` or `ELMO` together predict for the test examples.

        They are fitted on the training examples, unless that is done, and mixed by weights that held-out ones choose.
        The second value is the seconds of fitting.
        """
        labels = data.labels()
        numbers = {label: number for number, label in enumerate(labels)}
        classes = np.array([numbers[example.labels[0]] for example in data.train], np.int64)
        fitted = [self._fit(name, data.train, classes) for name in names]
        weights = choose_weights([each.held_out for each in fitted], classes)
        logs = mix(
            [each.model.log_probabilities(self._of(name, data.test)) for name, each in zip(names, fitted, strict=True)],
            weights,
        )
        found = [dict(zip(labels, row, strict=True)) for row in np.exp(logs).tolist()]
        predictions = [ClassPrediction(max(row, key=lambda label: row[label]), row) for row in found]
        return list(predictions), sum(each.seconds for each in fitted)

    def _fit(self, name: str, train: Sequence[Example], classes: NDArray[np.int64]) -> FittedLinear:
        key = (name, *(self._rows[id(example)] for example in train))
        if key not in self._fitted:
            folds = fold_numbers(train, _NUM_FOLDS, self._seed)
            self._fitted[key] = fit_linear(self._of(name, train), classes, int(classes.max()) + 1, folds)
        return self._fitted[key]

    def _of(self, name: str, examples: Sequence[Example]) -> Features:
        if name not in self._features:
            self._features[name] = self._compute(name)
        return self._features[name][[self._rows[id(example)] for example in examples]]

    def _compute(self, name: str) -> Features:
        if name == CHARACTERS:
            return gram_features([example.texts[0] for example in self._examples])
        if name == ELMO:
            cache = self._cache()
            return np.stack([_mean(cache.vectors[cache.rows(text.sentences)]) for text in self._texts])
        tokens = [list(chain.from_iterable(text.sentences)) for text in self._texts]
        return np.stack([_mean(self._word2vec.table[self._word2vec.rows(each)]) for each in tokens])


def _mean(vectors: NDArray[np.float16]) -> Features:
    """Return the mean of the vectors of a text's tokens as one row; zeros for a text without tokens."""
    return (vectors.astype(np.float32).sum(axis=0) / max(1, len(vectors))).ravel()
