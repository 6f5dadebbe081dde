"""The training loop, with checkpoints and held-out evaluations."""

import math
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass

import torch

from elmo_zh.config import TrainConfig
from elmo_zh.errors import RunError
from elmo_zh.id_store import IdStore
from elmo_zh.language import _
from elmo_zh.model.language_model import LanguageModel
from elmo_zh.run.reporter import Reporter, silence_stderr
from elmo_zh.scoring import Figures
from elmo_zh.training.checkpoint import Checkpoint, CheckpointFolder, MetricsFile
from elmo_zh.training.computation import Computation
from elmo_zh.training.distributed import SINGLE_PROCESS, ProcessGroup
from elmo_zh.training.evaluation import evaluate_heldout, sample_sentences
from elmo_zh.training.learner import Learner, NotFiniteError
from elmo_zh.training.optimizer import Schedule, step_tokens

# Stands for the end of train.max_minutes; no signal has this number.
OUT_OF_TIME = 1000


@dataclass(kw_only=True, eq=False)
class Trainer:
    """Trains a language model on an id store; each rank of a process group has its own, and all take the same steps."""

    model: LanguageModel
    store: IdStore  # Training and held-out sentences
    vocabulary_digest: str  # Digest of the vocabulary that the model and the store belong to
    config: TrainConfig
    checkpoints: CheckpointFolder  # Folder to save checkpoints in, and to resume from
    metrics: MetricsFile  # File of the training and held-out figures
    device: torch.device
    computation: Computation  # Precision, kernel and threads, as `choose_computation` returned them
    reporter: Reporter  # Receives notes, warnings and progress
    initialise: Callable[[LanguageModel], None]  # Fills a model with the weights that training starts from
    group: ProcessGroup = SINGLE_PROCESS

    def __post_init__(self) -> None:
        self.schedule = Schedule.build(self.config, self.store.train.num_predictions)
        self._stop_signals = StopSignals(self.group, self.config.max_minutes * 60)
        self._sample = sample_sentences(self.store.heldout, self.config.evaluate_sample_tokens)
        self.step = 0  # Number of steps trained so far
        self.elapsed_seconds = 0.0  # Seconds up to the last step, including evaluations and checkpoints
        # Counted since the last training line in metrics.jsonl; the seconds exclude evaluations and checkpoints.
        self._unlogged_steps, self._unlogged_seconds = 0, 0.0
        # The time at which training would have started if it had never been interrupted.
        self._clock = time.monotonic()
        self._learner = Learner(
            self.model, self.store, self.config, self.device, self.initialise, self.group,
            self.computation.product_precision,
        )  # fmt: skip

    def resume(self) -> bool:
        """Resume from the last checkpoint; return whether there was one."""
        steps = self.checkpoints.steps()
        if not steps:
            # Training that was killed before its first checkpoint may have left lines.
            self.metrics.cut_after(-1)
            return False
        checkpoint = self.checkpoints.load(steps[-1])
        state = checkpoint.state
        self.model.require_same(state["model"], self.vocabulary_digest, self.checkpoints.folder(steps[-1]))
        self._learner.restore(checkpoint)
        self.step, self.elapsed_seconds = state["step"], state["elapsed_seconds"]
        self.metrics.cut_after(self.step)
        if state["interrupted"]:  # figures that an uninterrupted training would not have
            for heldout_set in ("sample", "full"):
                self.metrics.discard(step=self.step, heldout_set=heldout_set)
        return True

    def train(self) -> None:
        """Train to the end of the schedule.

        Ctrl-C, SIGTERM, SIGHUP and the end of train.max_minutes stop it between two steps, with a checkpoint.
        """
        tokens_per_step = step_tokens(self.config)
        total, trained = self.schedule.num_steps * tokens_per_step, self.step * tokens_per_step
        with (
            self.reporter.progress("train", unit="tokens", total=total, initial=trained) as progress,
            self._stop_signals.deferred(),
        ):
            self._clock = time.monotonic() - self.elapsed_seconds
            if self.step == 0:
                self._evaluate_sample()
            elif self.is_finished and self.checkpoints.best_step() is None:
                self._rate_last_checkpoint()
            while self.step < self.schedule.num_steps:
                progress.update(tokens_per_step, loss=self._train_step())
                if (stop := self._stop_signals.pending()) and self.step < self.schedule.num_steps:
                    self._stop(stop)
                    return

    @property
    def is_finished(self) -> bool:
        """Whether training has reached the end of its schedule, or is past it."""
        return self.step >= self.schedule.num_steps

    def _stop(self, reason: int) -> None:
        """Save a checkpoint from which the same command continues; raise SystemExit if a signal is the reason."""
        is_out_of_time = reason == OUT_OF_TIME
        if self.step not in self.checkpoints.steps():
            self._save_checkpoint(figures=self._evaluate_sample() if is_out_of_time else None, interrupted=True)
        if not is_out_of_time:
            raise SystemExit(128 + reason)
        message = _("Stopped after train.max_minutes = {minutes:g}. Repeat the command to continue from step {step:,}.")
        self.reporter.note(message.format(minutes=self.config.max_minutes, step=self.step))

    def _rate_last_checkpoint(self) -> None:
        """Evaluate a checkpoint that an interruption left and that a smaller train.max_tokens made the last one."""
        if figures := self._evaluate_sample():
            self.checkpoints.update_state(self.step, {"heldout_sample": asdict(figures)})

    def _train_step(self) -> float:
        started_at = time.monotonic()
        factor = self.schedule.learning_rate_factor(self.step)
        try:
            loss, norm = self._learner.train_step(self.step, factor, self._stop_signals.average_loss)
        except NotFiniteError as error:
            raise self._diverged(str(error)) from None
        self.step += 1
        self._unlogged_steps += 1
        self._unlogged_seconds += time.monotonic() - started_at
        self._log(loss, norm)
        figures = None
        is_last = self.step == self.schedule.num_steps
        if is_last or self._is_due(self.config.evaluate_every_tokens):
            figures = self._evaluate_sample()
        self.elapsed_seconds = time.monotonic() - self._clock
        if is_last or figures or self._is_due(self.config.checkpoint_every_tokens):
            self._save_checkpoint(figures=figures)
        return loss

    def _is_due(self, every_tokens: int) -> bool:
        return self.step % max(1, round(every_tokens / step_tokens(self.config))) == 0

    def _diverged(self, problem: str) -> RunError:
        kept = ", ".join(map(str, self.checkpoints.steps())) or "-"
        message = _(
            "Training diverged at step {step}: {problem}. Checkpoints kept: {kept}. Start again with"
            " train.learning_rate below {rate}, in another --run or with --force."
        )
        rate = f"{self.config.learning_rate:g}"
        return RunError(message.format(step=self.step, problem=problem, kept=kept, rate=rate))

    def _log(self, loss: float, norm: float) -> None:
        config = self.config
        if self.step % config.log_every_steps == 0 or self.step == self.schedule.num_steps:
            factor = self.schedule.learning_rate_factor(self.step - 1)
            self.metrics.append(
                step=self.step,
                tokens=self.step * step_tokens(config),
                train_loss=loss,
                learning_rate=factor * config.learning_rate,
                grad_norm=norm,
                tokens_per_second=round(self._unlogged_steps * step_tokens(config) / self._unlogged_seconds, 1),
                elapsed_seconds=round(time.monotonic() - self._clock, 3),
            )
            self._unlogged_steps, self._unlogged_seconds = 0, 0.0

    def _evaluate_sample(self) -> Figures | None:
        if not len(self._sample):
            return None
        figures = evaluate_heldout(self.model, self.store, self._sample, None, self.group)
        if self.step and not figures.is_finite:
            raise self._diverged("heldout_perplexity = inf")
        self.append_figures(figures, "sample", step=self.step)
        message = _(
            "step {step}, {tokens} tokens: held-out perplexity {perplexity} (sample), {bits} bits per character"
        )
        tokens, bits = f"{self.step * step_tokens(self.config):,}", f"{figures.bits_per_character:.3f}"
        self.reporter.note(
            message.format(step=self.step, tokens=tokens, perplexity=f"{figures.perplexity:,.1f}", bits=bits)
        )
        return figures

    def append_figures(self, figures: Figures, heldout_set: str, *, step: int) -> None:
        """Write the held-out figures for a step's weights to metrics.jsonl, replacing earlier ones."""
        self.metrics.discard(step=step, heldout_set=heldout_set)
        self.metrics.append(
            step=step,
            tokens=step * step_tokens(self.config),
            heldout_set=heldout_set,
            **{f"heldout_{name}": value for name, value in asdict(figures).items() if name != "num_predictions"},
        )
        self.metrics.sync()

    def _save_checkpoint(self, *, figures: Figures | None = None, interrupted: bool = False) -> None:
        self.metrics.sync()
        self.checkpoints.save(
            Checkpoint(
                state={
                    "step": self.step,
                    "elapsed_seconds": self.elapsed_seconds,
                    "tokens": self.step * step_tokens(self.config),
                    "interrupted": interrupted,
                    "model": self.model.describe(self.vocabulary_digest),
                    "carry_state": self.config.carry_state,
                    "computation": asdict(self.computation),
                    "heldout_sample": asdict(figures) if figures else None,
                    "streams": self._learner.save_position(),
                },
                model=self.model.named_tensors(),
                optimizer=self._learner.tensors(),
            )
        )


