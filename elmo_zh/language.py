"""The language of messages: English, or Chinese if the environment asks for it.

Every message to people is translated where it arises, before its gaps are filled:

    raise RunError(_("{path} is missing. Run train first.").format(path=path))
    reporter.note(counted(number, "{number} line", "{number} lines"))  # or ngettext, without the commas in numbers

Gaps have names, and a text that is formatted never is an f-string, for gettext looks it up as it is written. A text
outside functions (a constant, the title of a table) is marked with `N_` and translated where it is shown: `_(TITLE)`.
Help texts of commands and settings are translated as they are, without a mark. Exceptions carry the finished text.
JSON, data files, logs, and the ValueErrors and TypeErrors of the Python API stay in English. `make messages` collects
the messages for locale/zh/LC_MESSAGES/messages.po, where their Chinese is.
"""

import gettext
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path

LOCALES = Path(__file__).parent / "locale"
# The domain of click's own words, so that one catalogue holds all.
DOMAIN = "messages"
_VARIABLES = ("ELMO_ZH_LANG", "LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG")


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
    """Return the message for a number, in the user's language."""
    return _catalogue().ngettext(one, many, number)


def N_(message: str) -> str:  # noqa: N802  # the name that gettext's tools know
    """Mark a message that is translated where it is shown."""
    return message


def translate(line: str) -> str:
    """Translate a finished line, until every message is translated where it arises."""
    from elmo_zh.old_translation import translator

    path = gettext.find("old", LOCALES, [chosen_language()])
    return translator(path).translate(line) if path else line
