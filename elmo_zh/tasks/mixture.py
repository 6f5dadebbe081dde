"""Mixtures of classifiers: linear models and a network, with weights chosen on held-out labels.

A mixture is the weighted mean of log-probabilities, the logarithm of a product of experts (Hinton 2002): if one expert
rules out a class, so does the mixture. A weight of 0 leaves a classifier out.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import log_softmax

from elmo_zh.bundle.tensor_files import load_tensors, save_tensors
from elmo_zh.bundle.word2vec_table import Word2Vec
from elmo_zh.corpus.readers.examples import Example
from elmo_zh.run.reporter import Reporter
from elmo_zh.tasks.datasets import Dataset, fold_numbers
from elmo_zh.tasks.encode_texts import Texts, UnitText
from elmo_zh.tasks.layers import Sizes
from elmo_zh.tasks.linear import (
    CHARACTERS,
    ELMO,
    LONGEST_GRAM,
    POOLINGS,
    WORD2VEC,
    Features,
    FittedLinear,
    Floats,
    LinearModel,
    example_features,
    fit_linear,
    known_grams,
    log_loss,
)
from elmo_zh.tasks.predictions import Prediction, class_predictions
from elmo_zh.tasks.task_head import TaskHead
from elmo_zh.tasks.vector_cache import VectorCache

# The only member that is not a linear model.
NETWORK = "bilstm"
MEMBERS = (CHARACTERS, ELMO, WORD2VEC, NETWORK)
# A member's gain must exceed this many standard errors, so that its 95% interval excludes zero.
_STANDARD_ERRORS = 1.96
_SMALLEST = 1e-12
_ARRAYS = ("shift", "scale", "weights", "bias")
# Number of folds in which linear models are judged.
_NUM_FOLDS = 5
# With fewer development labels the network, whose epoch they have chosen, can seem better than it is.
_FEWEST_LABELS = 100
# Weights are tenths.
STEPS = 10


def mix(logs: Sequence[Floats], weights: Sequence[float]) -> Floats:
    """Return the log-probabilities of a mixture of classifiers, float64, shape (N, K)."""
    found: Floats = log_softmax(sum(weight * each for weight, each in zip(weights, logs, strict=True)), axis=1)
    return found


def choose_weights(logs: Sequence[Floats], classes: NDArray[np.int64]) -> tuple[float, ...]:
    """Return the weights, in tenths that sum to 1, with the lowest log loss; ties go to earlier classifiers.

    Args:
        logs: Log-probabilities of each classifier for texts that it was not fitted on, each of shape (N, K).
        classes: True classes of the texts, shape (N,).
    """
    return min(_simplex(len(logs)), key=lambda weights: log_loss(mix(logs, weights), classes))


def _simplex(count: int, tenths: int = STEPS) -> Iterator[tuple[float, ...]]:
    """Yield all weights for `count` classifiers, starting with the most weight on the earlier ones."""
    if count == 1:
        yield (tenths / STEPS,)
        return
    for first in range(tenths, -1, -1):
        yield from ((first / STEPS, *rest) for rest in _simplex(count - 1, tenths - first))


class LinearModels:
    """Fits linear models on subsets of a dataset; features of all examples are computed once, when needed."""

    def __init__(
        self,
        dataset: Dataset,
        texts: Texts,
        *,
        cache: Callable[[], VectorCache | None],
        word2vec: Word2Vec | None,
        seed: int,
    ) -> None:
        """Take all examples and their texts; `seed` determines the folds."""
        # Examples are looked up by identity: two with the same content may be in different parts.
        examples = chain.from_iterable(dataset.parts().values())
        self._rows = {id(example): row for row, example in enumerate(examples)}
        self._texts = list(chain.from_iterable(texts.values()))
        self._cache, self._word2vec, self._seed = cache, word2vec, seed
        self._features: dict[str, Features] = {}
        self._fitted: dict[tuple[Any, ...], FittedLinear] = {}

    @cached_property
    def grams(self) -> dict[str, int]:
        """The character n-grams that occur in at least two texts, with their column numbers."""
        return known_grams(text.text for each in self._texts for text in each)

    def predict(self, names: Sequence[str], data: Dataset) -> tuple[list[Prediction], float]:
        """Return the test predictions of a mixture of models on `CHARACTERS`, `WORD2VEC` or `ELMO`.

        Models are fitted on the training examples, unless they are already, and mixed with weights chosen on held-out
        examples. The second value is the fitting time in seconds.
        """
        labels = data.labels()
        classes = class_numbers(data.train, labels)
        fitted = [self.fit(name, data.train, classes) for name in names]
        weights = choose_weights([each.held_out for each in fitted], classes)
        found = [
            each.model.log_probabilities(self.features(name, data.test))
            for name, each in zip(names, fitted, strict=True)
        ]
        return class_predictions(mix(found, weights), labels), sum(each.seconds for each in fitted)

    def fit(self, name: str, train: Sequence[Example], classes: NDArray[np.int64]) -> FittedLinear:
        """Return a linear model for these training examples, fitting it on the first call."""
        key = (name, *(self._rows[id(example)] for example in train))
        if key not in self._fitted:
            folds = fold_numbers(train, _NUM_FOLDS, self._seed)
            self._fitted[key] = fit_linear(self.features(name, train), classes, int(classes.max()) + 1, folds)
        return self._fitted[key]

    def features(self, name: str, examples: Sequence[Example]) -> Features:
        """Return one kind of features for some of the examples, float32, shape (N, D)."""
        if name not in self._features:
            cache = self._cache() if name == ELMO else None
            grams = self.grams if name == CHARACTERS else {}
            self._features[name] = example_features(name, self._texts, grams, cache, self._word2vec)
        return self._features[name][[self._rows[id(example)] for example in examples]]


def class_numbers(examples: Sequence[Example], labels: Sequence[str]) -> NDArray[np.int64]:
    """Return each example's class as a position in the labels, int64, shape (N,)."""
    numbers = {label: number for number, label in enumerate(labels)}
    return np.array([numbers[example.labels[0]] for example in examples], np.int64)


