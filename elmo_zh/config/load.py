"""Read, change, check and write settings, which come from TOML files and --set section.key=value."""

import difflib
import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, cast

from elmo_zh.config.declare import Layers, Value, values_of
from elmo_zh.config.schema import Config
from elmo_zh.config.text_section import CORPUS, TextConfig
from elmo_zh.errors import ConfigError, OptionError
from elmo_zh.language import N_, _

Section = TypeVar("Section")
# The declared values of each section, by the name of the section.
SECTIONS: Mapping[str, Mapping[str, Value]] = {
    f.name: values_of(type(getattr(Config(), f.name))) for f in fields(Config)
}
# Smallest first, token mode before character mode.
SHIPPED_NAMES = ("tiny", "small", "base", "original", "tiny-char", "small-char", "base-char", "original-char")
# What options of bilm-tf and AllenNLP are called here, or what to do instead.
_ELSEWHERE = {
    **dict.fromkeys(("max_characters_per_token", "max_word_length"), "model.character_slots"),
    **dict.fromkeys(("dim", "cell_size", "hidden_size"), "model.cell_dim"),
    **dict.fromkeys(("proj_clip", "state_projection_clip_value"), "model.projection_clip"),
    **dict.fromkeys(("n_highway", "num_highway"), "model.highway_layers"),
    **dict.fromkeys(("all_clip_norm_val", "grad_norm"), "train.max_grad_norm"),
    **dict.fromkeys(("n_epochs", "num_epochs", "max_epochs"), "train.epochs"),
    **dict.fromkeys(("n_negative_samples_batch", "num_samples"), "train.num_negatives"),
    "activation": "model.character_activation",
    "filters": "model.character_filters",
    "lr": "train.learning_rate",
    "memory_cell_clip_value": "model.cell_clip",
    "n_layers": "model.num_layers",
    "n_tokens_vocab": "vocab.size",
    "sample_softmax": "train.softmax",
    "use_skip_connections": "model.skip_connections",
    **dict.fromkeys(
        ("n_gpus", "num_gpus", "cuda_devices", "distributed"),
        N_("Start one process per GPU: torchrun --nproc-per-node NUMBER -m -- elmo_zh train --run RUN"),
    ),
    **dict.fromkeys(
        ("options_file", "weight_file", "options", "weights"),
        N_("Convert the files to a bundle with elmo-zh convert, then use --model BUNDLE."),
    ),
    **dict.fromkeys(
        ("vocab_file", "vocab_path"), N_("To use the words of a file: elmo-zh vocab --run RUN --from FILE")
    ),
    "n_train_tokens": N_("Leave it out: encode counts the tokens of the training text."),
}
HERE = N_("In elmo-zh it is called {name}.")
# A link to configs/ in a checkout, a folder in an installed package.
_SHIPPED_DIR = Path(__file__).parents[1] / "configs"


def load_config(
    base: Config, path: Path | None, assignments: Sequence[str], options: Mapping[str, Any] | None = None
) -> Config:
    """Return `base` changed by a TOML file, given by path or a shipped file's name, then by assignments and options.

    `options` has the values of settings (section.key) that were given by options of their own.

    Raises:
        ConfigError: With one message for each problem; it is an OptionError if the file has no problems.
    """
    problems: list[str] = []
    of_file = _apply(base, _read_toml(path), str(path), problems) if path is not None else base
    kind = ConfigError if problems or any(of_file.problems()) else OptionError
    config = _apply(of_file, _parse_assignments(assignments, problems), "--set", problems)
    for name, value in (options or {}).items():
        section, _dot, key = name.partition(".")
        config = _apply(config, {section: {key: value}}, f"--{key.replace('_', '-')}", problems)
    problems.extend(config.problems())
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
        raise ConfigError.unexpected(f"--config {path}", ", ".join(["FILE.toml", *SHIPPED_NAMES]))
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        text = _("{path} is not valid TOML: {error}. Correct it, or use another file with --config.")
        raise ConfigError(text.format(path=path, error=error)) from None


def _parse_assignments(assignments: Sequence[str], problems: list[str]) -> dict[str, dict[str, Any]]:
    changes: dict[str, dict[str, Any]] = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        section, dot, key = name.strip().partition(".")
        if not (equals and dot):
            problems.append(str(OptionError.unexpected(f"--set {assignment}", "--set section.key=value")))
            continue
        changes.setdefault(section, {})[key] = _parse_value(text.strip(), SECTIONS.get(section, {}).get(key))
    return changes


def _parse_value(text: str, declared: Value | None) -> Any:
    """Return the TOML value of `text`, or `text` itself if it is not TOML.

    For a text setting, only a TOML string, array or table is parsed: a number, a boolean or a date stays text.
    """
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
    is_text = declared is not None and declared.kind in (str, Layers)
    return text if is_text and not isinstance(value, str | list | dict) else value


def _apply(config: Config, changes: Mapping[str, Any], source: str, problems: list[str]) -> Config:
    for name, values in changes.items():
        if name not in SECTIONS:
            problems.append(_unknown(source, name, _nearest(name, SECTIONS)))
        elif not isinstance(values, Mapping):
            problems.append(str(ConfigError.unexpected(f"{source}: {name} = {values!r}", f"{name}.key = value")))
        else:
            checked = dict(_checked_values(name, values, source, problems))
            config = replace(config, **{name: replace(getattr(config, name), **checked)})
    return config


