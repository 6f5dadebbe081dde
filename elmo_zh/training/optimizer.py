"""Optimisers, the learning-rate schedule, the choice of dropout, and gradient clipping (sparse gradients too)."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from elmo_zh.config import AUTOMATIC, TrainConfig
from elmo_zh.model.bilm import BiLM
from elmo_zh.model.softmax import Softmax

DROPOUT_PER_DOUBLING = 0.07
MOST_DROPOUT = 0.2


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """The number of training steps and the learning-rate schedule over them."""

    num_steps: int  # Number of steps in all
    warmup_steps: int  # Steps in which the learning rate rises linearly to its peak
    config: TrainConfig

    @classmethod
    def build(cls, config: TrainConfig, epoch_tokens: int) -> "Schedule":
        """Return the schedule for a training text with `epoch_tokens` predictions in one direction."""
        num_steps = max(1, math.ceil(planned_tokens(config, epoch_tokens) / step_tokens(config)))
        warmup_steps = min(math.ceil(config.warmup_tokens / step_tokens(config)), num_steps // 10)
        return cls(num_steps=num_steps, warmup_steps=warmup_steps, config=config)

    def learning_rate_factor(self, step: int) -> float:
        """Return the learning rate of a step, counted from 0, as a fraction of the peak."""
        if step < self.warmup_steps:
            return (step + 1) / (self.warmup_steps + 1)
        config = self.config
        if config.schedule == "constant":
            return 1.0
        done = (step - self.warmup_steps) / max(1, self.num_steps - self.warmup_steps)
        decayed = 1 - done if config.schedule == "linear" else (1 + math.cos(math.pi * done)) / 2
        return config.final_learning_rate_share + (1 - config.final_learning_rate_share) * decayed


def planned_tokens(config: TrainConfig, epoch_tokens: int) -> float:
    """Return how many predictions per direction the settings train.max_tokens and train.epochs allow."""
    return min(limit for limit in (config.max_tokens, config.epochs * epoch_tokens) if limit > 0)


def choose_dropout(config: TrainConfig, epoch_tokens: int) -> TrainConfig:
    """Return the settings with a dropout, chosen by the number of epochs if they leave it open.

    It is 0 up to one epoch; each doubling of the epochs adds DROPOUT_PER_DOUBLING, up to MOST_DROPOUT
    (docs/log.md, 2026-11-23).
    """
    if config.dropout != AUTOMATIC:
        return config
    doublings = math.log2(max(1.0, planned_tokens(config, epoch_tokens) / max(1, epoch_tokens)))
    return replace(config, dropout=round(min(MOST_DROPOUT, DROPOUT_PER_DOUBLING * doublings), 3))


def step_tokens(config: TrainConfig) -> int:
    """Return the number of predictions per step in each direction."""
    return config.batch_size * config.unroll_steps


# Without this setting, torch warns once that it does not check the indices of sparse gradients. They need no check,
# since they come from torch's own lookups.
torch.sparse.check_sparse_tensor_invariants.disable()  # type: ignore[no-untyped-call]


class Optimizers:
    """Two optimisers that step together: one for the LSTMs and the character CNN, one for the tables.

    The tables (token embeddings, softmax) always use Adagrad, because Adam's steps of uniform size would move the rows
    of rare words as far as the rows of frequent words. Together with AdamW, Adagrad keeps one number per row; in the
    published recipe it keeps one per table entry.
    """

    def __init__(self, config: TrainConfig, bilm: BiLM, softmax: Softmax) -> None:
        token_layer = dict(bilm.token_layer.named_parameters(prefix="token_layer"))
        for parameter in token_layer.values():
            parameter.requires_grad_(config.train_embeddings)
        trained = token_layer if config.train_embeddings else {}
        network = dict(bilm.layers.named_parameters())
        tables: list[nn.Parameter] = []
        if bilm.shape.characters is None:
            tables += trained.values()
        else:
            network |= trained
        is_tied = any(softmax.weight is parameter for parameter in token_layer.values())
        tables += [softmax.bias] if is_tied else [softmax.weight, softmax.bias]
        self.parameters: list[nn.Parameter] = [*network.values(), *tables]
        self.by_name: dict[str, torch.optim.Optimizer]
        self._peaks = {"tables": config.table_learning_rate, "network": config.learning_rate}
        if config.optimizer == "adagrad":
            adagrad = partial(
                torch.optim.Adagrad, lr=1.0, initial_accumulator_value=config.adagrad_accumulator, foreach=False
            )
            self.by_name = {"tables": adagrad(tables), "network": adagrad(list(network.values()))}
        else:
            self.by_name = {"tables": RowAdagrad(tables, config.adagrad_accumulator)}
            biases = [parameter for name, parameter in network.items() if "bias" in name]
            matrices = [parameter for name, parameter in network.items() if "bias" not in name]
            parameter_groups = [
                {"params": matrices, "weight_decay": config.weight_decay},
                {"params": biases, "weight_decay": 0.0},
            ]
            self.by_name["network"] = torch.optim.AdamW(
                parameter_groups, lr=config.learning_rate, betas=(0.9, 0.98), fused=True
            )

    def zero_grad(self) -> None:
        """Clear the gradients."""
        for optimizer in self.by_name.values():
            optimizer.zero_grad(set_to_none=True)

    def step(self, learning_rate_factor: float) -> None:
        """Update the parameters; each group's learning rate is `learning_rate_factor` times its peak."""
        for name, optimizer in self.by_name.items():
            for group in optimizer.param_groups:
                group["lr"] = learning_rate_factor * self._peaks[name]
            optimizer.step()

    def state_tensors(self) -> dict[str, Tensor]:
        """Return the optimisers' state as named tensors: `network.0.exp_avg` and so on."""
        return {
            f"{name}.{key}": value
            for name, optimizer in self.by_name.items()
            for key, value in state_tensors(optimizer).items()
        }

    def load_state_tensors(self, tensors: dict[str, Tensor]) -> None:
        """Restore a state returned by `state_tensors`."""
        for name, optimizer in self.by_name.items():
            start = f"{name}."
            of_this = {key.removeprefix(start): value for key, value in tensors.items() if key.startswith(start)}
            load_state_tensors(optimizer, of_this)


