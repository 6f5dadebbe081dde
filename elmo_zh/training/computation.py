"""Choose the precision, the kernel and the threads of training; forecast its cost by a trial on random words.

Settings left open keep their values when a run resumes: others would round differently and so change the weights.
"""

import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from elmo_zh.allocator import keep_freed_memory, peak_memory_bytes
from elmo_zh.bundle.weights import num_parameters
from elmo_zh.config import Config, ModelConfig, TrainConfig
from elmo_zh.errors import RunError
from elmo_zh.id_store import EncodedSentences, HeldoutSentences, IdStore
from elmo_zh.language import _
from elmo_zh.model.kernels.products import can_pack
from elmo_zh.model.language_model import LanguageModel, build_shape
from elmo_zh.model.precision import PRECISIONS, Precision, choose_device, choose_precision
from elmo_zh.reader.bilm import BiLMShape
from elmo_zh.run.reporter import format_bytes
from elmo_zh.training.distributed import SINGLE_PROCESS
from elmo_zh.training.learner import Learner
from elmo_zh.training.optimizer import Schedule, step_tokens
from elmo_zh.vocabulary.lexicon import Lexicon
from elmo_zh.vocabulary.vocabulary import SPECIALS, Vocabulary

_FLOAT = 4


def require_memory(model: ModelConfig, train: TrainConfig, num_tokens: int, device: torch.device) -> None:
    """Raise RunError if training on a CPU keeps more between two steps than the machine's memory can hold."""
    network, tables, states = count_numbers(model, train, build_shape(model, num_tokens), num_tokens)
    needed_bytes = _FLOAT * (network + tables + states)
    machine_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if device.type == "cpu" and needed_bytes > machine_bytes:
        message = _(
            "Training needs {needed} of memory, but this machine has {there}. Lower model.cell_dim or vocab.size."
        )
        raise RunError(message.format(needed=format_bytes(needed_bytes), there=format_bytes(machine_bytes)))


def count_numbers(model: ModelConfig, train: TrainConfig, shape: BiLMShape, num_tokens: int) -> tuple[int, int, int]:
    """Return how many numbers training keeps for the network, for the tables, and for the optimiser state."""
    table = num_tokens * model.projection_dim
    has_token_table = shape.characters is None
    num_tables = 1 if model.is_tied or not has_token_table else 2
    tables = table * num_tables + num_tokens
    network = num_parameters(shape) - (table if has_token_table else 0)
    # Together with AdamW, which keeps two numbers for each parameter, the tables' optimiser keeps one number per row.
    states = 2 * network + num_tokens * (num_tables + 1) if train.optimizer == "adamw" else network + tables
    return network, tables, states


@dataclass(frozen=True, kw_only=True)
class Computation:
    """The device, precision, kernel and number of threads that were chosen, and the version of torch."""

    device: str  # cpu or cuda
    precision: str  # Precision of matrix products: float32 or bfloat16
    kernel: str  # Products of the time loops: onednn (packed matrices) or torch
    num_threads: int  # Number of processor threads of each process
    torch_version: str

    @property
    def product_precision(self) -> Precision:
        """The precision of matrix products."""
        return PRECISIONS[self.precision]

    def differences(self, previous: Mapping[str, Any]) -> list[str]:
        """Describe for users, one by one, the changes since an earlier description."""
        return [
            f"{name} {previous[name]} -> {value}"
            for name, value in asdict(self).items()
            if name in previous and previous[name] != value
        ]


def choose_computation(
    config: TrainConfig, model: ModelConfig, device: torch.device, previous: Mapping[str, Any]
) -> Computation:
    """Choose how to compute on a device, and set torch's number of threads accordingly.

    Settings left open follow `previous`, the description of the run's computation so far. If it has none, the
    precision is bfloat16 if that is clearly faster for products of the model's shapes, else float32, and the number of
    threads is torch's.
    """
    if num_threads := config.num_threads or previous.get("num_threads"):
        torch.set_num_threads(num_threads)
    precision = config.precision
    if precision == "auto" and "precision" in previous:
        precision = previous["precision"]
    elif precision == "auto":
        precision = choose_precision(device, config.batch_size, 2 * model.projection_dim, 4 * model.cell_dim).name
    if device.type == "cuda":
        _set_up_gpu(config.deterministic)
    is_packed = can_pack(torch.empty(0, device=device), PRECISIONS[precision].dtype)
    return Computation(
        device=device.type,
        precision=precision,
        kernel="onednn" if is_packed else "torch",
        num_threads=torch.get_num_threads(),
        torch_version=str(torch.__version__),
    )