@dataclass(frozen=True, eq=False)
class LinearMember:
    """A linear model and its kind of features; `grams` has the n-grams of its columns, if it reads characters."""

    name: str
    model: LinearModel
    grams: Sequence[str]

    @classmethod
    def of(cls, name: str, model: LinearModel, grams: Sequence[str], num_texts: int) -> "LinearMember":
        """Build a member that keeps only the n-grams that its model reads; `grams` lists the n-grams of all columns.

        A pair has two columns for each n-gram, and both are kept if the model reads one of them.
        """
        if name != CHARACTERS:
            return cls(name, model, [])
        halves, numbers = np.divmod(model.columns, len(grams))
        used, places = np.unique(numbers, return_inverse=True)
        places = places + halves * len(used)
        width = num_texts * len(used)

        def spread(values: NDArray[np.float32]) -> NDArray[np.float32]:
            found = np.zeros((width, *values.shape[1:]), np.float32)
            found[places] = values
            return found

        arrays = {each: spread(getattr(model, each)) for each in ("shift", "scale", "weights")}
        return cls(name, replace(model, columns=np.arange(width), **arrays), [grams[number] for number in used])

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {gram: number for number, gram in enumerate(self.grams)}

    def log_probabilities(
        self, examples: Sequence[Sequence[UnitText]], cache: VectorCache | None, word2vec: Word2Vec | None
    ) -> Floats:
        """Return the log-probability of each class for each example, float64, shape (N, K)."""
        return self.model.log_probabilities(example_features(self.name, examples, self._numbers, cache, word2vec))


def network_logs(probabilities: Sequence[Sequence[float]]) -> Floats:
    """Return the logarithms of a network's class probabilities, float64, shape (N, K)."""
    found: Floats = np.log(np.maximum(np.array(probabilities), _SMALLEST))
    return found


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
    offers: Iterable[tuple[str, Floats, NDArray[np.int64]]],
    classes: NDArray[np.int64],
    score: Callable[[NDArray[np.int64], Floats], float],
) -> tuple[dict[str, float], list[Judged]]:
    """Try classifiers one by one; keep each that makes true classes significantly likelier without lowering the score.

    Args:
        offers: Name, log-probabilities and rows of the texts of each classifier; none was fitted on these texts, and
            the first has all texts.
        classes: True classes of all texts, shape (N,).
        score: Rates log-probabilities against classes; higher is better.

    Returns:
        The weights of the members kept, which sum to 1, and the figures of all classifiers in the order tried.
    """
    weights: dict[str, float] = {}
    judged: list[Judged] = []
    for name, logs, rows in offers:
        own = classes[rows]
        reached = Judged(name=name, num_labels=len(rows), score=score(own, logs))
        if not judged:
            weights, so_far = {name: 1.0}, logs.copy()
            judged.append(reached)
            continue
        before = so_far[rows]
        kept, added = pair = choose_weights([before, logs], own)
        mixed = mix([before, logs], pair)
        gains = (mixed - before)[np.arange(len(rows)), own]
        without, together = score(own, before), score(own, mixed)
        judged.append(replace(reached, without=without, together=together))
        if together >= without and is_sure(gains):
            # Mixing a mixture with a member equals mixing all: normalising log-probabilities keeps their differences.
            weights = {each: kept * weight for each, weight in weights.items()} | {name: added}
            so_far[rows] = mixed
    weights = {name: round(weight, 4) for name, weight in weights.items() if weight}
    return weights, [replace(each, weight=weights.get(each.name, 0.0)) for each in judged]


def is_sure(gains: Floats) -> bool:
    """Return whether the mean gain of texts in log-probability is above 0, outside a 95% interval."""
    return bool(gains.mean() > _STANDARD_ERRORS * gains.std() / np.sqrt(len(gains)))


@dataclass(frozen=True, eq=False)
class Mixture:
    """The classifiers chosen on held-out labels, with their weights and predictions.

    Attributes:
        weights: The weight of each member kept; empty for tags, whose members are one network.
        linear: The linear models among them.
        judged: The score and contribution of each member.
        predictions: The mixture's predictions for the development and test examples, by part; for the development
            examples, they come from linear models that were not fitted on them.
        tagger: That network; None for classes.
    """

    weights: dict[str, float]
    linear: dict[str, LinearMember]
    judged: list[Judged]
    predictions: dict[str, list[Prediction]]
    tagger: TaskHead | None = None


