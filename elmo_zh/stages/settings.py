"""Resolve the settings of a command before its first stage, including those that the starting model determines."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from elmo_zh.bundle import BundleLayout
from elmo_zh.bundle.find_bundle import explain_no_bundle
from elmo_zh.config import (
    Config,
    ModelConfig,
    TextConfig,
    VocabConfig,
    preparation_settings,
    result_settings,
    with_defaults,
)
from elmo_zh.errors import NO_EFFECT, BundleError, ConfigError, RunError
from elmo_zh.language import _
from elmo_zh.run.layout import RunDir
from elmo_zh.run.record import describe_settings, is_in_training, load_record, require_files
from elmo_zh.run.reporter import Reporter, first_ten
from elmo_zh.run.stage_table import SEGMENT, TRAIN, VOCAB, Stage
from elmo_zh.text.segmenters import describe_segmenter

if TYPE_CHECKING:
    from elmo_zh.bundle.read import Bundle

S = TypeVar("S", TextConfig, VocabConfig, ModelConfig)


def resolve_settings(
    run: RunDir,
    config: Config,
    stages: Collection[Stage],
    named: Collection[str],
    *,
    force: bool,
    reporter: Reporter,
) -> Config:
    """Return the settings with which a command runs its stages.

    Paths of bundles are resolved, since a link's target may change. The starting model determines section model and, in
    a new run, the text settings that make tokens, except those that the user `named`. To keep its words, the vocabulary
    may be enlarged.

    Raises:
        BundleError: If a bundle that is new to the run does not exist, or if training cannot start from a bundle.
        ConfigError: If the settings do not fit together.
        RunError: If the word list or the user dictionary is missing, if the model was trained on text that was prepared
            differently, or if a setting of section model that the user named differs from the model's.
    """
    config = _with_real_paths(run, config, stages)
    if config.train.init and config.word2vec.vectors and TRAIN in stages and "word2vec.vectors" not in named:
        reporter.warn(_(NO_EFFECT).format(name="word2vec.vectors", other=f"train.init = {config.train.init}"))
    init = config.train.init if SEGMENT in stages or TRAIN in stages else ""
    keeps_words = bool(config.vocab.init) and (SEGMENT in stages or VOCAB in stages)
    if not init and keeps_words:
        init = config.vocab.init
    if not init:
        return config
    from elmo_zh.bundle.read import load_bundle

    if SEGMENT in stages and not run.config.exists():
        config = replace(config, text=take_text_settings(config.text, load_bundle(Path(init)), named, reporter))
    if (is_in_training(run) and not force) or not Path(init).exists():
        return config  # the run has started from it; if it has not, the stage says that it is missing
    if SEGMENT in stages:
        prepared = text_settings(config, find_user_dictionary(run, config))
    else:
        prepared = load_record(run.stage_record("segment"), damaged_is_none=force).get("settings", {})
    bundle = load_bundle(Path(init))
    require_same_text(bundle, prepared, reporter)
    config = replace(config, model=take_model_settings(config.model, bundle, named, reporter))
    if keeps_words:
        config = replace(config, vocab=_with_room(config.vocab, bundle, named, reporter))
    if problems := list(config.problems()):
        raise ConfigError(*(f"{bundle.path}: {problem}" for problem in problems))
    return config


def _with_real_paths(run: RunDir, config: Config, stages: Collection[Stage]) -> Config:
    known, names = run.load_config(None, []), [stage.name for stage in stages]
    for section in ("vocab", "train"):
        settings = getattr(config, section)
        path = Path(settings.init).resolve()
        if settings.init:
            config = replace(config, **{section: replace(settings, init=str(path))})
            is_new = section in names and str(path) != getattr(known, section).init
            if is_new and not BundleLayout(path).info.is_file():
                raise BundleError(explain_no_bundle(path))
    words = config.vocab.words
    if words and VOCAB in stages and words != known.vocab.words:
        require_files(run, [Path(words)])
    return config


def find_user_dictionary(run: RunDir, config: Config) -> Path | None:
    """Return the user dictionary in the settings, or the run's copy if it is gone; raise RunError if both are gone."""
    if not config.text.dictionary:
        return None
    dictionary = Path(config.text.dictionary)
    if not dictionary.exists() and run.user_dictionary.exists():
        return run.user_dictionary
    require_files(run, [dictionary])
    return dictionary


def text_settings(config: Config, dictionary: Path | None) -> dict[str, Any]:
    """Return the `preparation_settings`, by names such as text.script, with the version of the segmenter."""
    settings = {**preparation_settings(config.text), "segmenter_version": describe_segmenter(config.text, dictionary)}
    return {f"text.{name}": value for name, value in settings.items()}


