"""Start the ranks of a process group together.

Rank 0 alone decides whether there is anything to train. The other ranks wait, and get the settings from it.
"""

from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from elmo_zh.config import Config, parse_section
from elmo_zh.errors import RunError
from elmo_zh.run.files import file_digest
from elmo_zh.run.layout import RunDir
from elmo_zh.run.reporter import SilentReporter
from elmo_zh.training.distributed import TorchProcessGroup
from elmo_zh.training.train_run import train_run

_SOURCE_OF_SETTINGS = "the settings of rank 0"


def require_divisible_batch_size(config: Config, size: int) -> None:
    """Raise RunError unless the streams can be divided evenly among `size` ranks."""
    batch_size = config.train.batch_size
    if batch_size % size:
        nearest = max(size, round(batch_size / size) * size)
        raise RunError(
            f"train.batch_size = {batch_size} is not divisible by the number of processes, {size}. Start a different"
            f" number of processes, or a new run with --set train.batch_size={nearest}"
        )


def start_other_ranks(run: RunDir, config: Config, group: TorchProcessGroup) -> None:
    """Tell the waiting ranks, from rank 0, to start training, with which settings and on which text."""
    group.start_training({"config": asdict(config), "digests": _text_digests(run)})


def train_on_other_rank(run: RunDir, group: TorchProcessGroup) -> None:
    """Train on a rank other than 0 when rank 0 starts; exit with rank 0's status if it has nothing to train.

    Raises:
        RunError: If this machine lacks the encoded text, or has a different one.
    """
    description = group.wait_for_start()
    _require_same_text(run, description["digests"])
    train_run(run, _read_config(description["config"]), SilentReporter(), group)


def _text_digests(run: RunDir) -> dict[str, str]:
    """Return the digests of the files that identify the text and vocabulary on a machine, by path."""
    # store.json holds the sizes and counts of the store's other files.
    paths = (run.vocab, run.ids / "store.json")
    return {str(path.relative_to(run.path)): file_digest(path) for path in paths}


def _require_same_text(run: RunDir, expected: dict[str, str]) -> None:
    for name, digest in expected.items():
        path = run.path / Path(name)
        if not path.is_file() or file_digest(path) != digest:
            problem = "differs from that of rank 0" if path.is_file() else "is missing on this machine"
            raise RunError(
                f"{path} {problem}. Copy {run.vocab.name} and {run.ids.name}/ from the run on rank 0's machine."
            )


def _read_config(values: dict[str, Any]) -> Config:
    sections = {
        f.name: parse_section(getattr(Config(), f.name), values[f.name], f.name, _SOURCE_OF_SETTINGS)
        for f in fields(Config)
    }
    return Config(**sections)
