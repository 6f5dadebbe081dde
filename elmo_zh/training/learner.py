"""One training step, and everything that it changes."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from elmo_zh.config import TrainConfig
from elmo_zh.id_store import IdStore
from elmo_zh.model.kernels.execution import with_half_of_the_threads
from elmo_zh.model.language_model import LanguageModel
from elmo_zh.model.precision import FLOAT32, Precision
from elmo_zh.model.softmax import LogUniformSampler
from elmo_zh.model.token_layer import build_inputs
from elmo_zh.training.checkpoint import Checkpoint
from elmo_zh.training.distributed import ProcessGroup, average_gradients
from elmo_zh.training.optimizer import Optimizers, choose_dropout, clip_gradients
from elmo_zh.training.streams import PackedStreams, StreamBatch


class NotFiniteError(ArithmeticError):
    """A loss or gradient is infinite or not a number."""


def scores_every_word(train: TrainConfig, num_tokens: int) -> bool:
    """Return whether training uses the full softmax, because it is set or half the vocabulary would be sampled."""
    return train.softmax == "full" or 2 * train.num_negatives >= num_tokens


class Learner:
    """A model in training, with optimisers, streams and carried states; each rank has its own, with its own streams."""

    def __init__(
        self,
        model: LanguageModel,
        store: IdStore,
        config: TrainConfig,
        device: torch.device,
        initialise: Callable[[LanguageModel], object],
        group: ProcessGroup,
        precision: Precision = FLOAT32,
    ) -> None:
        self.model, self.device, self._precision = model, device, precision
        self._store, self._config = store, choose_dropout(config, store.train.num_predictions)
        self._group = group
        num_tokens = model.bilm.shape.num_tokens
        self._scores_every_word = scores_every_word(config, num_tokens)
        self._sampler = LogUniformSampler(num_tokens, config.num_negatives)
        # Initialised on the CPU, so that training on a GPU starts from the same weights.
        model.to(torch.device("cpu"))
        if group.is_rank_0:
            initialise(model)
        model.to(device)
        group.broadcast(model.named_tensors().values())
        self._optimizers = Optimizers(config, model.bilm, model.softmax)
        own_streams = group.slice_of(config.batch_size)
        self._streams = PackedStreams(store.train, config.batch_size, config.unroll_steps, config.seed, own_streams)
        self._state = model.bilm.zero_state(len(own_streams))

    def restore(self, checkpoint: Checkpoint) -> None:
        """Restore weights, optimisers, carried states and the position in the streams from a checkpoint."""
        self.model.load_named_tensors(checkpoint.model)
        self._optimizers.load_state_tensors(
            {name: tensor for name, tensor in checkpoint.optimizer.items() if not name.startswith("state.")}
        )
        self._streams.restore_position(checkpoint.state["streams"])
        own_streams = self._group.slice_of(self._config.batch_size)
        columns = slice(own_streams.start, own_streams.stop)
        for index, carried in enumerate(self._state):
            carried.output.copy_(checkpoint.optimizer[f"state.{index}.output"][:, columns])
            carried.cell.copy_(checkpoint.optimizer[f"state.{index}.cell"][:, columns])

    def save_position(self) -> Mapping[str, Any]:
        """Return the position in the streams, as JSON values for a checkpoint."""
        return self._streams.save_position()

    def tensors(self) -> dict[str, Tensor]:
        """Return a checkpoint's tensors besides the weights: optimiser state, and the carried states of all ranks."""
        carried = {
            f"state.{index}.{name}": torch.cat(self._group.all_gather(tensor), dim=1)
            for index, layer in enumerate(self._state)
            for name, tensor in (("output", layer.output), ("cell", layer.cell))
        }
        return {**self._optimizers.state_tensors(), **carried}

    @with_half_of_the_threads()
    def train_step(
        self, step: int, learning_rate_factor: float, average_loss: Callable[[float], float]
    ) -> tuple[float, float]:
        """Train one step, counted from 0; return the loss, averaged over ranks, and the gradient norm before clipping.

        If either is not finite, raise NotFiniteError; weights, optimiser state and carried states are then unchanged.
        """
        config = self._config
        batch = self._streams.next_batch()
        # All randomness of a step comes from the seed and the step number, so there is no generator state to save.
        # Each rank has its own dropout masks; the seed of a step is below 2**52.
        torch.manual_seed(config.seed * 1_000_003 + step + (self._group.rank << 52))
        loss, state = self._loss(batch, step)
        loss_value = average_loss(float(loss.detach()))
        if not math.isfinite(loss_value):
            raise NotFiniteError(f"train_loss = {loss_value}")
        self._optimizers.zero_grad()
        (loss * config.unroll_steps).backward()  # type: ignore[no-untyped-call]
        average_gradients(self._optimizers.parameters, self._group)
        norm = clip_gradients(self._optimizers.parameters, config.max_grad_norm)
        if not math.isfinite(norm):
            raise NotFiniteError(f"grad_norm = {norm}")
        self._optimizers.step(learning_rate_factor)
        self._state = state
        return loss_value, norm

    def _loss(self, batch: StreamBatch, step: int) -> tuple[Tensor, Any]:
        config, device = self._config, self.device
        keep = None if config.carry_state else batch.keep.to(device)
        lexicon = self._store.lexicon
        targets = torch.from_numpy(lexicon.targets(batch.targets.numpy())).to(device).flatten()
        inputs = build_inputs(lexicon, batch.inputs).to(device)
        activations, state = self.model.bilm(inputs, self._state, keep, config.dropout, precision=self._precision)
        hidden = activations[-1].flatten(0, 2)
        if self._scores_every_word:
            return self.model.softmax.full_loss(hidden, targets, self._precision), state
        negatives = self._sampler.draw(np.random.default_rng([config.seed, step]))
        return self.model.softmax.sampled_loss(hidden, targets, negatives.to(device), self._precision), state