# What the model to start from determines


def model_settings(bundle: "Bundle") -> dict[str, Any]:
    """Return, by name, the settings in section model that a bundle's weights determine.

    Raises:
        BundleError: If the model cannot be trained.
    """
    from elmo_zh.model.language_model import CHARACTER_SETTINGS, SHAPE_SETTINGS

    shape, characters = bundle.shape, bundle.shape.characters
    if characters is not None and not characters.is_published:
        message = _("{path} is an ELMoForManyLangs model, which elmo-zh cannot train. Start from another model.")
        raise BundleError(message.format(path=bundle.path))
    settings: dict[str, Any] = {name: getattr(shape, name) for name in ("mode", *SHAPE_SETTINGS)}
    if bundle.weights.has_softmax:
        settings["tie_softmax"] = bundle.weights.is_tied
    if characters is not None:
        settings |= {name: getattr(characters, field) for name, field in CHARACTER_SETTINGS.items()}
    return settings


def _with_room(config: VocabConfig, bundle: "Bundle", named: Collection[str], reporter: Reporter) -> VocabConfig:
    """Enlarge the vocabulary if the bundle's fills it, unless its size is `named`; without one, raise BundleError."""
    if bundle.vocabulary is None:
        message = _(
            "{path} has no vocabulary, so there are no words to keep. Leave out --init. To start training from the"
            " model's weights alone: --set train.init={path}"
        )
        raise BundleError(message.format(path=bundle.path))
    num_rows = len(bundle.vocabulary)
    if "vocab.size" in named or not 0 < config.size <= num_rows:
        return config
    return _with_values("vocab", config, {"size": num_rows + config.size}, bundle, reporter)


def take_model_settings(
    config: ModelConfig, bundle: "Bundle", named: Collection[str], reporter: Reporter
) -> ModelConfig:
    """Return the settings of section model with the bundle's values; raise RunError if a setting in `named` differs."""
    settings = model_settings(bundle)
    refused = {name: value for name, value in settings.items() if f"model.{name}" in named}
    if changes := _changes("model", config, refused):
        message = _("{path} has different model settings ({listed}). To start from that model, leave out yours.")
        raise RunError(message.format(path=bundle.path, listed=changes))
    return _with_values("model", config, settings, bundle, reporter)


def take_text_settings(config: TextConfig, bundle: "Bundle", named: Collection[str], reporter: Reporter) -> TextConfig:
    """Return the text settings with the values that the bundle records, except those `named` and the dictionary."""
    if bundle.text is None:
        return config
    there = result_settings(bundle.text, without=("user_dictionary",))
    names = [name for name in with_defaults(bundle.info["text"]) if name in there and f"text.{name}" not in named]
    return _with_values("text", config, {name: there[name] for name in names}, bundle, reporter)


def _changes(section: str, config: Any, values: Mapping[str, Any]) -> str:
    before = {f"{section}.{name}": getattr(config, name) for name in values}
    return ", ".join(describe_settings(before, {f"{section}.{name}": value for name, value in values.items()}))


def _with_values(section: str, config: S, values: Mapping[str, Any], bundle: "Bundle", reporter: Reporter) -> S:
    if changes := _changes(section, config, values):
        reporter.note(_("Settings taken from {path}: {listed}.").format(path=bundle.path, listed=changes))
    return replace(config, **values)


def require_same_text(bundle: "Bundle", settings: Mapping[str, Any], reporter: Reporter) -> None:
    """Raise RunError unless a run prepares text as the bundle does, so that words match; warn if this is unknown."""
    if bundle.text is None:
        message = _(
            "{path} does not say how its training text was segmented. If this run's text was segmented differently,"
            " many words will not match."
        )
        reporter.warn(message.format(path=bundle.path))
        return
    there = {**result_settings(bundle.text), "segmenter_version": bundle.info["segmenter"]}
    here = with_defaults({name.removeprefix("text."): value for name, value in settings.items()})
    # Splitting unknown words does not change the others; the dictionary is part of the segmenter's version.
    names = (here.keys() & {*with_defaults(bundle.info["text"]), "segmenter_version"}) - {"split_unknown"}
    pairs = [{f"text.{name}": values[name] for name in names} for values in (here, there)]
    if changes := describe_settings(*pairs):
        message = _(
            "{path} was trained on text prepared differently ({listed}), so the words of this run would not match the"
            " model's. Segment the corpus again, with the model's settings and its version of the segmenter."
        )
        raise RunError(message.format(path=bundle.path, listed=first_ten(changes)))
