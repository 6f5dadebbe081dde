"""Train a network on encoded examples, with early stopping, resumable after each epoch, reproducible bit for bit.

All random numbers of an epoch depend only on the seed and the epoch number, so no generator state is saved.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from elmo_zh.bundle.weights import load_tensors, save_tensors
from elmo_zh.config.task_settings import HeadSettings, TrainSettings
from elmo_zh.corpus.readers.examples import Example
from elmo_zh.model.kernels.execution import with_half_of_the_threads
from elmo_zh.model.scalar_mix import mix_parameter_groups
from elmo_zh.reader.lstm import iter_length_sorted
from elmo_zh.run.job import Files, FinishedPart, Json, Step, Work
from elmo_zh.run.reporter import Progress, Reporter
from elmo_zh.tasks.encode_texts import EncodedText, TextEncoder
from elmo_zh.tasks.layers import Batch, choose_lstm_precision
from elmo_zh.tasks.task_head import TaskHead
from elmo_zh.tasks.vector_cache import LiveVectors

# This many batches of shuffled texts are sorted by length, so each batch holds texts of similar length.
_SORTED_BATCHES = 50
_LARGEST_GRADIENT = 5.0
# Maximum units in a batch, including padding, to bound memory. A longer text gets a batch of its own.
_BATCH_UNITS = 8192
# For n-grams, each of which occurs in few texts.
_CRF_LEARNING_RATE = 0.03
_MODULES, _OPTIMIZER = "modules", "optimizer"
Target = int | float | list[int]


@dataclass(frozen=True, eq=False)
class Item:
    """An encoded example: its text, or the two texts of a pair, and the target."""

    texts: tuple[EncodedText, ...]
    target: Target

    @property
    def length(self) -> int:
        """Number of units in the longest text."""
        return max(map(len, self.texts))


@dataclass(frozen=True, eq=False)
class TrainedHead:
    """The weights with the best development score, including any trained biLM's, and the figures of all epochs."""

    weights: dict[str, Tensor]
    bilm_weights: dict[str, Tensor]
    lines: list[dict[str, Any]]
    best_score: float

    def is_unfinished(self, settings: TrainSettings) -> bool:
        """Return whether the epochs ran out while the score was still rising."""
        return not _has_stopped_rising(self.lines, settings)


def best_epoch(lines: Sequence[Mapping[str, Any]]) -> int:
    """Return the first epoch with the best score, counted from 1."""
    scores = [line["dev_score"] for line in lines]
    return scores.index(max(scores)) + 1


def _has_stopped_rising(lines: Sequence[Mapping[str, Any]], settings: TrainSettings) -> bool:
    return bool(lines) and len(lines) - best_epoch(lines) >= settings.patience


