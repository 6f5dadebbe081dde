"""Train a network on encoded examples, with early stopping, resumable after each epoch, reproducible bit for bit.

All random numbers of an epoch depend only on the seed and the epoch number, so no generator state is saved.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from elmo_zh.bundle.tensor_files import load_tensors, save_tensors
from elmo_zh.config.task_settings import HeadSettings, TrainSettings
from elmo_zh.corpus.readers.examples import Example
from elmo_zh.model.kernels.execution import with_half_of_the_threads
from elmo_zh.model.scalar_mix import mix_parameter_groups
from elmo_zh.reader.batches import iter_length_sorted
from elmo_zh.run.files import atomic_path
from elmo_zh.run.reporter import Progress, Reporter
from elmo_zh.run.work_folder import Region, WorkFolder
from elmo_zh.tasks.encode_texts import EncodedText, TextEncoder
from elmo_zh.tasks.layers import choose_lstm_precision
from elmo_zh.tasks.task_head import TaskHead
from elmo_zh.tasks.vector_cache import LiveVectors

# This many batches of shuffled texts are sorted by length, so each batch holds texts of similar length.
_SORTED_BATCHES = 50
_LARGEST_GRADIENT = 5.0
# Maximum units in a batch, including padding, to bound memory. A longer text gets a batch of its own.
_BATCH_UNITS = 8192
# For n-grams, each of which occurs in few texts.
_CRF_LEARNING_RATE = 0.03
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
        return not _State(self.lines, {}).has_stopped_rising(settings)


def train_head(
    head: TaskHead,
    items: Sequence[Item],
    score: Callable[[TaskHead], float],
    *,
    encoder: TextEncoder,
    settings: TrainSettings,
    seed: int,
    folder: Path,
    reporter: Reporter,
) -> TrainedHead:
    """Train a network, or resume an interrupted training run from its state in `folder`.

    `score` returns the network's score on the development examples; higher is better. `seed` determines order and
    dropout. The network starts with its initial weights and is modified.
    """
    live = encoder.cache if isinstance(encoder.cache, LiveVectors) else None
    learning_rate = _CRF_LEARNING_RATE if head.settings.is_crf else settings.learning_rate
    groups = mix_parameter_groups(head, learning_rate, settings.mix_learning_rate)
    if live is not None:
        groups.append({"params": list(live.bilm.parameters()), "lr": settings.bilm_learning_rate})
    optimizer = torch.optim.Adam(groups)
    modules = nn.ModuleDict({"head": head} | ({"bilm": live.bilm} if live else {}))
    state = _State.load(folder / "state", modules, optimizer, reporter)
    state.precision = choose_lstm_precision(head, settings.batch_size, state.precision)
    total = settings.epochs * len(items)
    done = len(state.lines)
    with reporter.progress(f"seed {seed}", unit="texts", total=total, initial=done * len(items)) as progress:
        while not state.is_over(settings):
            epoch = len(state.lines) + 1
            if live is not None:
                live.thaw(epoch)
            started = time.perf_counter()
            loss = _train_epoch(head, items, optimizer, encoder, settings, [seed, epoch], progress)
            head.eval()
            line = {"seed": seed, "epoch": epoch, "train_loss": loss, "dev_score": score(head)}
            state.lines.append({**line, "seconds": round(time.perf_counter() - started, 3)})
            if state.best_epoch() == epoch:
                state.best = {name: value.clone() for name, value in modules.state_dict().items()}
            state.save(folder / "state", modules, optimizer)
            progress.update(0, loss=loss, dev=line["dev_score"])
    best_score = state.lines[state.best_epoch() - 1]["dev_score"]
    return TrainedHead(state.best_of("head"), state.best_of("bilm"), state.lines, best_score)


@with_half_of_the_threads()
def _train_epoch(
    head: TaskHead,
    items: Sequence[Item],
    optimizer: torch.optim.Optimizer,
    encoder: TextEncoder,
    settings: TrainSettings,
    seeds: list[int],
    progress: Progress,
) -> float:
    head.train()
    generator = np.random.default_rng(seeds)
    torch.manual_seed(int(generator.integers(2**62)))
    total = 0.0
    for batch in shuffled_batches([item.length for item in items], settings.batch_size, generator):
        chosen = [items[index] for index in batch]
        optimizer.zero_grad()
        loss = head.loss(batches_of(chosen, encoder), targets_of(chosen))
        loss.backward()  # type: ignore[no-untyped-call]
        learning = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        torch.nn.utils.clip_grad_norm_(learning, _LARGEST_GRADIENT)
        optimizer.step()
        total += loss.item() * len(chosen)
        progress.update(len(chosen))
    return total / len(items)


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
def predict_items(head: TaskHead, items: Sequence[Item], encoder: TextEncoder, method: str = "predict") -> list[Any]:
    """Return what a method of the network (predict, predict_tags, costs) returns for each example, in order."""
    head.eval()
    found: list[Any] = [None] * len(items)
    for chosen in _short_batches([item.length for item in items]):
        batch = [items[index] for index in chosen]
        targets = [targets_of(batch)] if method == "costs" else []
        for index, each in zip(chosen, getattr(head, method)(batches_of(batch, encoder), *targets), strict=True):
            found[index] = each
    return found


@dataclass
class _State:
    """The state of training after an epoch; the current weights are in the modules."""

    lines: list[dict[str, Any]]
    best: dict[str, Tensor]
    precision: str = ""

    @classmethod
    def load(cls, folder: Path, modules: nn.Module, optimizer: torch.optim.Optimizer, reporter: Reporter) -> "_State":
        """Load modules, optimiser and state from a folder; return a new state if it has no valid one."""
        figures = WorkFolder(folder).figures("lines")
        if figures is None:
            if folder.is_dir():
                reporter.warn(f"{folder} is damaged, so this training run starts over.")
            return cls([], {})
        modules.load_state_dict(load_tensors(folder / "modules.safetensors"))
        known: dict[int, dict[str, Tensor]] = {}
        for name, value in load_tensors(folder / "optimizer.safetensors").items():
            number, _, key = name.partition(".")
            known.setdefault(int(number), {})[key] = value
        optimizer.load_state_dict({"state": known, "param_groups": optimizer.state_dict()["param_groups"]})
        return cls(figures["lines"], load_tensors(folder / "best.safetensors"), figures["precision"])

    def save(self, folder: Path, modules: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        """Write the state, atomically replacing the previous epoch's."""
        states = optimizer.state_dict()["state"]
        flat = {f"{number}.{key}": value for number, each in states.items() for key, value in each.items()}
        with atomic_path(folder) as unfinished:
            unfinished.mkdir()
            for name, tensors in (("modules", modules.state_dict()), ("best", self.best), ("optimizer", flat)):
                save_tensors(tensors, unfinished / f"{name}.safetensors")
            files = list(map(Region.whole, sorted(unfinished.iterdir())))
            WorkFolder(unfinished).finish("lines", {"lines": self.lines, "precision": self.precision}, files)

    def best_of(self, module: str) -> dict[str, Tensor]:
        start = f"{module}."
        return {name.removeprefix(start): value for name, value in self.best.items() if name.startswith(start)}

    def best_epoch(self) -> int:
        """Return the first epoch with the best score, counted from 1; 0 before the first epoch."""
        scores = [line["dev_score"] for line in self.lines]
        return scores.index(max(scores)) + 1 if scores else 0

    def is_over(self, settings: TrainSettings) -> bool:
        return len(self.lines) >= settings.epochs or self.has_stopped_rising(settings)

    def has_stopped_rising(self, settings: TrainSettings) -> bool:
        return len(self.lines) - self.best_epoch() >= settings.patience
