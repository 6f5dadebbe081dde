"""Linear classifiers (logistic regression on TF-IDF of character n-grams or on vectors), and mixtures of classifiers.

ELMo and word2vec vectors are pooled into their mean, standard deviation, maximum and minimum over the tokens of a
text. A pair is described by how the features of its texts differ and what they share.

A mixture is the weighted mean of log-probabilities, the logarithm of a product of experts (Hinton 2002): if one expert
rules out a class, so does the mixture. Members are added one by one, each with the weight that gives the mixture the
best score on held-out labels.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import hstack, issparse
from scipy.special import log_softmax
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize

from elmo_zh.bundle.weights import load_tensors, save_tensors
from elmo_zh.bundle.word2vec_table import Word2Vec
from elmo_zh.reader.bilm import threads
from elmo_zh.tasks.datasets import Dataset, Numbers, fold_numbers
from elmo_zh.tasks.encode_texts import Texts, VectorCache
from elmo_zh.tasks.networks import Sizes

# Kinds of features, which are also the names of linear members; NETWORK is the only other member.
CHARACTERS, WORD2VEC, ELMO, NETWORK = "characters", "word2vec", "elmo", "bilstm"
MEMBERS = (CHARACTERS, ELMO, WORD2VEC, NETWORK)
# The inverse strengths of the penalty to choose from.
STRENGTHS = (1.0, 10.0, 100.0)
# Folds in which linear models are judged; two for many rows.
NUM_FOLDS, MANY_ROWS = 5, 20_000
# Weights are tenths.
STEPS = 10
# With fewer development labels the network, whose epoch they have chosen, can seem better than it is.
FEWEST_LABELS = 100
_LONGEST_GRAM, _POOLINGS = 3, 4
# Limits the memory of a fit: weights of n-grams and classes, and numbers of all texts.
_MOST_WEIGHTS, _MOST_NUMBERS = 5_000_000, 2**28
# 100 steps are close enough to the optimum, and a form of regularisation.
_MOST_STEPS = 100
_BLOCK_ROWS = 4096
_SMALLEST = 1e-6
_ARRAYS = ("shift", "scale", "weights", "bias")
Floats = NDArray[np.float64]
Matrix = Any  # shape (N, D): an array, or a sparse matrix of rows


@dataclass(frozen=True, eq=False)
class Features:
    """One kind of features of all examples.

    Attributes:
        texts: A matrix for each text of an example, shape (N, D); a pair has two.
        grams: The n-grams of the columns; empty for vectors.
    """

    texts: Sequence[Matrix]
    grams: NDArray[np.str_] = field(default_factory=lambda: np.array([], np.str_))

    @classmethod
    def of_characters(cls, texts: Texts, grams: Sequence[str] | None = None) -> "Features":
        """Return 1 + log(count) of character n-grams, by default of those that occur in at least two texts."""
        vectorizer = CountVectorizer(analyzer="char", ngram_range=(1, _LONGEST_GRAM), dtype=np.float32)
        vectorizer.set_params(preprocessor=str.lower, **({"min_df": 2} if grams is None else {"vocabulary": grams}))
        strings = [[text.text for text in column] for column in zip(*texts, strict=True)]
        try:
            if grams is None:
                vectorizer.fit([string for column in strings for string in column])
        except ValueError:  # no n-gram occurs twice
            return cls([np.zeros((len(texts), 0), np.float32)] * len(strings))
        matrices = [vectorizer.transform(column) for column in strings]
        for matrix in matrices:
            matrix.data = 1 + np.log(matrix.data)
        return cls(matrices, vectorizer.get_feature_names_out().astype(np.str_))

    @classmethod
    def of_vectors(cls, texts: Texts, vectors_of: Callable[[Any], NDArray[Any]]) -> "Features":
        """Return the pooled vectors of each text's tokens, float16."""

        def matrix(column: Sequence[Any]) -> NDArray[np.float16]:
            first = _pooled(vectors_of(column[0]))
            rows = np.empty((len(column), len(first)), np.float16)
            for row, text in enumerate(column):
                rows[row] = _pooled(vectors_of(text))
            return rows

        return cls(list(map(matrix, zip(*texts, strict=True))))

    @classmethod
    def of(
        cls,
        name: str,
        texts: Texts,
        cache: VectorCache | None,
        word2vec: Word2Vec | None,
        grams: Sequence[str] | None = None,
    ) -> "Features":
        """Return the features of a linear member: `CHARACTERS`, `WORD2VEC` or `ELMO`."""
        if name == CHARACTERS:
            return cls.of_characters(texts, grams)
        if name == ELMO:
            assert cache is not None
            return cls.of_vectors(texts, lambda text: cache.vectors[cache.rows(text.sentences)])
        assert word2vec is not None
        return cls.of_vectors(texts, lambda text: word2vec.table[word2vec.rows(text.tokens)])

    def at(self, rows: Numbers | slice, grams: Sequence[str] | None = None) -> Matrix:
        """Return the features of some examples, for all n-grams or only some; a pair has two columns per feature."""
        columns = slice(None) if grams is None or not len(self.grams) else np.searchsorted(self.grams, grams)
        matrices = [matrix[rows][:, columns] for matrix in self.texts]
        if len(matrices) == 1:
            return matrices[0]
        first, second = matrices
        if issparse(first):
            return hstack([abs(first - second), first.minimum(second)], format="csr")
        return np.concatenate([np.abs(first - second), first * second], axis=1)

    def useful_grams(self, rows: Numbers, num_classes: int) -> list[str]:
        """Return the n-grams in at least two texts of these examples, the most frequent if there are too many."""
        if not len(self.grams):
            return []
        counts = np.sum([np.bincount(matrix[rows].indices, minlength=len(self.grams)) for matrix in self.texts], axis=0)
        frequent = np.argsort(-counts, kind="stable")[: max(1, _MOST_WEIGHTS // (num_classes * len(self.texts)))]
        useful: list[str] = self.grams[np.sort(frequent[counts[frequent] > 1])].tolist()
        return useful


def _pooled(vectors: NDArray[Any]) -> NDArray[np.float16]:
    """Pool the vectors of a text's tokens into one row; zeros for a text without tokens."""
    values = np.asarray(vectors, np.float32) if len(vectors) else np.zeros((1, *vectors.shape[1:]), np.float32)
    pooled = (values.mean(axis=0), values.std(axis=0), values.max(axis=0), values.min(axis=0))
    return np.concatenate([statistic.ravel() for statistic in pooled]).astype(np.float16)


@dataclass(frozen=True, eq=False)
class LinearModel:
    """Logistic regression on features that are shifted, scaled, and normalised to length 1 per example.

    Attributes:
        shift: Subtracted from each feature, float32, shape (D,); zeros for n-grams.
        scale: Factor for each feature after the shift, float32, shape (D,); for n-grams the inverse document frequency.
        weights: Weight of each feature for each class, float32, shape (D, K).
        bias: Bias of each class, float32, shape (K,).
        grams: The n-grams of the features (a pair has two features per n-gram); empty for vectors.
    """

    shift: NDArray[np.float32]
    scale: NDArray[np.float32]
    weights: NDArray[np.float32]
    bias: NDArray[np.float32]
    grams: Sequence[str] = ()

    def log_probabilities(self, features: Matrix) -> Floats:
        """Return the log-probability of each class for each example, float64, shape (N, K)."""
        starts = range(0, features.shape[0], _BLOCK_ROWS)
        scores = [np.zeros((0, len(self.bias)))]
        scores += [self._scaled(features[start : start + _BLOCK_ROWS]) @ self.weights for start in starts]
        logs: Floats = log_softmax(np.concatenate(scores).astype(np.float64) + self.bias, axis=1)
        return logs

    def _scaled(self, features: Matrix) -> Matrix:
        if issparse(features):
            return normalize(features.multiply(self.scale).tocsr())
        scaled = features.astype(np.float32)
        scaled -= self.shift
        scaled *= self.scale
        return normalize(scaled, copy=False)


def fit_path(
    features: Features, rows: Numbers, classes: Numbers, num_classes: int, strengths: Sequence[float]
) -> list[LinearModel]:
    """Fit a model with each strength in turn, starting from the previous one's weights; return the models.

    If there is nothing to learn from (no features, or a single class), they predict the shares of the classes.

    Args:
        features: The features of all examples.
        rows: The examples to learn from.
        classes: Their classes, shape of `rows`.
        num_classes: K.
        strengths: Inverse strengths of the penalty, in ascending order.
    """
    grams = features.useful_grams(rows, num_classes)
    is_dense = not len(features.grams)
    if is_dense:
        most = max(1, _MOST_NUMBERS // features.at(rows[:1]).shape[1])
        sample = np.sort(np.random.default_rng(1).permutation(len(rows))[:most])
        rows, classes = rows[sample], classes[sample]
    matrix = features.at(rows, grams)
    width = matrix.shape[1]
    if is_dense:
        shift = matrix.mean(axis=0, dtype=np.float32)
        scale = 1 / np.maximum(matrix.std(axis=0, dtype=np.float32), _SMALLEST)
    else:
        shift, scale = np.zeros(width, np.float32), TfidfTransformer().fit(matrix).idf_.astype(np.float32)
    model = LinearModel(
        shift, scale, np.zeros((width, num_classes), np.float32), _log_shares(classes, num_classes), grams
    )
    if not width or len(np.unique(classes)) < 2:
        return [model] * len(strengths)
    scaled, models = model._scaled(matrix), []
    regression = LogisticRegression(warm_start=True, max_iter=_MOST_STEPS)
    # Warnings: too few steps, many classes. BLAS threads would wait for each other in every short product.
    with threads(1), warnings.catch_warnings(action="ignore", category=UserWarning):
        for strength in strengths:
            regression.set_params(C=strength).fit(scaled, classes)
            models.append(_with_weights(model, regression))
    return models


def _log_shares(classes: Numbers, num_classes: int) -> NDArray[np.float32]:
    return np.log(np.maximum(np.bincount(classes, minlength=num_classes), 0.5) / len(classes)).astype(np.float32)


def _with_weights(model: LinearModel, regression: LogisticRegression) -> LinearModel:
    """Return a model with fitted weights; an absent class gets zero weights, and the bias of half an example."""
    weights, bias, learned = model.weights.copy(), model.bias.copy(), regression.classes_
    coefficients, intercept = regression.coef_.T, regression.intercept_
    if len(learned) == 2:  # scikit-learn gives the weights of the second class only
        coefficients, intercept = np.hstack([0 * coefficients, coefficients]), np.append(0, intercept)
    weights[:, learned], bias[learned] = coefficients, intercept
    absent = np.setdiff1d(np.arange(len(bias)), learned)
    bias[absent] += bias[learned].min() - model.bias[learned].min()
    return replace(model, weights=weights, bias=bias)


@dataclass(frozen=True, eq=False)
class FittedLinear:
    """A linear model, and predictions for each training example by models that have not seen it.

    Attributes:
        model: The model fitted on all training examples.
        held_out: Log-probabilities of each training example from the model that had not seen its fold, shape (N, K).
    """

    model: LinearModel
    held_out: Floats


def fit_linear(features: Features, rows: Numbers, classes: Numbers, num_classes: int, fold_of: Numbers) -> FittedLinear:
    """Fit a model on all rows, and one per fold on the other folds, with the penalty that suits the first fold best.

    Args:
        features: The features of all examples.
        rows: The examples to learn from.
        classes: Their classes, shape of `rows`.
        num_classes: Number of classes, K.
        fold_of: Their folds, shape of `rows`.
    """
    held_out = np.full((len(rows), num_classes), -np.log(num_classes))
    strengths: Sequence[float] = STRENGTHS
    for fold in range(int(fold_of.max()) + 1):
        others, inside = np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold)
        if len(others):
            models = fit_path(features, rows[others], classes[others], num_classes, strengths)
            logs = [predict_rows(model, features, rows[inside]) for model in models]
            losses = [-row_logs[np.arange(len(inside)), classes[inside]].mean() for row_logs in logs]
            best = int(np.argmin(losses))
            held_out[inside], strengths = logs[best], strengths[best : best + 1]
    [model] = fit_path(features, rows, classes, num_classes, strengths[:1])
    return FittedLinear(model, held_out)


def predict_rows(model: LinearModel, features: Features, rows: Numbers) -> Floats:
    """Return the log-probability of each class for the examples in `rows`, float64, shape (N, K)."""
    return model.log_probabilities(features.at(rows, model.grams))


def held_out_folds(dataset: Dataset, rows: Numbers, seed: int) -> Numbers:
    """Return the fold of each row, one of `NUM_FOLDS` or, for many rows, one of two."""
    return fold_numbers(dataset.at(rows), NUM_FOLDS if len(rows) < MANY_ROWS else 2, seed)


# Mixtures


def mix(logs: Mapping[Any, Floats], weights: Mapping[Any, float]) -> Floats:
    """Return log-probabilities, float64, (N, K): the weighted sum of `logs` over the names in `weights`, normalised."""
    mixed: Floats = log_softmax(sum(weight * logs[name] for name, weight in weights.items()), axis=1)
    return mixed


def network_logs(probabilities: Sequence[Sequence[float]]) -> Floats:
    """Return the logarithms of a network's class probabilities, float64, shape (N, K)."""
    logs: Floats = np.log(np.maximum(np.array(probabilities), 1e-12))
    return logs


Score = Callable[[Numbers, Numbers], float]


def choose_weight(logs: Sequence[Floats], classes: Numbers, score: Score) -> float:
    """Return the second classifier's weight (a multiple of 0.1) that gives a mixture of two the best score.

    Ties go to the smallest. The log loss would be a poor guide: with many classes and few examples of each, a
    model of many n-grams is far less confident than it is accurate.
    """
    first, second = logs
    weights = [step / STEPS for step in range(STEPS + 1)]
    return max(weights, key=lambda weight: score(classes, ((1 - weight) * first + weight * second).argmax(axis=1)))


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A member's held-out score, and the scores of the mixture of earlier members without and with it."""

    name: str
    num_labels: int
    score: float
    weight: float = 0.0  # its share of the mixture in the end; 0 if it was left out
    without: float | None = None  # None for the first member
    together: float | None = None


def choose_members(
    offers: Sequence[tuple[str, Floats, Numbers]], classes: Numbers, score: Score
) -> tuple[dict[str, float], list[Judged]]:
    """Try classifiers in turn, the best of those with all texts first; keep each that improves the mixture's score.

    Args:
        offers: For each classifier, its name, log-probabilities of texts from models that were not fitted on them, and
            the rows of these texts; at least one classifier has all texts.
        classes: True classes of all texts, shape (N,).
        score: Rates predicted classes against true ones; higher is better.

    Returns:
        The weights of the members kept, which sum to 1, and the figures of all classifiers in the order tried.
    """
    weights: dict[str, float] = {}
    judged: list[Judged] = []
    scores = {name: score(classes[rows], logs.argmax(axis=1)) for name, logs, rows in offers}
    for name, logs, rows in sorted(offers, key=lambda offer: (-len(offer[2]), -scores[offer[0]])):
        gold = classes[rows]
        figures = Judged(name=name, num_labels=len(rows), score=scores[name])
        if not judged:
            weights, mixture = {name: 1.0}, logs.copy()
        else:
            before = mixture[rows]
            weight = choose_weight([before, logs], gold, score)
            mixed = mix({0: before, 1: logs}, {0: 1 - weight, 1: weight})
            without, together = (score(gold, log_probabilities.argmax(axis=1)) for log_probabilities in (before, mixed))
            figures = replace(figures, without=without, together=together)
            if together > without:
                # Mixing a mixture equals mixing all: normalising log-probabilities keeps their differences.
                weights = {other: (1 - weight) * share for other, share in weights.items()} | {name: weight}
                mixture[rows] = mixed
        judged.append(figures)
    weights = {name: round(weight, 4) for name, weight in weights.items() if weight}
    return weights, [replace(member, weight=weights.get(member.name, 0.0)) for member in judged]


def save_members(path: Path, members: Mapping[str, LinearModel]) -> None:
    """Write linear models, and the n-grams that they read, to a safetensors file."""
    tensors = {}
    for name, model in members.items():
        arrays: dict[str, NDArray[Any]] = {array: getattr(model, array) for array in _ARRAYS}
        if name == CHARACTERS:
            # -1 stands for no character.
            padded = [[*map(ord, gram), *[-1] * (_LONGEST_GRAM - len(gram))] for gram in model.grams]
            arrays["grams"] = np.array(padded, np.int32).reshape(-1, _LONGEST_GRAM)
        for array, values in arrays.items():
            tensors[f"{name}.{array}"] = torch.from_numpy(np.ascontiguousarray(values))
    save_tensors(tensors, path)


def load_members(path: Path, names: Sequence[str], sizes: Sizes, num_texts: int) -> dict[str, LinearModel]:
    """Read linear models of texts or pairs; raise ValueError or KeyError if the file does not match task.json.

    Shapes are checked before memory is allocated for them; the file is memory-mapped.
    """
    tensors = load_tensors(path)
    widths = {ELMO: _POOLINGS * sizes.num_layers * sizes.elmo_dim, WORD2VEC: _POOLINGS * sizes.word2vec_dim}
    models = {}
    for name in names:
        codes = tensors[f"{name}.grams"] if name == CHARACTERS else torch.zeros(0, _LONGEST_GRAM, dtype=torch.int32)
        width, num_classes = num_texts * widths.get(name, len(codes)), sizes.num_outputs
        shapes = dict(zip(_ARRAYS, [(width,), (width,), (width, num_classes), (num_classes,)], strict=True))
        arrays = {array: tensors[f"{name}.{array}"] for array in _ARRAYS}
        if any(arrays[array].shape != shape or arrays[array].dtype != torch.float32 for array, shape in shapes.items()):
            raise ValueError(f"an array of {name} has another shape or type")
        grams = ["".join(chr(code) for code in row if code >= 0) for row in codes.tolist()]
        models[name] = LinearModel(**{array: arrays[array].numpy() for array in _ARRAYS}, grams=grams)
    return models