def fit_mixture(
    models: LinearModels,
    inputs: Sequence[str],
    dataset: Dataset,
    labels: Sequence[str],
    network: Mapping[str, Floats],
    *,
    score: Callable[[NDArray[np.int64], Floats], float],
    reporter: Reporter,
) -> Mixture:
    """Fit linear models on training and development examples, and choose their mixture with the network.

    Linear models are judged on all labels, in five folds, and the network on the development examples.

    Args:
        models: Fits linear models on the dataset.
        inputs: The inputs of the network; there is a linear model on characters, and on each of `ELMO` and `WORD2VEC`.
        dataset: The examples.
        labels: The classes.
        network: Log-probabilities of the network for the development and test examples.
        score: Scores log-probabilities against classes; higher is better.
        reporter: Shows progress.
    """
    names = [CHARACTERS, *(name for name in (ELMO, WORD2VEC) if name in inputs)]
    known = [example for example in (*dataset.train, *dataset.dev) if example.labels[0] in labels]
    classes, row_of = class_numbers(known, labels), {id(example): row for row, example in enumerate(known)}
    with reporter.progress("linear models", unit="models", total=len(names)) as progress:
        fitted = {}
        for name in names:
            fitted[name] = models.fit(name, known, classes)
            progress.update(1)
    best_first = sorted(names, key=lambda name: log_loss(fitted[name].held_out, classes))
    offers = [(name, fitted[name].held_out, np.arange(len(known))) for name in best_first]
    places = [place for place, example in enumerate(dataset.dev) if id(example) in row_of]
    rows = np.array([row_of[id(dataset.dev[place])] for place in places], np.int64)
    if len(places) >= _FEWEST_LABELS:
        offers.append((NETWORK, network["dev"][places], rows))
    else:
        reporter.note(
            f"The network is left out, because judging it takes at least {_FEWEST_LABELS} development examples."
        )
    weights, judged = choose_members(offers, classes, score)
    logs = {NETWORK: network}
    for name in names:
        own = {part: models.features(name, dataset.parts()[part]) for part in network}
        logs[name] = {part: fitted[name].model.log_probabilities(features) for part, features in own.items()}
        logs[name]["dev"][places] = fitted[name].held_out[rows]
    grams = list(models.grams)
    kept = list(weights.values())
    return Mixture(
        weights,
        {
            name: LinearMember.of(name, fitted[name].model, grams, len(known[0].texts))
            for name in weights
            if name != NETWORK
        },
        judged,
        {part: class_predictions(mix([logs[name][part] for name in weights], kept), labels) for part in network},
    )


def save_members(path: Path, members: Mapping[str, LinearMember]) -> None:
    """Write linear models, and the n-grams that they read, to a safetensors file."""
    tensors = {}
    for name, member in members.items():
        arrays = {each: getattr(member.model, each) for each in _ARRAYS}
        if name == CHARACTERS:
            # -1 stands for no character.
            padded = [[*map(ord, gram), *[-1] * (LONGEST_GRAM - len(gram))] for gram in member.grams]
            arrays["grams"] = np.array(padded, np.int32).reshape(-1, LONGEST_GRAM)
        for each, values in arrays.items():
            tensors[f"{name}.{each}"] = torch.from_numpy(np.ascontiguousarray(values))
    save_tensors(tensors, path)


def load_members(path: Path, names: Sequence[str], sizes: Sizes, num_texts: int) -> dict[str, LinearMember]:
    """Read linear models of texts or pairs; raise ValueError or KeyError if the file does not match task.json.

    Shapes are checked before memory is allocated for them; the file is memory-mapped.
    """
    tensors = load_tensors(path)
    widths = {ELMO: POOLINGS * sizes.num_layers * sizes.elmo_dim, WORD2VEC: POOLINGS * sizes.word2vec_dim}
    found = {}
    for name in names:
        grams = tensors[f"{name}.grams"] if name == CHARACTERS else torch.zeros(0, LONGEST_GRAM, dtype=torch.int32)
        width, num_classes = num_texts * widths.get(name, len(grams)), sizes.num_outputs
        shapes = dict(zip(_ARRAYS, [(width,), (width,), (width, num_classes), (num_classes,)], strict=True))
        arrays = {each: tensors[f"{name}.{each}"] for each in _ARRAYS}
        wrong = [each for each, shape in shapes.items() if arrays[each].shape != shape]
        wrong += [each for each, values in arrays.items() if values.dtype != torch.float32]
        if wrong or grams.dtype != torch.int32 or grams.shape[1:] != (LONGEST_GRAM,):
            raise ValueError(f"{name}.{(*wrong, 'grams')[0]} has another shape or type")
        texts = ["".join(chr(code) for code in row if code >= 0) for row in grams.tolist()]
        model = LinearModel(np.arange(width), *(arrays[each].numpy() for each in _ARRAYS))
        found[name] = LinearMember(name, model, texts)
    return found
