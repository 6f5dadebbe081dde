"""Choose precision, kernel and threads of a run once, according to the machine, and keep them when it resumes.

Different choices round differently, and so lead to different weights.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch

from elmo_zh.config import ModelConfig, TrainConfig
from elmo_zh.model.kernels.products import can_pack
from elmo_zh.model.precision import PRECISIONS, Precision
from elmo_zh.model.precision_choice import choose_precision


@dataclass(frozen=True, kw_only=True)
class Computation:
    """The chosen device, precision, kernel and number of threads."""

    device: str  # cpu or cuda
    precision: str  # Precision of matrix products: float32 or bfloat16
    kernel: str  # Products of the time loops: onednn (packed matrices) or torch
    num_threads: int  # Number of processor threads of each process
    torch_version: str  # Version of torch
    # How many times as fast as float32 bfloat16 was when the precision was chosen; None if it was not measured.
    bfloat16_speedup: float | None = None

    @property
    def product_precision(self) -> Precision:
        """The precision of matrix products."""
        return PRECISIONS[self.precision]

    @property
    def product_bytes(self) -> int:
        """Bytes of a number in matrix products, as the device computes them."""
        return self.product_precision.bytes_per_number(torch.device(self.device))

    def describe(self) -> dict[str, Any]:
        """Return JSON values for records."""
        found = asdict(self)
        if self.bfloat16_speedup is None:
            del found["bfloat16_speedup"]
        return found

    def differences(self, previous: Mapping[str, Any]) -> list[str]:
        """Return, for users, what has changed since an earlier description."""
        return [
            f"{name} was {previous[name]}, is {value}"
            for name, value in self.describe().items()
            if name in previous and previous[name] != value and name != "bfloat16_speedup"
        ]


def choose_computation(
    config: TrainConfig,
    model: ModelConfig,
    device: torch.device,
    previous: Mapping[str, Any],
    note: Callable[[str], None] = lambda _: None,
) -> Computation:
    """Choose how to compute on a device, and set torch's number of threads accordingly.

    What the settings leave open is chosen as in `previous`, the description of the run's computation so far, or else to
    suit the machine, by measuring products of the model's shapes; `note` receives a line about that.
    """
    if num_threads := config.num_threads or previous.get("num_threads"):
        torch.set_num_threads(num_threads)
    precision, speedup = config.precision, None
    if precision == "auto" and "precision" in previous:
        precision, speedup = previous["precision"], previous.get("bfloat16_speedup")
    elif precision == "auto":
        choice = choose_precision(device, config.batch_size, 2 * model.projection_dim, 4 * model.cell_dim)
        precision, speedup = choice.precision.name, choice.speedup
        if speedup is not None:
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
        bfloat16_speedup=None if speedup is None else round(speedup, 2),
    )


def _set_up_gpu(is_deterministic: bool) -> None:
    """Keep cuDNN from rounding float32 to TF32, its default, and choose deterministic kernels if asked to."""
    torch.backends.cudnn.allow_tf32 = False
    if is_deterministic:
        # cuBLAS reads this when it is first used: https://docs.nvidia.com/cuda/cublas/#results-reproducibility
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True)
        # Filling is a waste: all uninitialised memory here is written before it is read.
        torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
