"""The members of a classifier mixture: linear models and a network, chosen on held-out labels."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file

from elmo_zh.bundle.weights import load_tensors
from elmo_zh.bundle.word2vec import Word2Vec
from elmo_zh.run.reporter import Reporter
from elmo_zh.tasks.datasets import Dataset
from elmo_zh.tasks.encode_texts import UnitText
from elmo_zh.tasks.layers import Sizes
from elmo_zh.tasks.linear import (
    CHARACTERS,
    ELMO,
    LONGEST_GRAM,
    POOLINGS,
    WORD2VEC,
    LinearModel,
    LinearModels,
    class_numbers,
    example_features,
)
from elmo_zh.tasks.mixture import Floats, choose_weights, log_loss, mix
from elmo_zh.tasks.vectors import VectorCache

# The member that is no linear model.
NETWORK = "bilstm"
MEMBERS = (CHARACTERS, ELMO, WORD2VEC, NETWORK)
# A member has to add so many standard errors, as outside a 95% interval.
_STANDARD_ERRORS = 1.96
_SMALLEST = 1e-12
_ARRAYS = ("shift", "scale", "weights", "bias")


@dataclass(frozen=True, eq=False)
class LinearMember:
    """A linear model and its kind of features; `grams` has the n-grams of its columns, if it reads characters."""

    name: str
    model: LinearModel
    grams: Sequence[str]

    @classmethod
    def of(cls, name: str, model: LinearModel, grams: Sequence[str], num_texts: int) -> "LinearMember":
        """Return a model reduced to the n-grams it reads; `grams` has the n-grams of all `CHARACTERS` columns.

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
        """Return log probabilities of the classes, float64, shape (N, K)."""
        return self.model.log_probabilities(example_features(self.name, examples, self._numbers, cache, word2vec))


def network_logs(probabilities: Sequence[Sequence[float]]) -> Floats:
    """Return the logarithms of a network's probabilities, float64, shape (N, K)."""
    found: Floats = np.log(np.maximum(np.array(probabilities), _SMALLEST))
    return found


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A member's held-out score, and the scores of the mixture of earlier members without and with it."""

    name: str
    num_labels: int
    score: float
    weight: float  # its share of the mixture in the end; 0 if it was left out
    without: float | None = None  # None for the first member
    together: float | None = None


class GrowingMixture:
    """A mixture that tries members one by one and keeps those that help on held-out labels."""

    def __init__(self, classes: NDArray[np.int64], score: Callable[[NDArray[np.int64], Floats], float]) -> None:
        """Start with the classes of N texts; `score` rates log probabilities against classes, higher is better."""
        self._classes, self._score = classes, score
        self._logs: Floats = np.zeros(0)
        self._weights: dict[str, float] = {}
        self._judged: list[Judged] = []

    def offer(self, name: str, logs: Floats, rows: NDArray[np.int64] | None = None) -> None:
        """Offer a classifier's log probabilities for some of the texts, on which it must not have been fitted.

        It is kept if it makes the true classes significantly more probable, and the score is not lower.
        """
        rows = np.arange(len(self._classes)) if rows is None else rows
        classes = self._classes[rows]
        reached: dict[str, Any] = {
            "name": name,
            "num_labels": len(rows),
            "score": self._score(classes, logs),
            "weight": 0.0,
        }
        if not self._weights:
            self._weights, self._logs = {name: 1.0}, logs
            self._judged.append(Judged(**reached))
            return
        before = self._logs[rows]
        kept, added = weights = choose_weights([before, logs], classes)
        mixed = mix([before, logs], weights)
        gains = (mixed - before)[np.arange(len(rows)), classes]
        without, together = self._score(classes, before), self._score(classes, mixed)
        if together >= without and gains.mean() > _STANDARD_ERRORS * gains.std() / np.sqrt(len(rows)):
            # Mixing a mixture with a member mixes all: the normalisation of log-probabilities changes no difference.
            self._weights = {each: kept * weight for each, weight in self._weights.items()} | {name: added}
            self._logs = self._logs.copy()
            self._logs[rows] = mixed
        self._judged.append(Judged(**reached, without=without, together=together))

    def weights(self) -> dict[str, float]:
        """Return the weights of the members kept, which sum to 1."""
        return {name: round(weight, 4) for name, weight in self._weights.items() if weight}

    def judged(self) -> list[Judged]:
        """Return the scores of each member, in the order in which they were offered."""
        weights = self.weights()
        return [replace(each, weight=weights.get(each.name, 0.0)) for each in self._judged]


