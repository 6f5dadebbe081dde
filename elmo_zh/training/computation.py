"""Choose the precision, the kernel and the threads of training, and refuse models that do not fit into memory.

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
from elmo_zh.language import _
from elmo_zh.model.kernels.products import can_pack
from elmo_zh.model.language_model import build_shape
from elmo_zh.model.precision import PRECISIONS, Precision, choose_precision
from elmo_zh.reader.bilm import BiLMShape
from elmo_zh.run.reporter import format_bytes

_FLOAT = 4


def scores_every_word(train: TrainConfig, num_tokens: int) -> bool:
    """Return whether training uses the full softmax, because the settings say so or sampling would save nothing."""
    return train.softmax == "full" or 2 * train.num_negatives >= num_tokens


def require_memory(model: ModelConfig, train: TrainConfig, num_tokens: int, device: torch.device) -> None:
    """Raise RunError if the processor's memory cannot even hold what training keeps between two steps."""
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

    def describe(self) -> dict[str, Any]:
        """Return the choices as JSON values for records."""
        return asdict(self)

    def differences(self, previous: Mapping[str, Any]) -> list[str]:
        """Describe for users, one by one, the changes since an earlier description."""
        return [
            f"{name} {previous[name]} -> {value}"
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
