"""Read, change, check and write settings, which come from TOML files and --set section.key=value."""

import difflib
import json
import math
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeVar, cast

from elmo_zh.config.fields import field_docs
from elmo_zh.config.layers import Layers
from elmo_zh.config.schema import Config
from elmo_zh.config.text_section import CORPUS, TextConfig
from elmo_zh.errors import ConfigError, OptionError

SECTIONS = tuple(f.name for f in fields(Config))
Section = TypeVar("Section")
Changes = dict[str, dict[str, Any]]
# Smallest first, token mode before character mode.
SHIPPED_NAMES = ("tiny", "small", "base", "original", "tiny-char", "small-char", "base-char", "original-char")
# Settings of earlier versions that are gone: this value, in the config.toml of a run, is what every run does now.
_GONE = {"text.private": False}
# A link to configs/ in a checkout, a folder in an installed package.
_SHIPPED_DIR = Path(__file__).parents[1] / "configs"


def load_config(
    base: Config, path: Path | None, assignments: Sequence[str], *, options: Collection[str] = ()
) -> Config:
    """Return `base` changed by a TOML file, given by path or by a shipped file's name, and then by assignments.

    Advice on the settings in `options` names the option that the user gave.

    Raises:
        ConfigError: With one message for each problem; it is an OptionError if the file has no problems.
    """
    problems: list[str] = []
    of_file = _apply(base, _read_toml(path), str(path), problems) if path is not None else base
    kind = ConfigError if problems or any(of_file.problems()) else OptionError
    config = _apply(of_file, _parse_assignments(assignments, problems), "--set", problems)
    for problem in config.problems():
        given = next((name for name in options if problem.startswith(f"{name} =")), "")
        option = given.partition(".")[2].replace("_", "-")
        problems.append(
            f"{problem}. Change --{option}." if given else f"{problem}. Change this with --set or in the config file."
        )
    if problems:
        raise kind(*problems)
    return config


def config_names(path: Path | None, assignments: Sequence[str]) -> set[str]:
    """Return the names (section.key) of the settings that a file and assignments set."""
    changes = [_read_toml(path)] if path is not None else []
    changes.append(_parse_assignments(assignments, []))
    return {f"{section}.{key}" for change in changes for section, values in change.items() for key in values}


def _read_toml(path: Path) -> Mapping[str, Any]:
    if not path.is_file() and path.stem in SHIPPED_NAMES and str(path) in (path.stem, f"configs/{path.stem}.toml"):
        path = _SHIPPED_DIR / f"{path.stem}.toml"
    if not path.is_file():
        names = ", ".join(SHIPPED_NAMES)
        raise ConfigError(f"{path} is not a file. Give --config an existing TOML file, or one of: {names}.")
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}. Correct it or give --config another file.") from None


def _parse_assignments(assignments: Sequence[str], problems: list[str]) -> Changes:
    changes: Changes = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        section, dot, key = name.strip().partition(".")
        if not (equals and dot):
            problems.append(f"--set {assignment}: write section.key=value, such as train.batch_size=32")
            continue
        is_text = isinstance(getattr(getattr(Config(), section, None), key, None), str)
        changes.setdefault(section, {})[key] = _parse_value(value.strip(), is_text=is_text)
    return changes


def _parse_value(text: str, *, is_text: bool) -> Any:
    """Return the TOML value of `text`, or `text` itself for text settings and invalid TOML, which need no quotes."""
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
    return text if is_text and not isinstance(value, str | list | dict) else value


def _apply(config: Config, changes: Mapping[str, Any], source: str, problems: list[str]) -> Config:
    for name, values in changes.items():
        if name not in SECTIONS:
            problems.append(f"{source}: unknown section {name}. {_nearest_section(name, values)}")
        elif not isinstance(values, Mapping):
            problems.append(f"{source}: {name} is a section, not a value. Write {name}.key = value.")
        else:
            section = getattr(config, name)
            checked = dict(_checked_values(section, name, values, source, problems))
            config = replace(config, **{name: replace(section, **checked)})
    return config


def _checked_values(
    section: Any, name: str, values: Mapping[str, Any], source: str, problems: list[str]
) -> Iterator[tuple[str, Any]]:
    known = tuple(f.name for f in fields(section))
    for key, value in values.items():
        if _GONE.get(f"{name}.{key}") is value:
            continue
        if key not in known:
            problems.append(f"{source}: unknown key {name}.{key}. {_nearest(key, known, name)}")
            continue
        wanted = type(getattr(section, key))
        if wanted is float and type(value) is int:
            value = float(value)
        if wanted is int and type(value) is float and value.is_integer():
            value = int(value)  # 3e6 is a natural way to write three million
        if wanted is tuple and _is_list_of_pairs(value):
            value = tuple(tuple(pair) for pair in value)
        if wanted is Layers:
            try:
                value = Layers(value)
            except ValueError as error:
                problems.append(f"{source}: {name}.{key} = {value!r}; {error}.")
                continue
        if type(value) is wanted and (wanted is not float or math.isfinite(value)):
            yield key, value
        else:
            problems.append(f"{source}: {name}.{key} = {value!r} must be {_describe(wanted)}.")


