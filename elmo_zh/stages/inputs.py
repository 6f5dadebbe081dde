"""Shared by several stages: the user dictionary, text settings, and the engine."""

from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from shutil import copyfile
from typing import Any

from elmo_zh.config import Config, preparation_settings
from elmo_zh.engine.engine import Engine
from elmo_zh.engine.select import EngineChoice
from elmo_zh.run.files import atomic_path, remove
from elmo_zh.run.layout import RunDir
from elmo_zh.run.record import StageContext, require_files
from elmo_zh.text.segmenters import describe_segmenter


def find_user_dictionary(run: RunDir, config: Config) -> Path | None:
    """Return the user dictionary in the settings, or the run's copy of it if the original no longer exists."""
    if not config.text.dictionary:
        return None
    dictionary = Path(config.text.dictionary)
    if not dictionary.exists() and run.user_dictionary.exists():
        return run.user_dictionary
    require_files(run, [dictionary])
    return dictionary


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
    settings = preparation_settings(config.text)
    return {**settings, "segmenter_version": describe_segmenter(config.text, dictionary)}


def started_engine(context: StageContext, inputs: Iterable[Path]) -> AbstractContextManager[Engine]:
    """Start the chosen engine, or by default as many local processes as the settings and the inputs call for."""
    choice = context.engine or EngineChoice(num_workers=context.config.text.num_workers)
    return choice.started(sum(path.stat().st_size for path in inputs))
