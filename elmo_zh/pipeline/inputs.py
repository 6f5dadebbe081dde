"""The segmented files as inputs of later stages."""

from pathlib import Path

from elmo_zh.errors import RunError
from elmo_zh.run_dir import RunDir
from elmo_zh.stages import (
    require_inputs,
)


def segmented_inputs(run: RunDir) -> dict[str, Path]:
    """Return the segmented training files by their names in stage records."""
    require_inputs(run, [run.segmented])
    files = run.train_files()
    if not files:
        raise RunError(f"{run.segmented} holds no train-*.txt. Make them with: elmo-zh segment CORPUS --run {run.path}")
    return {f"segmented/{path.name}": path for path in files}