def _is_list_of_pairs(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(pair, list) and len(pair) == 2 and all(type(number) is int for number in pair) for pair in value
    )


def parse_section(section: Section, values: Mapping[str, Any], name: str, source: str) -> Section:
    """Return a section changed by the values in `source`; raise ConfigError with one message per problem."""
    problems: list[str] = []
    changed: Any = replace(section, **dict(_checked_values(section, name, values, source, problems)))  # type: ignore[type-var]
    problems.extend(f"{source}: {problem}." for problem in changed.problems())
    if problems:
        raise ConfigError(*problems)
    return cast(Section, changed)


def _nearest(word: str, known: Sequence[str], section: str = "") -> str:
    prefix = f"{section}." if section else ""
    match = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    if match:
        return f"Did you mean {prefix}{match[0]}?"
    return f"Known names: {', '.join(prefix + name for name in known)}."


def sections_with(key: str) -> list[str]:
    """Return the sections that contain a key."""
    return [section for section in SECTIONS if hasattr(getattr(Config(), section), key)]


def _nearest_section(name: str, values: Any) -> str:
    """Advise the user on an unknown section: name the only section with that key, otherwise the most similar name."""
    for key in values if isinstance(values, Mapping) else ():
        if len(sections := sections_with(key)) == 1:
            return f"Did you mean {sections[0]}.{key}?"
    return _nearest(name, SECTIONS)


def _describe(kind: type) -> str:
    return {
        int: "a whole number",
        float: "a finite number",
        bool: "true or false",
        str: "text",
        tuple: "a list of pairs of whole numbers",
    }[kind]


def result_settings(section: Any, *, without: Sequence[str] = ()) -> dict[str, Any]:
    """Return the settings of a section that can affect a result, by name."""
    return {
        f.name: _plain(getattr(section, f.name))
        for f in fields(section)
        if f.metadata.get("affects_result", True) and f.name not in without
    }


def recorded_settings(section: Any, *, without: Sequence[str] = ()) -> dict[str, Any]:
    """Return the settings that a record keeps: no names of files, and no `later` settings that are at their default."""
    settings = result_settings(section, without=without)
    for f in fields(section):
        if f.metadata.get("is_file") or (f.metadata.get("later") and getattr(section, f.name) == f.default):
            settings.pop(f.name, None)
    return settings


def default_setting(name: str) -> Any:
    """Return the default of a setting (section.key) in the form used for TOML and JSON; None if there is no such."""
    section, _, key = name.partition(".")
    return _plain(getattr(getattr(Config(), section, None), key, None))


def describe_setting(name: str) -> str:
    """Return the help text of an option that changes a setting: its meaning and its default."""
    section, _, key = name.partition(".")
    owner = getattr(Config(), section)
    text, default = field_docs(type(owner))[key], getattr(owner, key)
    return f"{text} Default: {default}." if default else text.replace("Empty:", "Default:")


def _plain(value: Any) -> Any:
    """Return a value in the form used for TOML and JSON."""
    return [list(pair) for pair in value] if isinstance(value, tuple) else value


def render_config(config: Config) -> str:
    """Return the settings as TOML, each below a comment that explains it."""
    return "\n".join(_render_section(name, getattr(config, name)) for name in SECTIONS)


def _render_section(name: str, section: Any) -> str:
    docs = field_docs(type(section))
    # JSON's numbers, texts and lists are valid TOML, except for one character that JSON does not escape.
    values = {f.name: json.dumps(_plain(getattr(section, f.name)), ensure_ascii=False) for f in fields(section)}
    lines = (f"# {docs[key]}\n{key} = {value}\n".replace("\x7f", "\\u007f") for key, value in values.items())
    return "".join((f"[{name}]\n", *lines))


def preparation_settings(config: TextConfig, *, without: Sequence[str] = ()) -> dict[str, Any]:
    """Return the settings that decide how a line becomes tokens, as `recorded_settings` does."""
    return recorded_settings(config, without=(*without, *CORPUS))


def with_defaults(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return recorded settings with the defaults that `preparation_settings` left out; {} (unknown) stays {}."""
    omitted = {f.name: f.default for f in fields(TextConfig) if f.metadata.get("later") and f.name not in CORPUS}
    return {**omitted, **settings} if settings else {}