def state_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Return an optimiser's state as named tensors: `0.exp_avg` for the first parameter, and so on."""
    state = optimizer.state_dict()["state"]
    return {f"{index}.{key}": value for index, entry in state.items() for key, value in entry.items()}


def load_state_tensors(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Restore a state returned by `state_tensors`."""
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        index, key = name.split(".")
        state.setdefault(int(index), {})[key] = value
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def clip_gradients(parameters: Iterable[nn.Parameter], max_norm: float) -> float:
    """Clip the global norm of all gradients, if it is finite, to `max_norm`; return the norm before clipping."""
    values = []
    for parameter in parameters:
        if parameter.grad is not None and parameter.grad.is_sparse:
            parameter.grad = parameter.grad.coalesce()
            values.append(parameter.grad.values())
        elif parameter.grad is not None:
            values.append(parameter.grad)
    norm = float(torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(value) for value in values])))
    if math.isfinite(norm) and norm > max_norm:
        for value in values:
            value.mul_(max_norm / norm)
    return norm


# Avoids division by zero in a row whose gradients have all been zero.
_EPSILON = 1e-10


class RowAdagrad(torch.optim.Optimizer):
    """Adagrad (Duchi, Hazan and Singer 2011) with one sum per row, over the mean squares of the row's gradients.

    The entries of a row belong to one word and have gradients of similar size, so one sum per row is enough.
    Parameters are tables, shape (V, P), and vectors, shape (V,), whose rows are single numbers.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], initial_sum: float) -> None:
        super().__init__(parameters, {"lr": 1.0})
        for group in self.param_groups:
            for parameter in group["params"]:
                self.state[parameter]["sum"] = parameter.new_full(parameter.shape[:1], initial_sum)

    @torch.no_grad()
    def step(self, _closure: Any = None) -> None:  # type: ignore[override]
        """Update the parameters that have a gradient, sparse or dense."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, parameter.grad, group["lr"])

    def _update(self, parameter: nn.Parameter, gradient: Tensor, learning_rate: float) -> None:
        sums = self.state[parameter]["sum"]
        if not gradient.is_sparse:
            sums.add_(_mean_squares(gradient))
            parameter.addcdiv_(gradient, _as_divisor(sums, gradient), value=-learning_rate)
            return
        gradient = gradient.coalesce()
        rows, values = gradient.indices()[0], gradient.values()
        sums.index_add_(0, rows, _mean_squares(values))
        parameter.index_add_(0, rows, values / _as_divisor(sums[rows], values), alpha=-learning_rate)


def _mean_squares(values: Tensor) -> Tensor:
    return values.square() if values.ndim == 1 else torch.linalg.vecdot(values, values) / values.shape[1]


def _as_divisor(sums: Tensor, values: Tensor) -> Tensor:
    root = sums.sqrt().add_(_EPSILON)
    return root if values.ndim == 1 else root[:, None]
