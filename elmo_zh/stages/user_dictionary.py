"""What decides how text becomes tokens, the user dictionary among it."""

from pathlib import Path
from shutil import copyfile
from typing import Any

from elmo_zh.config import Config, preparation_settings
from elmo_zh.run.files import atomic_path, remove
from elmo_zh.run.layout import RunDir
from elmo_zh.run.record import (
    require_inputs,
)
from elmo_zh.text.segmenters.registry import describe_segmenter


def find_user_dictionary(run: RunDir, config: Config) -> Path | None:
    """Return the user dictionary: the one given, or the run's copy where a run was moved away from it."""
    if not config.text.user_dictionary:
        return None
    given = Path(config.text.user_dictionary)
    if not given.exists() and run.user_dictionary.exists():
        return run.user_dictionary
    require_inputs(run, [given])
    return given


def text_settings(config: Config, dictionary: Path | None) -> dict[str, Any]:
    """Return all that decides how text becomes tokens."""
    settings = preparation_settings(config.text, without=("user_dictionary",))
    return {**settings, "segmenter_version": describe_segmenter(config.text, dictionary)}


def copy_user_dictionary(run: RunDir, dictionary: Path | None) -> Path | None:
    """Give the run its own copy of the user dictionary, or none."""
    if dictionary is None:
        remove(run.user_dictionary)
        return None
    if not (run.user_dictionary.exists() and run.user_dictionary.samefile(dictionary)):
        with atomic_path(run.user_dictionary) as unfinished:
            copyfile(dictionary, unfinished)
    return run.user_dictionary
