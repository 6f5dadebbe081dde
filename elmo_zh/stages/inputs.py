"""Find the inputs that several stages share: segmented files, the user dictionary, text settings and the engine."""

from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from shutil import copyfile
from typing import Any

from elmo_zh.config import Config, preparation_settings
from elmo_zh.engine.engine import Engine
from elmo_zh.engine.select import EngineChoice
from elmo_zh.errors import RunError
from elmo_zh.invocation import command
from elmo_zh.run.files import atomic_path, remove
from elmo_zh.run.layout import RunDir
from elmo_zh.run.record import require_inputs
from elmo_zh.text.segmenters.registry import describe_segmenter


def segmented_inputs(run: RunDir) -> dict[str, Path]:
    """Return the segmented training files by their names in stage records; raise RunError if there is no such file."""
    require_inputs(run, [run.segmented])
    files = run.train_files()
    if not files:
        raise RunError(
            f"{run.segmented} contains no train-*.txt files. Create them with:"
            f" {command('segment', 'CORPUS', '--run', run.path)}"
        )
    return {f"segmented/{path.name}": path for path in files}


def find_user_dictionary(run: RunDir, config: Config) -> Path | None:
    """Return the user dictionary in the settings, or the run's copy of it if the original no longer exists."""
    if not config.text.user_dictionary:
        return None
    given = Path(config.text.user_dictionary)
    if not given.exists() and run.user_dictionary.exists():
        return run.user_dictionary
    require_inputs(run, [given])
    return given


def copy_user_dictionary(run: RunDir, dictionary: Path | None) -> Path | None:
    """Copy the user dictionary to the run and return the copy; delete an earlier copy if there is no dictionary."""
    if dictionary is None:
        remove(run.user_dictionary)
        return None
    if not (run.user_dictionary.exists() and run.user_dictionary.samefile(dictionary)):
        with atomic_path(run.user_dictionary) as unfinished:
            copyfile(dictionary, unfinished)
    return run.user_dictionary


def text_settings(config: Config, dictionary: Path | None) -> dict[str, Any]:
    """Return all settings that decide how text becomes tokens, with the version of the segmenter."""
    settings = preparation_settings(config.text, without=("user_dictionary",))
    return {**settings, "segmenter_version": describe_segmenter(config.text, dictionary)}


def split_settings(config: Config) -> dict[str, bool]:
    """Return the setting that splits unknown words, for stage records that lack it if it is not set."""
    return {"text.split_unknown": True} if config.text.split_unknown else {}


def started_engine(
    engine: EngineChoice | None, config: Config, inputs: Iterable[Path]
) -> AbstractContextManager[Engine]:
    """Start the given engine, or by default as many local processes as the settings and the inputs call for."""
    choice = engine or EngineChoice(num_workers=config.text.num_workers)
    return choice.started(sum(path.stat().st_size for path in inputs))
