"""The bundle that a run starts from (--init), and the settings that it determines."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from elmo_zh.config import Config
from elmo_zh.run.layout import RunDir
from elmo_zh.run.record import is_in_training, load_record
from elmo_zh.run.reporter import Reporter

BUNDLE_HINT = "Give --init a folder that `elmo-zh export` has written, such as runs/NAME/model."


def with_resolved_init(config: Config) -> Config:
    """Return the settings with resolved paths of bundles: a link such as runs/latest may later lead elsewhere."""
    paths = {name: getattr(config, name).init for name in ("vocab", "train")}
    resolved = {name: str(Path(path).resolve()) for name, path in paths.items() if path}
    return replace(config, **{name: replace(getattr(config, name), init=path) for name, path in resolved.items()})


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
    """Return the settings with section model taken from the bundle to start from, if there is one.

    A run in training keeps its own settings. A run that has already used the bundle no longer needs it.

    Args:
        run: The run.
        config: The settings so far.
        init: Path of the bundle, or empty.
        text_settings: Settings that decide how the run's text becomes tokens, as `inputs.text_settings` returns them.
        named: Settings that the user has given, as section.key. They are not taken from the bundle.
        force: Whether to adopt the bundle's settings even if the run is in training.
        reporter: Receives notes and warnings.
    """
    records = (load_record(run.stage_record(stage), damaged_is_none=True) for stage in ("vocab", "train"))
    was_used = any({"init", "train.init"} & record.get("settings", {}).keys() for record in records)
    if not init or (is_in_training(run) and not force) or (was_used and not Path(init).exists()):
        return config
    from elmo_zh.bundle.settings import adopt_bundle

    return adopt_bundle(config, Path(init), text_settings, named, reporter)
