"""The training loop, in the order in which things happen."""

import math
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

import torch

from elmo_zh.config import TrainConfig
from elmo_zh.errors import RunError
from elmo_zh.id_store.sentences import IdStore
from elmo_zh.model.language_model import LanguageModel
from elmo_zh.run.reporter import Progress, Reporter
from elmo_zh.training.checkpoint import Checkpoint, CheckpointFolder
from elmo_zh.training.computation import Computation
from elmo_zh.training.deferred_signals import deferred_signals
from elmo_zh.training.distributed import ALONE, Group
from elmo_zh.training.heldout_sample import evaluate_heldout, sample_sentences
from elmo_zh.training.learner import Learner, NotFiniteError
from elmo_zh.training.metrics import MetricsFile
from elmo_zh.training.optimizer import Schedule, step_tokens
from elmo_zh.training.scoring import Figures
from elmo_zh.training.shared_checkpoints import SharedCheckpoints

_MAX_ROLLBACKS = 8


@dataclass
class _Pace:
    """Steps and seconds since the last line in metrics.jsonl, evaluation and checkpoints left out."""

    steps: int = 0
    seconds: float = 0.0


@dataclass
class _Position:
    """How far training has come, beside the streams' position and the weights."""

    step: int = 0
    elapsed_seconds: float = 0.0
    learning_rate_scale: float = 1.0
    num_rollbacks: int = 0


