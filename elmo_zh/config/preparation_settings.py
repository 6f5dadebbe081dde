"""The settings that decide how a raw line becomes tokens, as records and bundles hold them."""

from collections.abc import Mapping, Sequence
from typing import Any

from elmo_zh.config.load import result_settings
from elmo_zh.config.text_section import CORPUS, LATER, TextConfig


def preparation_settings(config: TextConfig, *, without: Sequence[str] = ()) -> dict[str, Any]:
    """Return the settings that decide how a line becomes tokens, by name.

    Settings for reading and cleaning a corpus are not among them. Settings that were added after the first release are
    left out at their default, so that older records stay equal to newer ones.
    """
    settings = result_settings(config, without=(*without, *CORPUS))
    return {name: value for name, value in settings.items() if name not in LATER or value != _default(name)}


def with_defaults(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return recorded settings with the defaults that `preparation_settings` left out; {} stays {}: nothing known."""
    return {**{name: _default(name) for name in LATER}, **settings} if settings else {}


def _default(name: str) -> Any:
    return getattr(TextConfig(), name)
