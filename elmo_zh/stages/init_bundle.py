"""The bundle that a run starts from, and what it decides of the settings."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from elmo_zh.config import Config
from elmo_zh.run.layout import RunDir
from elmo_zh.run.record import (
    is_in_training,
    load_record,
)
from elmo_zh.run.reporter import Reporter

BUNDLE_HINT = "Give --init the folder that `elmo-zh export` wrote, such as runs/NAME/model."


def with_resolved_init(config: Config) -> Config:
    """Return the settings with whole paths of bundles: links such as runs/latest lead elsewhere later on."""
    paths = {name: getattr(config, name).init for name in ("vocab", "train")}
    whole = {name: str(Path(path).resolve()) for name, path in paths.items() if path}
    return replace(config, **{name: replace(getattr(config, name), init=path) for name, path in whole.items()})


def adopt_model(
    run: RunDir,
    config: Config,
    init: str,
    text_settings: Mapping[str, Any],
    named: Collection[str],
    *,
    force: bool,
    reporter: Reporter,
) -> Config:
    """Return the settings with those of section model that the bundle to start from decides, if there is one.

    A run in training keeps its own, and one that has begun to use the bundle can do without it.
    """
    records = (load_record(run.stage_record(stage), damaged_is_none=True) for stage in ("vocab", "train"))
    is_begun = any({"init", "train.init"} & record.get("settings", {}).keys() for record in records)
    if not init or (is_in_training(run) and not force) or (is_begun and not Path(init).exists()):
        return config
    from elmo_zh.bundle.settings import adopt_bundle

    return adopt_bundle(config, Path(init), text_settings, named, reporter)
