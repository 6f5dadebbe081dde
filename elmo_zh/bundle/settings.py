"""Compare the settings of a bundle and of a run that starts from it, and take them over into the run."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from elmo_zh.bundle.read import Bundle, load_bundle
from elmo_zh.config import Config, ModelConfig, TextConfig, VocabConfig, result_settings, with_defaults
from elmo_zh.errors import BundleError, ConfigError, RunError
from elmo_zh.language import _
from elmo_zh.model.language_model import CHARACTER_SETTINGS, SHAPE_SETTINGS
from elmo_zh.run.record import describe_settings
from elmo_zh.run.reporter import Reporter


def model_settings(bundle: Bundle) -> dict[str, Any]:
    """Return, by name, the settings in section model that a bundle's weights determine."""
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


def take_bundle_settings(
    config: Config,
    path: Path,
    text_settings: Mapping[str, Any],
    named: Collection[str],
    reporter: Reporter,
    *,
    with_words: bool,
) -> Config:
    """Return settings with the bundle's model section and, `with_words`, a vocabulary large enough for new words."""
    bundle = load_bundle(path)
    if with_words and bundle.vocabulary is None:
        message = _(
            "{path} has no vocabulary, so there are no words to keep. Leave out --init. To start training from the"
            " model's weights alone: --set train.init={path}"
        )
        raise BundleError(message.format(path=path))
    require_same_text(bundle, text_settings, reporter)
    changed = replace(config, model=take_model_settings(config.model, bundle, named, reporter))
    if with_words and bundle.vocabulary is not None and "vocab.size" not in named:
        changed = replace(changed, vocab=_with_room(config.vocab, len(bundle.vocabulary), reporter))
    if problems := list(changed.problems()):
        raise ConfigError(*(f"{problem} ({path})" for problem in problems))
    return changed


def _with_room(config: VocabConfig, num_rows: int, reporter: Reporter) -> VocabConfig:
    """Enlarge the vocabulary in the settings if the bundle's words fill it."""
    if not 0 < config.size <= num_rows:
        return config
    size = num_rows + config.size
    message = _("vocab.size is now {size}: the {rows} words of the model to start from, and new words of the text.")
    reporter.note(message.format(size=size, rows=num_rows))
    return replace(config, size=size)


def take_model_settings(config: ModelConfig, bundle: Bundle, named: Collection[str], reporter: Reporter) -> ModelConfig:
    """Return the settings of section model with the bundle's values; raise RunError if those `named` differ."""
    different = {name: value for name, value in model_settings(bundle).items() if getattr(config, name) != value}
    if refused := {name: value for name, value in different.items() if f"model.{name}" in named}:
        message = _("{path} has different model settings ({listed}). To start from that model, leave out yours.")
        raise RunError(message.format(path=bundle.path, listed=_changes("model", config, refused)))
    _report("model", config, different, bundle, reporter)
    return replace(config, **different)


def take_text_settings(config: TextConfig, path: Path, named: Collection[str], reporter: Reporter) -> TextConfig:
    """Return the text settings with the bundle's values for making tokens, except those `named` and the dictionary."""
    bundle = load_bundle(path)
    if bundle.text is None:
        return config
    there = result_settings(bundle.text, without=("user_dictionary",))
    names = [name for name in with_defaults(bundle.info["text"]) if name in there and f"text.{name}" not in named]
    different = {name: there[name] for name in names if getattr(config, name) != there[name]}
    _report("text", config, different, bundle, reporter)
    return replace(config, **different)


def _changes(section: str, config: Any, values: Mapping[str, Any]) -> str:
    before = {f"{section}.{name}": getattr(config, name) for name in values}
    return ", ".join(describe_settings(before, {f"{section}.{name}": value for name, value in values.items()}))


def _report(section: str, config: Any, values: Mapping[str, Any], bundle: Bundle, reporter: Reporter) -> None:
    if values:
        message = _("Settings taken from {path}: {listed}.")
        reporter.note(message.format(path=bundle.path, listed=_changes(section, config, values)))


def require_same_text(bundle: Bundle, settings: Mapping[str, Any], reporter: Reporter) -> None:
    """Raise RunError unless a run prepares text as the bundle does, so that words match; warn if this is unknown."""
    if bundle.text is None:
        message = _(
            "{path} does not say how its training text was segmented. If this run's text was segmented differently,"
            " many words will not match."
        )
        reporter.warn(message.format(path=bundle.path))
        return
    here, segmenter = with_defaults(settings), bundle.info["segmenter"]
    there = {**result_settings(bundle.text), "segmenter_version": segmenter}
    here = {**here, "segmenter_version": settings.get("segmenter_version") or segmenter}
    # Splitting unknown words does not change the others; the dictionary is part of the segmenter's version.
    names = (here.keys() & {*with_defaults(bundle.info["text"]), "segmenter_version"}) - {"split_unknown"}
    pairs = [{f"text.{name}": values[name] for name in names} for values in (here, there)]
    if changes := describe_settings(*pairs):
        message = _(
            "{path} was trained on text prepared differently ({listed}), so the words of this run would not match the"
            " model's. Segment the corpus again, with the model's settings and its version of the segmenter."
        )
        raise RunError(message.format(path=bundle.path, listed=", ".join(changes)))