def _checked_values(
    section: str, values: Mapping[str, Any], source: str, problems: list[str]
) -> Iterator[tuple[str, Any]]:
    declared = SECTIONS[section]
    for key, value in values.items():
        if key not in declared:
            problems.append(_unknown(source, f"{section}.{key}", name_here(key) or _nearest(key, declared, section)))
            continue
        try:
            yield key, declared[key].convert(value)
        except ValueError:
            problems.append(f"{source}: {declared[key].refusal(value, section)}")


def parse_section(section: Section, values: Mapping[str, Any], name: str, source: str) -> Section:
    """Return a section changed by `values`; raise ConfigError with one message per problem, which names `source`."""
    problems: list[str] = []
    changed: Any = replace(section, **dict(_checked_values(name, values, source, problems)))  # type: ignore[type-var]
    problems.extend(f"{source}: {problem}" for problem in changed.problems())
    if problems:
        raise ConfigError(*problems)
    return cast(Section, changed)


def _unknown(source: str, name: str, advice: str) -> str:
    return _("{source}: unknown setting {name}. {advice}").format(source=source, name=name, advice=advice)


def _nearest(word: str, known: Sequence[str] | Mapping[str, Any], section: str = "") -> str:
    prefix = f"{section}." if section else ""
    if match := difflib.get_close_matches(word, known, n=1, cutoff=0.5):
        return _("Did you mean {name}?").format(name=prefix + match[0])
    return _("Known names: {names}.").format(names=", ".join(prefix + name for name in known))


def name_here(key: str, form: str = "{}") -> str:
    """Return advice on an option of another ELMo program, or ""; `form` is how to write the name of a setting."""
    advice = _ELSEWHERE.get(key, "")
    return _(HERE).format(name=form.format(advice)) if setting(advice) else _(advice)


def sections_with(key: str) -> list[str]:
    """Return the sections that contain a key."""
    return [section for section, declared in SECTIONS.items() if key in declared]


def result_settings(section: Any, *, without: Sequence[str] = ()) -> dict[str, Any]:
    """Return the settings of a section that can affect a result, by name."""
    return {
        name: plain(getattr(section, name))
        for name, value in values_of(type(section)).items()
        if not value.free and name not in without
    }


def recorded_settings(section: Any, *, without: Sequence[str] = ()) -> dict[str, Any]:
    """Return the `result_settings` that a record keeps: no names of files, and no `later` settings at their default."""
    settings = result_settings(section, without=without)
    for name, value in values_of(type(section)).items():
        if value.is_file or (value.later and getattr(section, name) == value.default):
            settings.pop(name, None)
    return settings


def setting(name: str) -> Value | None:
    """Return the declaration of a setting (section.key), or None if there is no such setting."""
    section, _dot, key = name.partition(".")
    return SECTIONS.get(section, {}).get(key)


def default_setting(name: str) -> Any:
    """Return the default of a setting (section.key) in the form used for TOML and JSON; None if it does not exist."""
    declared = setting(name)
    return plain(declared.default) if declared else None


def plain(value: Any) -> Any:
    """Return a value in the form used for TOML and JSON."""
    return [list(pair) for pair in value] if isinstance(value, tuple) else value


def render_config(config: Config) -> str:
    """Return the settings as TOML, each below a comment that explains it."""
    return "\n".join(_render_section(name, getattr(config, name)) for name in SECTIONS)


def _render_section(section: str, settings: Any) -> str:
    lines = [f"[{section}]\n"]
    for key, declared in SECTIONS[section].items():
        # JSON's numbers, texts and lists are valid TOML, except for one character that JSON does not escape.
        value = json.dumps(plain(getattr(settings, key)), ensure_ascii=False).replace("\x7f", "\\u007f")
        lines.append(f"# {declared.explained(str)}\n{key} = {value}\n")
    return "".join(lines)


def preparation_settings(config: TextConfig, *, without: Sequence[str] = ()) -> dict[str, Any]:
    """Return the `recorded_settings` of section text without those for reading and cleaning a corpus (`CORPUS`)."""
    return recorded_settings(config, without=(*without, *CORPUS))


def with_defaults(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return recorded settings with the defaults that `preparation_settings` left out; {} (unknown) stays {}."""
    later = {name: value.default for name, value in SECTIONS["text"].items() if value.later and name not in CORPUS}
    return {**later, **settings} if settings else {}


def settings_schema() -> dict[str, Any]:
    """Return the JSON Schema of a TOML file of settings, with explanations in the user's language."""
    import msgspec

    def field_of(name: str, value: Value) -> tuple[str, Any, Any]:
        kind: Any = str | int | list[int] if value.kind is Layers else value.kind
        if value.choices is not None:
            kind = Literal[tuple(value.choices)]
        limits = {} if value.also is not None else {"ge": value.least, "le": value.most, "gt": value.above}
        bounds: dict[str, Any] = {limit: number for limit, number in limits.items() if number is not None}
        default = str(value.default) if value.kind is Layers else value.default
        return name, Annotated[kind, msgspec.Meta(description=value.explained(), **bounds)], default

    sections: list[Any] = []
    for section, declared in SECTIONS.items():
        values = [field_of(name, value) for name, value in declared.items()]
        kind: Any = msgspec.defstruct(section, values, forbid_unknown_fields=True)
        sections.append((section, kind | msgspec.UnsetType, msgspec.UNSET))
    return msgspec.json.schema(msgspec.defstruct("Settings", sections, forbid_unknown_fields=True))
