"""The language of messages: English, or Chinese if the environment asks for it.

A message to people is translated where it arises, then its named placeholders are filled; it is never an f-string:
    raise RunError(_("{path} is missing. Run train first.").format(path=path))

A string outside functions is marked with `N_` and translated where it is shown: `_(TITLE)`. Help needs no mark. Names
in JSON and data files, and ValueErrors and TypeErrors of Python calls, stay English. `make messages` collects messages.
"""

import gettext
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path

LOCALES = Path(__file__).parent / "locale"
DOMAIN = "messages"  # also the domain of click's own messages
_VARIABLES = ("ELMO_ZH_LANG", "LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG")
N_ = str  # marks a message that is translated elsewhere


def chosen_language(environment: Mapping[str, str] = os.environ) -> str:
    """Return "zh" if the first variable that is set (ELMO_ZH_LANG, LANGUAGE, ...) begins with zh, otherwise "en"."""
    chosen = next((value for name in _VARIABLES if (value := environment.get(name))), "en")
    return "zh" if chosen.lower().startswith("zh") else "en"


@cache
def _catalogue() -> gettext.NullTranslations:
    return gettext.translation(DOMAIN, LOCALES, [chosen_language()], fallback=True)


def _(message: str) -> str:
    """Return a message in the user's language."""
    return _catalogue().gettext(message) if message else ""


def ngettext(one: str, many: str, number: int) -> str:
    """Return the singular or plural message that fits a number, in the user's language."""
    return _catalogue().ngettext(one, many, number)