def _set_up_gpu(is_deterministic: bool) -> None:
    """Keep cuDNN from rounding float32 to TF32, as it does by default; choose deterministic kernels if requested."""
    torch.backends.cudnn.allow_tf32 = False
    if is_deterministic:
        # cuBLAS reads this when it is first used: https://docs.nvidia.com/cuda/cublas/#results-reproducibility
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True)
        # Filling would be wasted: all uninitialised memory here is written before it is read.
        torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]


# The trial


SENTENCE_TOKENS = 20
# The random text lasts for this many steps, then starts again.
_TEXT_STEPS = 8


def draw_words(num_rows: int, shape: tuple[int, ...], generator: np.random.Generator) -> NDArray[np.int64]:
    """Return random vocabulary rows, distributed like the words of a text (Zipf-Mandelbrot law)."""
    frequencies = 1 / (np.arange(num_rows - len(SPECIALS)) + 3.7) ** 1.1
    return generator.choice(len(frequencies), shape, p=frequencies / frequencies.sum()) + len(SPECIALS)


def draw_lexicon(num_rows: int, num_slots: int | None) -> Lexicon:
    """Return a lexicon of made-up words; `num_slots` is as in `Lexicon`."""
    return Lexicon(Vocabulary([*SPECIALS, *(f"词{row}" for row in range(len(SPECIALS), num_rows))]), num_slots)


def build_trial(config: Config, lexicon: Lexicon, device: torch.device, precision: Precision) -> Learner:
    """Return a learner that is ready to train a new model on sentences of random words."""
    num_rows = len(lexicon.vocabulary)
    model = LanguageModel.from_settings(config.model, num_rows)
    num_sentences = -(-_TEXT_STEPS * step_tokens(config.train) // SENTENCE_TOKENS)
    words = draw_words(num_rows, (num_sentences * SENTENCE_TOKENS,), np.random.default_rng(1))
    offsets = np.arange(num_sentences + 1, dtype=np.uint64) * np.uint64(SENTENCE_TOKENS)
    text = EncodedSentences(words.astype(np.uint32), offsets)
    no_text = np.zeros(0, np.uint32), np.zeros(1, np.uint64), np.zeros(0, np.uint32), np.zeros(0)
    store = IdStore(text, HeldoutSentences(*no_text), lexicon)
    seed = config.train.seed
    return Learner(model, store, config.train, device, lambda new: new.initialise(seed), SINGLE_PROCESS, precision)


# The trial takes as many steps as fit into the time, but at least two, since the first one compiles kernels.
_LEAST_STEPS, _MOST_STEPS, _TRIAL_SECONDS = 2, 40, 2.0


def forecast_training(config: Config, predictions: int, num_rows: int) -> dict[str, Any]:
    """Forecast the cost of training on a text with this many words and sentence ends, by trying a few steps.

    Raise RunError as `require_memory` does.
    """
    keep_freed_memory()
    train, model = config.train, config.model
    device = choose_device(train.device)
    computation = choose_computation(train, model, device, {})
    require_memory(model, train, num_rows, device)
    network, tables, states = count_numbers(model, train, build_shape(model, num_rows), num_rows)
    # The bundle has the token table also where the softmax shares it.
    token_table = num_rows * model.projection_dim if model.mode == "token" else 0
    steps = Schedule.build(train, predictions).num_steps
    step_seconds = _step_seconds(
        build_trial(config, draw_lexicon(num_rows, model.num_slots), device, computation.product_precision)
    )
    return {
        "tokens": steps * step_tokens(train),
        "epochs": steps * step_tokens(train) / max(1, predictions),
        "seconds": steps * step_seconds,
        "tokens_per_second": step_tokens(train) / step_seconds,
        "parameters": network + tables,
        "memory_bytes": peak_memory_bytes() if device.type == "cpu" else torch.cuda.max_memory_allocated(device),
        "checkpoint_bytes": train.keep_checkpoints * 4 * (network + tables + states),
        "bundle_bytes": 4 * (network + tables + token_table),
    }


def _step_seconds(learner: Learner) -> float:
    ends = [time.monotonic()]
    while len(ends) <= _LEAST_STEPS or (len(ends) <= _MOST_STEPS and ends[-1] - ends[0] <= _TRIAL_SECONDS):
        learner.train_step(len(ends) - 1, 1.0, average_loss=lambda loss: loss)
        ends.append(time.monotonic())
    return min(end - start for start, end in pairwise(ends))
