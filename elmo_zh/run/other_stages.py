"""Settings that a command changes although another stage made its files with them."""

import shlex
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from elmo_zh.config import Config, result_settings
from elmo_zh.errors import RunError
from elmo_zh.invocation import program
from elmo_zh.run.changes import describe_settings
from elmo_zh.run.layout import RunDir
from elmo_zh.run.record import STAGES, load_record

# The sections that a stage's result depends on. `encode` has no settings of its own.
_SECTIONS = {"segment": ("text",), "vocab": ("vocab",), "word2vec": ("word2vec",), "train": ("model", "train")}
# Settings of another stage's section that a stage reads too.
_ALSO_READ = {
    "vocab": {"model"},  # taken from --init
    "word2vec": {"model"},
    "encode": {"model"},
    "train": {"word2vec.enabled"},
}


def earlier_stages(stage: str) -> tuple[str, ...]:
    """Return the stages that run before a stage."""
    return STAGES[: STAGES.index(stage)]


def later_stages(stage: str) -> tuple[str, ...]:
    """Return the stages that run after a stage."""
    return STAGES[STAGES.index(stage) + 1 :]


def refuse_settings_of(others: Collection[str], stage: str, run: RunDir, before: Config, config: Config) -> None:
    """Raise RunError if settings were changed that have no effect on a stage, but decided what other stages made.

    Were they saved, those stages would no longer fit the run's settings, and later commands would refuse. Only stages
    that have begun count.
    """
    for other in others:
        if changes := list(_changes(other, stage, run, before, config)):
            command = "segment CORPUS" if other == "segment" else other
            typed = f"{program()} {command} --run {shlex.quote(str(run.path))} --set ..."
            raise RunError(
                f"{stage} does not use these settings, and {other} has used others: {', '.join(changes)}."
                f" Leave them out, or change them with: {typed}"
            )


def _changes(other: str, stage: str, run: RunDir, before: Config, config: Config) -> Iterator[str]:
    record = load_record(run.stage_record(other), damaged_is_none=True)
    also_read = _ALSO_READ.get(stage, ())
    for section in _SECTIONS.get(other, ()) if record else ():
        known = _recorded(other, section, record)
        old, default, now = (result_settings(getattr(each, section)) for each in (before, Config(), config))
        for key, value in now.items():
            name = f"{section}.{key}"
            is_new = value not in (old[key], known.get(key, default[key]))
            if is_new and section not in also_read and name not in also_read:
                yield from describe_settings({name: old[key]}, {name: value})


def _recorded(stage: str, section: str, record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the recorded settings of a section by their keys; train records them with the section's name."""
    settings: dict[str, Any] = record["settings"]
    if stage != "train":
        return settings
    prefix = f"{section}."
    named = {name.removeprefix(prefix): value for name, value in settings.items() if name.startswith(prefix)}
    return {**named, **(record["budget"] if section == "train" else {})}
