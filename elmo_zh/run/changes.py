"""Describe the changes since a stage was recorded: settings by their dotted names, files by name."""

import json
from collections.abc import Mapping
from typing import Any

from elmo_zh.config import Config
from elmo_zh.run.reporter import counted, first_ten

# The section whose settings a stage records without the name of the section.
_SECTIONS = {"segment": "text", "vocab": "vocab", "word2vec": "word2vec"}
# Recorded values that are not settings, or not by that name.
_OTHER_NAMES = {
    "dimension": "model.projection_dim",
    "store_format": "format of the id store",
    "checkpoint": "--checkpoint",
}
# Name, version and dictionary of the segmenter.
_SEGMENTER = "text.segmenter_version"
# Settings whose file is recorded by its digest.
_DIGESTED = ("vocab.init", "vocab.words", "train.init")


def describe_changes(
    stage: str, old: Mapping[str, Any], settings: Mapping[str, Any], inputs: Mapping[str, Any]
) -> list[str]:
    """Return a phrase for each difference from a stage record, such as "vocab.size 30000 -> 50000"."""
    changes = describe_settings(_flat(stage, old["settings"]), _flat(stage, settings))
    files = [{name: entry["digest"] for name, entry in each.items()} for each in (old["inputs"], inputs)]
    if sorted(files[0].values()) != sorted(files[1].values()):
        changes += _file_changes(*files)
    return changes


def _file_changes(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    changed = {name for name in before.keys() & now.keys() if before[name] != now[name]}
    new, gone = now.keys() - before.keys(), before.keys() - now.keys()
    phrases = {
        f"added {counted(len(new), 'file')} ({first_ten(sorted(new))})": new,
        f"removed {counted(len(gone), 'file')} ({first_ten(sorted(gone))})": gone,
        f"changed {counted(len(changed), 'file')} ({first_ten(sorted(changed))})": changed,
    }
    return [phrase for phrase, names in phrases.items() if names]


def _flat(stage: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return recorded settings with the names that users type."""
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        if stage == "export" and isinstance(value, dict):
            flat |= {f"{name}.{key}": each for key, each in value.items()}
        else:
            flat[_dotted(stage, name)] = value
    return flat


def _dotted(stage: str, name: str) -> str:
    if "." in name or name in _OTHER_NAMES:
        return _OTHER_NAMES.get(name, name)
    return f"{_SECTIONS[stage]}.{name}" if stage in _SECTIONS else name


def describe_settings(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return a phrase for each changed setting, by dotted name; a missing value counts as the default."""
    changed = [name for name in sorted({*before, *now}) if before.get(name) != now.get(name)]
    if "text.segmenter" in changed and _SEGMENTER in changed:
        changed.remove(_SEGMENTER)  # another segmenter has another version
    # A setting without effect in one mode is left out there, and may have its default in the other mode.
    visible = [name for name in changed if _spell(name, before.get(name)) != _spell(name, now.get(name))]
    return [_describe_setting(name, before.get(name), now.get(name)) for name in visible or changed]


def _describe_setting(name: str, before: Any, now: Any) -> str:
    if name == _SEGMENTER:
        return f"segmenter {spell_segmenter(before, now)} -> {spell_segmenter(now, before)}"
    if name in _DIGESTED:
        if before and now:
            return f"the content of {name} has changed"
        return f"{name} is now set" if now else f"{name} is no longer set"
    return f"{name} {_spell(name, before)} -> {_spell(name, now)}"


def _spell(name: str, value: Any) -> str:
    """Return a value in the form that --set takes."""
    if value is None:
        section, _, key = name.partition(".")
        value = getattr(getattr(Config(), section, None), key, None)
    if value is None:
        return "none"
    if isinstance(value, str):
        return value or "empty"
    return json.dumps(value, ensure_ascii=False)


def spell_segmenter(described: Mapping[str, str] | None, other: Mapping[str, str] | None = None) -> str:
    """Return a segmenter's name, such as "jieba 0.42.1", with the digests that differ from another segmenter's."""
    if not described:
        return "unknown"
    words = [" ".join(described[key] for key in ("name", "version") if key in described)]
    for key in sorted({*described, *(other or {})} - {"name", "version", "package"}):
        if other is not None and described.get(key) != other.get(key):
            value = described.get(key, "none").removeprefix("sha256:")
            words.append(f"{key.replace('_', ' ')} {value[:8]}")
    return " with ".join([words[0], ", ".join(words[1:])] if words[1:] else words)