class StopSignals:
    """The reasons to stop training between two steps: SIGINT, SIGTERM, SIGHUP (a closed terminal), or no time left."""

    def __init__(self, group: ProcessGroup, seconds: float = 0.0) -> None:
        self._group, self._seconds, self._end = group, seconds, math.inf
        self._received = self._agreed = 0

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Note signals instead of being interrupted.

        With one rank, a second signal interrupts immediately. With several it does not, since torchrun repeats signals
        that the terminal has already sent.
        """
        self._received = self._agreed = 0
        self._end = time.monotonic() + self._seconds if self._seconds else math.inf
        previous = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
        # A program that was started with nohup ignores SIGHUP.
        previous = {number: handler for number, handler in previous.items() if handler != signal.SIG_IGN}

        def restore() -> None:
            for number, handler in previous.items():
                signal.signal(number, handler)

        def receive(number: int, _frame: object) -> None:
            self._received = self._received or number
            if number == signal.SIGHUP:
                silence_stderr()
            if self._group.size == 1:
                restore()

        for number in previous:
            signal.signal(number, receive)
        try:
            yield
        finally:
            restore()

    def average_loss(self, loss: float) -> float:
        """Return the mean loss of all ranks; the same operation tells all of them if one has a reason to stop."""
        gathered = self._group.all_gather_numbers(loss, self._wish())
        self._agreed = int(max(number for _, number in gathered))
        return sum(one_loss for one_loss, _ in gathered) / len(gathered)

    def pending(self) -> int:
        """Return the signal that asks training to stop, `OUT_OF_TIME`, or 0; it is the same on all ranks."""
        return self._wish() if self._group.size == 1 else self._agreed

    def _wish(self) -> int:
        return self._received or (OUT_OF_TIME if time.monotonic() >= self._end else 0)
