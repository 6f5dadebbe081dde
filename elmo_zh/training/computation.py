"""Predict the memory that training needs on a machine, and choose its precision, kernel and threads.

The choices are kept when a run resumes: others would round differently and so lead to different weights.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch

from elmo_zh.bundle.weights import num_parameters
from elmo_zh.config import ModelConfig, TrainConfig
from elmo_zh.errors import RunError
from elmo_zh.model.kernels.next_token_loss import MIN_CHUNK_ROWS
from elmo_zh.model.kernels.products import can_pack
from elmo_zh.model.language_model import build_shape
from elmo_zh.model.precision import PRECISIONS, Precision
from elmo_zh.model.precision_choice import choose_precision
from elmo_zh.model.softmax import MAX_TRAINING_SCORES
from elmo_zh.reader.shape import BiLMShape
from elmo_zh.reader.softmax import BLOCK_SCORES, MIN_BLOCK_ROWS
from elmo_zh.reader.threads import num_threads
from elmo_zh.scoring.exact import BATCH_TOKENS
from elmo_zh.training.evaluation import MAX_TRAIN_TOKENS

# Memory for Python and torch, including their code, and what torch allocates when optimisers are created.
_PROCESS_BYTES = 350_000_000
_FLOAT = 4
# The allocator keeps freed memory, into which later tensors do not always fit.
_FRAGMENTATION = 1.25
# A Python string of a few characters and its entry in a list.
_OTHER_WORD_BYTES = 90
# For the baselines: bigrams as 64-bit keys, their sorted copy and their counts.
_BASELINE_BYTES_PER_TOKEN = 53


def scores_every_word(train: TrainConfig, num_tokens: int) -> bool:
    """Return whether training uses the full softmax, because the settings say so or sampling would save nothing."""
    return train.softmax == "full" or 2 * train.num_negatives >= num_tokens


def predict_memory(
    model: ModelConfig,
    train: TrainConfig,
    product_bytes: int,
    num_tokens: int,
    num_train_tokens: int,
    num_other_words: int = 0,
) -> int:
    """Return the predicted peak memory of a process in bytes, in training or while counting the baseline's bigrams."""
    shape = build_shape(model, num_tokens)
    network, tables, states = count_numbers(model, train, shape, num_tokens)
    # Weights, gradients, the optimiser's state, and two copies of the word2vec vectors.
    needed = _FLOAT * (2 * network + tables + states + 2 * num_tokens * model.projection_dim)
    needed += _evaluation(model, num_tokens)
    needed += _activations(model, train, shape, product_bytes) + _softmax(model, train, product_bytes, num_tokens)
    counting = _BASELINE_BYTES_PER_TOKEN * min(num_train_tokens, MAX_TRAIN_TOKENS)
    return _PROCESS_BYTES + max(int(_FRAGMENTATION * needed), counting) + _OTHER_WORD_BYTES * num_other_words


def require_memory(needed_bytes: int, device: torch.device) -> None:
    """Raise RunError if training on the processor needs more memory than the machine has."""
    machine_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if device.type == "cpu" and needed_bytes > machine_bytes:
        raise RunError(
            f"Training this model needs about {needed_bytes / 1e9:,.1f} GB of memory, but this machine has"
            f" {machine_bytes / 1e9:,.1f} GB. Lower model.cell_dim, vocab.size or train.batch_size."
        )


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


def _activations(model: ModelConfig, train: TrainConfig, shape: BiLMShape, product_bytes: int) -> int:
    P, D = model.projection_dim, model.cell_dim
    predictions = 2 * train.batch_size * train.unroll_steps
    # Gates, cells and their tanh; inputs and outputs, in both dtypes.
    kept = predictions * (_FLOAT * (6 * D + 3 * P) + product_bytes * 3 * P)
    # The gradient of the gates; a layer's joined weight matrix itself, transposed, packed, and its gradient.
    passing = predictions * product_bytes * 4 * D + 4 * product_bytes * 2 * 2 * P * 4 * D
    words = 0
    if cnn := shape.characters:
        # A typical word is as long as the widest filter. For each ending that it shares with no other word, the CNN
        # keeps the maximal responses and their gradient.
        endings = min(cnn.num_slots, max(width for width, _ in cnn.filters))
        words = predictions * (2 * endings + 4 * cnn.num_highways) * cnn.num_filters
    return kept * model.num_layers + passing + _FLOAT * words


