"""How rank 0, which alone judges whether there is anything to train, and the ranks that wait for it begin together."""

from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from elmo_zh.config import Config, parse_section
from elmo_zh.errors import RunError
from elmo_zh.run.files import file_digest
from elmo_zh.run.layout import RunDir
from elmo_zh.run.reporter import SilentReporter
from elmo_zh.training.distributed import ProcessGroup
from elmo_zh.training.train import train_run

_FIRST = "the settings of rank 0"


def require_even_shares(config: Config, size: int) -> None:
    """Raise RunError unless the streams can be dealt evenly to `size` ranks."""
    batch_size = config.train.batch_size
    if batch_size % size:
        near = max(size, round(batch_size / size) * size)
        raise RunError(
            f"train.batch_size = {batch_size} cannot be dealt evenly to {size} processes. Start another number of them,"
            f" or a new run with --set train.batch_size={near}"
        )


def begin_together(run: RunDir, config: Config, group: ProcessGroup) -> None:
    """Tell the waiting ranks, from rank 0, that training begins, with which settings and on which text."""
    group.begin({"config": asdict(config), "digests": _digests(run)})


def follow(run: RunDir, group: ProcessGroup) -> None:
    """Do the share of a rank other than 0 in what rank 0 begins; end as it does if there is nothing to do.

    Raises:
        RunError: If this machine lacks the text, or has another one.
    """
    order = group.wait_for_order()
    _require_same_text(run, order["digests"])
    train_run(run, _read_config(order["config"]), SilentReporter(), group)


def _digests(run: RunDir) -> dict[str, str]:
    """Return the digests of the files that show which text and vocabulary a machine has, by path."""
    # The sizes and counts of the store's files stand in its description.
    paths = (run.vocab, run.ids / "store.json")
    return {str(path.relative_to(run.path)): file_digest(path) for path in paths}


def _require_same_text(run: RunDir, expected: dict[str, str]) -> None:
    for name, digest in expected.items():
        path = run.path / Path(name)
        if not path.is_file() or file_digest(path) != digest:
            what = "is not that of rank 0" if path.is_file() else "is missing on this machine"
            raise RunError(f"{path} {what}. Copy {run.vocab.name} and {run.ids.name}/ of the run from there.")


def _read_config(values: dict[str, Any]) -> Config:
    sections = {
        f.name: parse_section(getattr(Config(), f.name), values[f.name], f.name, _FIRST) for f in fields(Config)
    }
    return Config(**sections)
