"""Find the bundle that a run starts from (--init), and adopt the settings that it determines."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from elmo_zh.bundle.find_bundle import explain_no_bundle
from elmo_zh.bundle.layout import BundleLayout
from elmo_zh.config import Config
from elmo_zh.errors import BundleError
from elmo_zh.run.layout import RunDir
from elmo_zh.run.record import is_in_training, load_record, require_inputs
from elmo_zh.run.reporter import Reporter
from elmo_zh.stages.inputs import find_user_dictionary, text_settings


def explain_missing(bundle: Path, file: Path) -> str:
    """Explain to the user that the bundle to start from, or one of its files, is missing."""
    if BundleLayout(bundle).info.is_file():
        return f"{file} is missing. Export or copy the bundle again."
    return explain_no_bundle(bundle)


def with_resolved_init(run: RunDir, config: Config, sections: Collection[str] = ("vocab", "train")) -> Config:
    """Return the settings with bundle paths resolved, since a link's target may change; new paths must exist."""
    known = run.load_config(None, [])
    resolved, known_paths = _resolved_inits(config), _resolved_inits(known)
    config = replace(config, **{name: replace(getattr(config, name), init=path) for name, path in resolved.items()})
    for name, path in resolved.items():
        is_new = name in sections and path != known_paths.get(name)
        if is_new and not BundleLayout(Path(path)).info.is_file():
            raise BundleError(explain_no_bundle(Path(path)))
    words = config.vocab.words
    if words and "vocab" in sections and words != known.vocab.words:
        require_inputs(run, [Path(words)])
    return config


def _resolved_inits(config: Config) -> dict[str, str]:
    paths = {name: getattr(config, name).init for name in ("vocab", "train")}
    return {name: str(Path(path).resolve()) for name, path in paths.items() if path}


def adopt_init(run: RunDir, config: Config, named: Collection[str], *, force: bool, reporter: Reporter) -> Config:
    """Return the settings with the bundle's values in the sections it determines: model and, in a new run, text."""
    config = with_resolved_init(run, config)
    if not (init := config.train.init or config.vocab.init):
        return config
    config = adopt_text(run, config, init, named, reporter)
    made_with = text_settings(config, find_user_dictionary(run, config))
    return adopt_model(run, config, init, made_with, named, force=force, reporter=reporter)


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
    """Return the settings with section model from the bundle, except for `named`, if the run still needs the bundle."""
    records = (load_record(run.stage_record(stage), damaged_is_none=True) for stage in ("vocab", "train"))
    was_used = any({"init", "train.init"} & record.get("settings", {}).keys() for record in records)
    if not init or (is_in_training(run) and not force) or (was_used and not Path(init).exists()):
        return config
    from elmo_zh.bundle.settings import adopt_bundle

    return adopt_bundle(config, Path(init), text_settings, named, reporter)


def adopt_text(run: RunDir, config: Config, init: str, named: Collection[str], reporter: Reporter) -> Config:
    """Return a new run's settings, with section text from the bundle except for `named`; existing runs keep theirs."""
    if run.config.exists():
        return config
    from elmo_zh.bundle.read import load_bundle
    from elmo_zh.bundle.settings import take_text_settings

    return replace(config, text=take_text_settings(config.text, load_bundle(Path(init)), named, reporter))
