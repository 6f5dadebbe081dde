"""The JSON Schema of the settings, from which editors complete and check TOML files."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

from elmo_zh.config.declare import Value
from elmo_zh.config.layers import Layers
from elmo_zh.config.load import SECTIONS


def settings_schema() -> dict[str, Any]:
    """Return the JSON Schema of a TOML file of settings, with explanations in the user's language."""
    sections: list[Any] = [
        (name, _structure(name, declared) | msgspec.UnsetType, msgspec.UNSET) for name, declared in SECTIONS.items()
    ]
    return msgspec.json.schema(msgspec.defstruct("Settings", sections, forbid_unknown_fields=True))


def _structure(name: str, declared: Mapping[str, Value]) -> Any:
    fields: list[Any] = [(key, _annotated(value), _default(value)) for key, value in declared.items()]
    return msgspec.defstruct(name, fields, forbid_unknown_fields=True)


def _default(value: Value) -> Any:
    return str(value.default) if value.kind is Layers else value.default


def _annotated(value: Value) -> Any:
    """Return the type of a setting with its explanation and range."""
    kind: Any = str | int | list[int] if value.kind is Layers else value.kind
    if value.choices is not None:
        kind = Literal[tuple(value.choices)]
    limits = {} if value.also is not None else {"ge": value.least, "le": value.most, "gt": value.above}
    given: dict[str, Any] = {name: limit for name, limit in limits.items() if limit is not None}
    return Annotated[kind, msgspec.Meta(description=value.explained(), **given)]