class Trainer:
    """Trains a language model on an id store, with checkpoints, measurements and a way back from numbers gone wild.

    Of several ranks each has a trainer, and all do the same things at the same steps.
    """

    def __init__(
        self,
        model: LanguageModel,
        store: IdStore,
        vocabulary_digest: str,
        config: TrainConfig,
        checkpoints: CheckpointFolder | SharedCheckpoints,
        metrics: MetricsFile,
        device: torch.device,
        computation: Computation,
        reporter: Reporter,
        initialise: Callable[[LanguageModel], None],
        group: Group = ALONE,
    ) -> None:
        self.model, self.config, self.device, self.checkpoints = model, config, device, checkpoints
        self.schedule = Schedule.build(config, store.train.num_predictions)
        self._store, self._vocabulary_digest = store, vocabulary_digest
        self._metrics, self._reporter = metrics, reporter
        self._group = group
        self._received: list[int] = []
        self._agreed_signal = 0
        self._sample = sample_sentences(store.heldout, config.evaluate_sample_tokens)
        self._position = _Position()
        self._unlogged = _Pace()
        self.computation = computation
        model.prepare_for_training()
        precision = computation.product_precision
        self._learner = Learner(model, store, config, device, initialise, group, precision)

    @property
    def step(self) -> int:
        """Steps trained."""
        return self._position.step

    @property
    def elapsed_seconds(self) -> float:
        """Seconds of training, measurements and checkpoints included, up to the last one."""
        return self._position.elapsed_seconds

    def resume(self) -> bool:
        """Go on from the last checkpoint, if there is one; return whether there was."""
        steps = self.checkpoints.steps()
        if not steps:
            # Lines of an attempt that was killed before its first checkpoint.
            self._metrics.remove()
            return False
        state = self._restore(steps[-1])
        self._position.num_rollbacks = state["num_rollbacks"]
        self._position.learning_rate_scale = state["learning_rate_scale"]
        self._position.elapsed_seconds = state["elapsed_seconds"]
        self._metrics.cut_after(self._position.step)
        return True

    def _restore(self, step: int) -> Mapping[str, Any]:
        checkpoint = self.checkpoints.load(step)
        state = checkpoint.state
        where = f"{self.checkpoints.path}/step-{step:08d}"
        self.model.require_same(state["model"], self._vocabulary_digest, where)
        self._learner.restore(checkpoint)
        self._position.step = state["step"]
        return state

    def measure_step_seconds(self) -> float:
        """Return the duration of a step: the shortest of a few at the start that are then undone."""
        shortest = math.inf
        for _ in range(3):
            start = time.monotonic()
            # Numbers gone wild are dealt with, and told, when training gets there.
            with suppress(NotFiniteError):
                self._train_step()
            shortest = min(shortest, time.monotonic() - start)
        self._start_over()
        return shortest

    def _start_over(self) -> None:
        self._learner.start_over()
        self._position.step = 0

    def train(self) -> None:
        """Train to the end of the schedule.

        Ctrl-C and SIGTERM end it between two steps, with a checkpoint to go on from; a second one at once, unless there
        are more ranks: torchrun passes on what the terminal has sent them already.
        """
        tokens_per_step = step_tokens(self.config)
        total, done = self.schedule.num_steps * tokens_per_step, self.step * tokens_per_step
        with (
            self._reporter.progress("train", unit="tokens", total=total, initial=done) as progress,
            deferred_signals(second_breaks_in=self._group.size == 1) as self._received,
        ):
            self._clock = time.monotonic() - self._position.elapsed_seconds
            if self.step == 0:
                self._evaluate_sample()
            while self.step < self.schedule.num_steps:
                self._train_step_or_roll_back(progress, tokens_per_step)
                if stop := self._signal_to_stop_at():
                    self._stop(stop)

    def _signal_to_stop_at(self) -> int:
        """Return the signal that all ranks know of, 0 if there is none; one rank alone knows it at once."""
        if self._group.size > 1:
            return self._agreed_signal
        return self._received[0] if self._received else 0

    def _stop(self, signal_number: int) -> None:
        if self.step not in self.checkpoints.steps():
            self._save_checkpoint(interrupted=True)
        if signal_number == signal.SIGINT and self._group.is_first:
            raise KeyboardInterrupt
        raise SystemExit(128 + signal_number)

    def _train_step_or_roll_back(self, progress: Progress, tokens_per_step: int) -> None:
        start = time.monotonic()
        try:
            loss, norm = self._train_step()
        except NotFiniteError as error:
            before = self.step
            self._roll_back(str(error))
            progress.update((self.step - before) * tokens_per_step)
            return
        self._unlogged.steps += 1
        self._unlogged.seconds += time.monotonic() - start
        self._log(loss, norm)
        progress.update(tokens_per_step, loss=loss)
        figures = None
        is_last = self.step == self.schedule.num_steps
        if is_last or self._is_due(self.config.evaluate_every_tokens):
            figures = self._evaluate_sample()
        self._position.elapsed_seconds = time.monotonic() - self._clock
        if is_last or figures or self._is_due(self.config.checkpoint_every_tokens):
            self._save_checkpoint(figures=figures)

    def _is_due(self, every_tokens: int) -> bool:
        return self.step % max(1, round(every_tokens / step_tokens(self.config))) == 0

    def _train_step(self) -> tuple[float, float]:
        """Do one step; return its loss and the gradient's norm before clipping."""
        figures = self._learner.train_step(self.step, self._learning_rate_share(), self._agree)
        self._position.step += 1
        return figures

    def _agree(self, loss: float) -> float:
        """Return the mean of all ranks' losses, and learn of a signal that any of them has received."""
        told = self._group.gather_numbers(loss, self._received[0] if self._received else 0)
        self._agreed_signal = int(max(signal_number for _, signal_number in told))
        return sum(each for each, _ in told) / len(told)

    def _learning_rate_share(self) -> float:
        return self.schedule.learning_rate_share(self.step) * self._position.learning_rate_scale

    def _roll_back(self, problem: str) -> None:
        """Go back to the last checkpoint at a fixed step, or to the start, with half the learning rate."""
        failed_step, position = self.step, self._position
        position.num_rollbacks += 1
        position.learning_rate_scale /= 2
        if position.num_rollbacks > _MAX_ROLLBACKS:
            raise RunError(
                f"Training failed at step {failed_step}: {problem}, after {_MAX_ROLLBACKS} attempts with ever lower"
                " learning rates. Start over with a lower train.learning_rate, in another --run or with --force."
            )
        step = self.checkpoints.last_regular_step()
        if step is None:
            self._start_over()
        else:
            self._restore(step)
        self.checkpoints.remove_after(self.step)
        self._metrics.cut_after(self.step)
        self._metrics.append(
            step=self.step, event="rollback", failed_step=failed_step, learning_rate_scale=position.learning_rate_scale
        )
        self._reporter.warn(
            f"Step {failed_step}: {problem}. Back to step {self.step} with the learning rate times"
            f" {position.learning_rate_scale:g}."
        )

    def _log(self, loss: float, norm: float) -> None:
        config, position = self.config, self._position
        if position.step % config.log_every_steps == 0 or position.step == self.schedule.num_steps:
            share = self.schedule.learning_rate_share(self.step - 1) * position.learning_rate_scale
            self._metrics.append(
                step=position.step,
                tokens=position.step * step_tokens(config),
                train_loss=loss,
                learning_rate=share * config.learning_rate,
                grad_norm=norm,
                tokens_per_second=round(self._unlogged.steps * step_tokens(config) / self._unlogged.seconds, 1),
                elapsed_seconds=round(time.monotonic() - self._clock, 3),
            )
            self._unlogged = _Pace()

    def _evaluate_sample(self) -> Figures | None:
        if not len(self._sample):
            return None
        figures = evaluate_heldout(self.model, self._store, self._sample, None, self._group)
        self.append_figures(figures, "sample", step=self.step)
        self._reporter.note(
            f"step {self.step}, {self.step * step_tokens(self.config):,} tokens: held-out perplexity"
            f" {figures.perplexity:,.1f} (sample), {figures.bits_per_character:.3f} bits per character"
        )
        return figures

    def append_figures(self, figures: Figures, heldout_set: str, *, step: int) -> None:
        """Write the held-out figures of a step's weights to metrics.jsonl, once."""
        self._metrics.discard(step=step, heldout_set=heldout_set)
        self._metrics.append(
            step=step,
            tokens=step * step_tokens(self.config),
            heldout_set=heldout_set,
            heldout_perplexity=figures.perplexity,
            heldout_forward_perplexity=figures.forward_perplexity,
            heldout_backward_perplexity=figures.backward_perplexity,
            heldout_bits_per_character=figures.bits_per_character,
            heldout_oov_rate=figures.oov_rate,
        )

    def _save_checkpoint(self, *, figures: Figures | None = None, interrupted: bool = False) -> None:
        self.checkpoints.save(
            Checkpoint(
                state={
                    "step": self.step,
                    "tokens": self.step * step_tokens(self.config),
                    "interrupted": interrupted,
                    "model": self.model.describe(self._vocabulary_digest),
                    "carry_state": self.config.carry_state,
                    "computation": self.computation.describe(),
                    "heldout_sample": asdict(figures) if figures else None,
                    "learning_rate_scale": self._position.learning_rate_scale,
                    "num_rollbacks": self._position.num_rollbacks,
                    "elapsed_seconds": self._position.elapsed_seconds,
                    "streams": self._learner.save_position(),
                },
                model=self.model.named_tensors(),
                optimizer=self._learner.tensors(),
            )
        )
