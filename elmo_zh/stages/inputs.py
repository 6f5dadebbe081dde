"""The segmented files as inputs of later stages, and what these run on."""

from collections.abc import Iterable
from pathlib import Path

from elmo_zh.config import Config
from elmo_zh.engine.select import EngineChoice
from elmo_zh.errors import RunError
from elmo_zh.run.layout import RunDir
from elmo_zh.run.record import (
    require_inputs,
)


def segmented_inputs(run: RunDir) -> dict[str, Path]:
    """Return the segmented training files by their names in stage records."""
    require_inputs(run, [run.segmented])
    files = run.train_files()
    if not files:
        raise RunError(f"{run.segmented} holds no train-*.txt. Make them with: elmo-zh segment CORPUS --run {run.path}")
    return {f"segmented/{path.name}": path for path in files}


def choose_engine(engine: EngineChoice | None, config: Config) -> EngineChoice:
    """Return what was chosen, or else as many processes of this machine as the settings say."""
    return engine or EngineChoice(num_workers=config.text.num_workers)


def total_bytes(paths: Iterable[Path]) -> int:
    """Return the size of files together."""
    return sum(path.stat().st_size for path in paths)