@dataclass(frozen=True, eq=False)
class Mixture:
    """Members chosen on held-out labels.

    Attributes:
        weights: The weight of each member kept.
        linear: The linear models among them.
        judged: The score and contribution of each member.
        logs: Log-probabilities of the development and test examples, by part; for the development examples, linear
            models were not fitted on them.
    """

    weights: dict[str, float]
    linear: dict[str, LinearMember]
    judged: list[Judged]
    logs: dict[str, Floats]

    def figures(self) -> list[dict[str, Any]]:
        """Return the score and contribution of each member, for task.json."""
        return [asdict(each) for each in self.judged]


def fit_mixture(
    models: LinearModels,
    names: Sequence[str],
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
        names: Their kinds of features, some of `CHARACTERS`, `ELMO` and `WORD2VEC`.
        dataset: The examples.
        labels: The classes.
        network: Log-probabilities of the network for the development and test examples.
        score: Scores log-probabilities against classes; higher is better.
        reporter: Shows progress.
    """
    known = [example for example in (*dataset.train, *dataset.dev) if example.labels[0] in labels]
    classes, row_of = class_numbers(known, labels), {id(example): row for row, example in enumerate(known)}
    with reporter.progress("linear models", unit="models", total=len(names)) as progress:
        fitted = {}
        for name in names:
            fitted[name] = models.fit(name, known, classes)
            progress.update(1)
    mixture = GrowingMixture(classes, score)
    for name in sorted(names, key=lambda name: log_loss(fitted[name].held_out, classes)):
        mixture.offer(name, fitted[name].held_out)
    places = [place for place, example in enumerate(dataset.dev) if id(example) in row_of]
    rows = np.array([row_of[id(dataset.dev[place])] for place in places], np.int64)
    if places:
        mixture.offer(NETWORK, network["dev"][places], rows)
    weights = mixture.weights()
    logs = {NETWORK: network}
    for name in names:
        own = {part: models.features(name, dataset.parts()[part]) for part in network}
        logs[name] = {part: fitted[name].model.log_probabilities(features) for part, features in own.items()}
        logs[name]["dev"][places] = fitted[name].held_out[rows]
    grams = list(models.grams)
    return Mixture(
        weights,
        {
            name: LinearMember.of(name, fitted[name].model, grams, len(known[0].texts))
            for name in weights
            if name != NETWORK
        },
        mixture.judged(),
        {part: mix([logs[name][part] for name in weights], list(weights.values())) for part in network},
    )


def save_members(path: Path, members: Mapping[str, LinearMember]) -> None:
    """Write linear models to a safetensors file."""
    tensors = {}
    for name, member in members.items():
        arrays = {each: getattr(member.model, each) for each in _ARRAYS}
        if name == CHARACTERS:
            # -1 stands for no character.
            padded = [[*map(ord, gram), *[-1] * (LONGEST_GRAM - len(gram))] for gram in member.grams]
            arrays["grams"] = np.array(padded, np.int32).reshape(-1, LONGEST_GRAM)
        for each, values in arrays.items():
            tensors[f"{name}.{each}"] = torch.from_numpy(np.ascontiguousarray(values))
    save_file(tensors, path)


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


def linear_names(inputs: Sequence[str]) -> list[str]:
    """Return the feature kinds of a mixture's linear models, given its network's inputs."""
    return [CHARACTERS, *(name for name in (ELMO, WORD2VEC) if name in inputs)]
