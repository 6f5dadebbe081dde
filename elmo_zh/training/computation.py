"""How a run computes: what is chosen once, by the machine, and kept when the run goes on.

Other choices give other roundings, and so in the end other weights.
"""

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch

from elmo_zh.config import TrainConfig
from elmo_zh.model.kernels.gpu_loop import choose_steps
from elmo_zh.model.kernels.products import can_pack
from elmo_zh.model.precision import PRECISIONS, Precision, fastest_training_precision


@dataclass(frozen=True, kw_only=True)
class Computation:
    """What was chosen.

    Attributes:
        device: cpu or cuda.
        precision: float32 or bfloat16, of matrix products.
        kernel: Of the time loops: onednn (packed matrices), triton (a GPU's cells) or torch.
        num_threads: Processor threads of each process.
        torch_version: As torch says.
    """

    device: str
    precision: str
    kernel: str
    num_threads: int
    torch_version: str

    @property
    def product_precision(self) -> Precision:
        """The precision of matrix products."""
        return PRECISIONS[self.precision]

    @property
    def product_bytes(self) -> int:
        """Bytes of a number in matrix products, as the device computes them."""
        return self.product_precision.bytes_per_number(torch.device(self.device))

    def describe(self) -> dict[str, Any]:
        """Return plain values for records."""
        return asdict(self)

    def differences(self, before: Mapping[str, Any]) -> list[str]:
        """Return what has changed since an earlier description, in words."""
        return [
            f"{name} was {before[name]}, is {value}"
            for name, value in self.describe().items()
            if name in before and before[name] != value
        ]


def kernel_fallback(device: torch.device) -> str:
    """Return why a GPU computes LSTM cells by torch's operations, which are slower than Triton's kernels; else ""."""
    return choose_steps(device, torch.float32).fallback_reason


def choose_computation(config: TrainConfig, device: torch.device, before: Mapping[str, Any]) -> Computation:
    """Choose for a device, and let torch have as many threads.

    Args:
        config: What the settings leave open is chosen as before, else by the machine.
        device: Where to compute.
        before: The description of the run's computation so far; empty for a new run.
    """
    precision = config.precision
    if precision == "auto":
        precision = before.get("precision") or fastest_training_precision(device).name
    if num_threads := config.num_threads or before.get("num_threads"):
        torch.set_num_threads(num_threads)
    if device.type == "cuda":
        _set_up_gpu(config.deterministic)
    is_packed = can_pack(torch.empty(0, device=device), PRECISIONS[precision].dtype)
    return Computation(
        device=device.type,
        precision=precision,
        kernel="onednn" if is_packed else choose_steps(device, torch.float32).name,
        num_threads=torch.get_num_threads(),
        torch_version=str(torch.__version__),
    )


def _set_up_gpu(is_deterministic: bool) -> None:
    """Let float32 be float32 in cuDNN too, which rounds to TF32 unless told not to, and choose repeatable kernels."""
    torch.backends.cudnn.allow_tf32 = False
    if is_deterministic:
        # cuBLAS reads this when it is first used: https://docs.nvidia.com/cuda/cublas/#results-reproducibility
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True)
        # Would fill whatever is about to be written anyway.
        torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
