"""Resolve the settings of a command before its first stage, including what the model to start from determines."""

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from elmo_zh.bundle import BundleLayout
from elmo_zh.bundle.find_bundle import explain_no_bundle
from elmo_zh.config import Config
from elmo_zh.errors import BundleError
from elmo_zh.language import _
from elmo_zh.run.layout import RunDir
from elmo_zh.run.record import is_in_training, load_record, require_files
from elmo_zh.run.reporter import Reporter
from elmo_zh.run.stage_table import SEGMENT, TRAIN, VOCAB, Stage
from elmo_zh.stages.inputs import find_user_dictionary, text_settings


def resolve_settings(
    run: RunDir,
    config: Config,
    stages: Collection[Stage],
    named: Collection[str],
    *,
    force: bool,
    reporter: Reporter,
) -> Config:
    """Return the final settings with which a command runs stages; no stage changes them.

    Paths of bundles are resolved, since a link's target may change. The model to start from determines section model
    and, in a new run, section text, except for the settings that the user `named`.

    Raises:
        BundleError: If a bundle that the run does not know yet is missing, or cannot be started from.
        RunError: If the model was trained on text that was prepared differently.
    """
    config = _with_real_paths(run, config, stages)
    if config.train.init and config.word2vec.vectors and TRAIN in stages:
        reporter.warn(
            _("word2vec.vectors has no effect with --init: the rows come from {init}.").format(init=config.train.init)
        )
    init = config.train.init if SEGMENT in stages or TRAIN in stages else ""
    keeps_words = bool(config.vocab.init) and (SEGMENT in stages or VOCAB in stages)
    if not init and keeps_words:
        init = config.vocab.init
    if not init:
        return config
    from elmo_zh.bundle.settings import take_bundle_settings, take_text_settings

    if SEGMENT in stages and not run.config.exists():
        config = replace(config, text=take_text_settings(config.text, Path(init), named, reporter))
    if (is_in_training(run) and not force) or _has_used(run, init):
        return config
    if SEGMENT in stages:
        prepared = text_settings(config, find_user_dictionary(run, config))
    else:
        prepared = load_record(run.stage_record("segment"), damaged_is_none=force).get("settings", {})
    return take_bundle_settings(config, Path(init), prepared, named, reporter, with_words=keeps_words)


def _with_real_paths(run: RunDir, config: Config, stages: Collection[Stage]) -> Config:
    known = run.load_config(None, [])
    known_paths, real_paths = _real_inits(known), _real_inits(config)
    names = [stage.name for stage in stages]
    for section, path in real_paths.items():
        config = replace(config, **{section: replace(getattr(config, section), init=path)})
        is_new = section in names and path != known_paths.get(section)
        if is_new and not BundleLayout(Path(path)).info.is_file():
            raise BundleError(explain_no_bundle(Path(path)))
    words = config.vocab.words
    if words and VOCAB in stages and words != known.vocab.words:
        require_files(run, [Path(words)])
    return config


def _real_inits(config: Config) -> dict[str, str]:
    paths = {"vocab": config.vocab.init, "train": config.train.init}
    return {section: str(Path(path).resolve()) for section, path in paths.items() if path}


def _has_used(run: RunDir, init: str) -> bool:
    """Return whether a stage of the run has already used the bundle to start from, which is gone."""
    records = (load_record(run.stage_record(name), damaged_is_none=True) for name in ("vocab", "train"))
    was_used = any({"init", "train.init"} & record.get("settings", {}).keys() for record in records)
    return was_used and not Path(init).exists()