def _softmax(model: ModelConfig, train: TrainConfig, product_bytes: int, num_tokens: int) -> int:
    """Return the bytes taken by one step's scores and the scored rows: the rows, two packed copies, their gradient."""
    predictions = 2 * train.batch_size * train.unroll_steps
    scored = num_tokens if scores_every_word(train, num_tokens) else train.num_negatives
    rows = scored * model.projection_dim
    # Each half of the cores works on this many predictions at a time.
    chunks = min(2 * MIN_CHUNK_ROWS * scored, MAX_TRAINING_SCORES)
    kept = min(predictions * scored, MAX_TRAINING_SCORES) + 4 * rows
    return product_bytes * (kept + chunks) + _FLOAT * (5 * rows + chunks)


def _evaluation(model: ModelConfig, num_tokens: int) -> int:
    P, D = model.projection_dim, model.cell_dim
    outputs = 2 * BATCH_TOKENS * ((model.num_layers + 1) * P + D)
    scores = num_threads() * max(BLOCK_SCORES, MIN_BLOCK_ROWS * num_tokens)
    return _FLOAT * (3 * num_tokens * P + 2 * scores + outputs)


@dataclass(frozen=True, kw_only=True)
class Computation:
    """The device, precision, kernel and number of threads that were chosen."""

    device: str  # cpu or cuda
    precision: str  # Precision of matrix products: float32 or bfloat16
    kernel: str  # Products of the time loops: onednn (packed matrices) or torch
    num_threads: int  # Number of processor threads of each process
    torch_version: str

    @property
    def product_precision(self) -> Precision:
        """The precision of matrix products."""
        return PRECISIONS[self.precision]

    @property
    def product_bytes(self) -> int:
        """Size in bytes of a number in matrix products, as the device computes them."""
        return self.product_precision.bytes_per_number(torch.device(self.device))

    def describe(self) -> dict[str, Any]:
        """Return the choices as JSON values for records."""
        return asdict(self)

    def differences(self, previous: Mapping[str, Any]) -> list[str]:
        """Describe for users, one by one, the changes since an earlier description."""
        return [
            f"{name} changed from {previous[name]} to {value}"
            for name, value in self.describe().items()
            if name in previous and previous[name] != value
        ]


def choose_computation(
    config: TrainConfig,
    model: ModelConfig,
    device: torch.device,
    previous: Mapping[str, Any],
    note: Callable[[str], None] = lambda _: None,
) -> Computation:
    """Choose how to compute on a device, and set torch's number of threads accordingly.

    Settings left open follow `previous`, the description of the run's computation so far, or otherwise suit the
    machine, measured on products of the model's shapes; `note` receives a line about the choice.
    """
    if num_threads := config.num_threads or previous.get("num_threads"):
        torch.set_num_threads(num_threads)
    precision = config.precision
    if precision == "auto" and "precision" in previous:
        precision = previous["precision"]
    elif precision == "auto":
        choice = choose_precision(device, config.batch_size, 2 * model.projection_dim, 4 * model.cell_dim)
        precision = choice.precision.name
        if choice.speedup is not None:
            note(choice.describe())
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
    """Keep cuDNN from rounding float32 to TF32, its default, and choose deterministic kernels if requested."""
    torch.backends.cudnn.allow_tf32 = False
    if is_deterministic:
        # cuBLAS reads this when it is first used: https://docs.nvidia.com/cuda/cublas/#results-reproducibility
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True)
        # Filling would be wasted: all uninitialised memory here is written before it is read.
        torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