@dataclass(eq=False)
class Training:
    """The training of a network; an epoch is a part, whose files are the weights and the state of the optimiser.

    Only the last state and the weights with the best score are kept. The network starts with its initial weights and is
    modified.

    Attributes:
        head: The network.
        items: The training examples.
        score: Returns the network's score on the development examples; higher is better.
        encoder: Turns texts into batches.
        settings: How it is trained.
        seed: Determines order and dropout.
        reporter: Shows progress.
    """

    head: TaskHead
    items: Sequence[Item]
    score: Callable[[TaskHead], float]
    encoder: TextEncoder
    settings: TrainSettings
    seed: int
    reporter: Reporter

    def __post_init__(self) -> None:
        self._live = self.encoder.cache if isinstance(self.encoder.cache, LiveVectors) else None
        learning_rate = _CRF_LEARNING_RATE if self.head.settings.is_crf else self.settings.learning_rate
        groups = mix_parameter_groups(self.head, learning_rate, self.settings.mix_learning_rate)
        if self._live is not None:
            groups.append({"params": list(self._live.bilm.parameters()), "lr": self.settings.bilm_learning_rate})
        self._optimizer = torch.optim.Adam(groups)
        self._modules = nn.ModuleDict({"head": self.head} | ({"bilm": self._live.bilm} if self._live else {}))
        self._precision = ""
        self.lines: list[dict[str, Any]] = []

    def run(self, work: Work) -> TrainedHead:
        """Train the network, or continue after the epochs that are finished in the work folder."""
        parts = self.resume(work)
        step = Step(name="epochs", compute=self.compute, unit="epochs", total=self.settings.epochs, in_order=True)
        for part in work.run(step, self.iter_epochs(), after=list(parts)):
            parts.append(part)
            self.remove_unused(parts)
        best = best_epoch(self.lines) - 1
        tensors = load_tensors(parts[best].file(_MODULES))

        def weights_of(module: str) -> dict[str, Tensor]:
            start = f"{module}."
            return {name.removeprefix(start): value for name, value in tensors.items() if name.startswith(start)}

        return TrainedHead(weights_of("head"), weights_of("bilm"), self.lines, self.lines[best]["dev_score"])

    def resume(self, work: Work) -> list[FinishedPart]:
        """Load the state after the last finished epoch; return all finished epochs."""
        parts = work.finished("epochs")
        self.lines = [part.value()["line"] for part in parts]
        if parts:
            last, best = parts[-1], parts[best_epoch(self.lines) - 1]
            if not all(path.exists() for path in (last.file(_MODULES), last.file(_OPTIMIZER), best.file(_MODULES))):
                work.discard("epochs")  # the files of a damaged epoch's predecessors are gone
                self.lines = []
                return []
            self._modules.load_state_dict(load_tensors(last.file(_MODULES)))
            known: dict[int, dict[str, Tensor]] = {}
            for name, value in load_tensors(last.file(_OPTIMIZER)).items():
                number, _, key = name.partition(".")
                known.setdefault(int(number), {})[key] = value
            groups = self._optimizer.state_dict()["param_groups"]
            self._optimizer.load_state_dict({"state": known, "param_groups": groups})
            self._precision = last.value()["precision"]
        self._precision = choose_lstm_precision(self.head, self.settings.batch_size, self._precision)
        return parts

    def iter_epochs(self) -> Iterator[int]:
        """Yield the numbers of the epochs to come, counted from 1, until the score has stopped rising."""
        while len(self.lines) < self.settings.epochs and not _has_stopped_rising(self.lines, self.settings):
            yield len(self.lines) + 1

    def compute(self, epoch: int, files: Files) -> Json:
        """Train for an epoch, and write the state after it; return its figures."""
        if self._live is not None:
            self._live.thaw(epoch)
        started = time.perf_counter()
        with self.reporter.progress(f"seed {self.seed}", unit="texts", total=len(self.items)) as progress:
            if self.lines:
                progress.update(0, loss=self.lines[-1]["train_loss"], dev=self.lines[-1]["dev_score"])
            loss = self._train_epoch(np.random.default_rng([self.seed, epoch]), progress)
        self.head.eval()
        line = {"seed": self.seed, "epoch": epoch, "train_loss": loss, "dev_score": self.score(self.head)}
        self.lines.append({**line, "seconds": round(time.perf_counter() - started, 3)})
        states = self._optimizer.state_dict()["state"]
        flat = {f"{number}.{key}": value for number, state in states.items() for key, value in state.items()}
        for suffix, tensors in ((_MODULES, self._modules.state_dict()), (_OPTIMIZER, flat)):
            with files.file(suffix, lasts=False) as path:
                save_tensors(tensors, path)
        return {"line": self.lines[-1], "precision": self._precision}

    @with_half_of_the_threads()
    def _train_epoch(self, generator: np.random.Generator, progress: Progress) -> float:
        """Train on all batches once; return the mean loss."""
        self.head.train()
        torch.manual_seed(int(generator.integers(2**62)))
        total = 0.0
        for batch in shuffled_batches([item.length for item in self.items], self.settings.batch_size, generator):
            items = [self.items[row] for row in batch]
            self._optimizer.zero_grad()
            loss = self.head.loss(batches_of(items, self.encoder), targets_of(items))
            loss.backward()  # type: ignore[no-untyped-call]
            learning = [parameter for group in self._optimizer.param_groups for parameter in group["params"]]
            torch.nn.utils.clip_grad_norm_(learning, _LARGEST_GRADIENT)
            self._optimizer.step()
            total += loss.item() * len(items)
            progress.update(len(items))
        return total / len(self.items)

    def remove_unused(self, parts: Sequence[FinishedPart]) -> None:
        """Delete the files of earlier epochs except for the best weights."""
        best = parts[best_epoch(self.lines) - 1]
        for part in parts[:-1]:
            for suffix in (_OPTIMIZER, *((_MODULES,) if part != best else ())):
                part.file(suffix).unlink(missing_ok=True)


