"""The settings that decide how a raw line becomes tokens, as records and bundles have them."""

from collections.abc import Mapping, Sequence
from typing import Any

from elmo_zh.config.load import result_settings
from elmo_zh.config.text_section import CORPUS, LATER, TextConfig


def preparation_settings(config: TextConfig, *, without: Sequence[str] = ()) -> dict[str, Any]:
    """Return the settings that decide how a line becomes tokens, by name.

    Those of reading and cleaning a corpus are none of them. Those that came later are left out where they have their
    default, so that what was recorded before stays as it is.
    """
    settings = result_settings(config, without=(*without, *CORPUS))
    return {name: value for name, value in settings.items() if name not in LATER or value != _default(name)}


def with_later(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return recorded settings with those left out at their default; nothing where nothing is known."""
    return {**{name: _default(name) for name in LATER}, **settings} if settings else {}


def _default(name: str) -> Any:
    return getattr(TextConfig(), name)