def shuffled_batches(lengths: Sequence[int], batch_size: int, generator: np.random.Generator) -> list[list[int]]:
    """Divide the indexes of all texts into batches of similar length, in random order."""
    order = generator.permutation(len(lengths)).tolist()
    chunk = _SORTED_BATCHES * batch_size
    batches = []
    for start in range(0, len(order), chunk):
        by_length = sorted(order[start : start + chunk], key=lambda index: lengths[index])
        for place in range(0, len(by_length), batch_size):
            batch = by_length[place : place + batch_size]
            batches += [[batch[row] for row in rows] for rows in _short_batches([lengths[index] for index in batch])]
    return [batches[number] for number in generator.permutation(len(batches))]


def _short_batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield the indexes of texts in batches of bounded size; a text without units counts as one unit."""
    return iter_length_sorted([max(1, length) for length in lengths], _BATCH_UNITS)


def batches_of(items: Sequence[Item], encoder: TextEncoder) -> list[Any]:
    """Return one batch with the items' texts; for pairs, one with the first texts and one with the second."""
    return [encoder.batch(texts) for texts in zip(*(item.texts for item in items), strict=True)]


def targets_of(items: Sequence[Item]) -> Tensor:
    """Stack the targets: classes, int64 (B,); numbers, float32 (B,); or tags, int64 (B, T), padded with 0."""
    targets = [item.target for item in items]
    if not isinstance(targets[0], list):
        return torch.tensor(targets)
    found = torch.zeros(len(items), max(1, *(item.length for item in items)), dtype=torch.int64)
    for row, tags in enumerate(targets):
        found[row, : len(tags)] = torch.tensor(tags, dtype=torch.int64)  # type: ignore[arg-type]
    return found


def target_function(
    settings: HeadSettings, labels: Sequence[str], mean: float, scale: float
) -> Callable[[Example], Target]:
    """Return the function that maps an example to the network's target."""
    numbers = {label: number for number, label in enumerate(labels)}

    def target(example: Example) -> Target:
        if settings.regression:
            return (float(example.labels[0]) - mean) / scale
        if settings.kind == "tag":
            # Labels of development and test examples may be unknown; they are not trained on.
            return [numbers.get(label, 0) for label in example.labels]
        return numbers.get(example.labels[0], 0)

    return target


@with_half_of_the_threads()
@torch.no_grad()
def predict_items(
    head: TaskHead,
    items: Sequence[Item],
    encoder: TextEncoder,
    method: Callable[[TaskHead, Sequence[Batch]], list[Any]] = TaskHead.predict,
) -> list[Any]:
    """Return what a method of the network returns for each example, in order."""
    head.eval()
    outputs: list[Any] = [None] * len(items)
    for rows in _short_batches([item.length for item in items]):
        for row, output in zip(rows, method(head, batches_of([items[row] for row in rows], encoder)), strict=True):
            outputs[row] = output
    return outputs
