"""Bring the catalogue of Chinese messages up to date with the code: `make messages`.

The catalogue is `elmo_zh/locale/zh/LC_MESSAGES/messages.po`. Babel collects what `_`, `N_`, `ngettext`, `counted`
and `declare` hold, and what click says; the help of commands is read from the commands. A message whose English has
changed keeps its Chinese, marked `fuzzy`: the program uses it, this script lists it with the untranslated ones, and a
test fails until somebody has looked at it and removed the mark.
"""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from string import Formatter

import click
from babel.messages.catalog import Catalog, Message
from babel.messages.extract import extract_from_dir
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

from elmo_zh.cli import cli
from elmo_zh.cli.console import translate_help
from elmo_zh.config import SECTIONS, Config
from elmo_zh.language import DOMAIN, LOCALES
from elmo_zh.names import NAMES

PO = LOCALES / "zh" / "LC_MESSAGES" / f"{DOMAIN}.po"
KEYWORDS = {"_": None, "N_": None, "ngettext": (1, 2), "counted": (2, 3), "in_language": (1,), "declare": (2,)}
# The modules of click with what our users see.
CLICK = ("core.py", "decorators.py", "exceptions.py", "formatting.py", "parser.py", "types.py")
# So that the file changes only with its messages.
NO_DATE = datetime(2026, 1, 1, tzinfo=UTC)


def texts_of_help() -> Iterator[str]:
    """Yield what the help of commands says, in the pieces in which it is translated."""
    found: list[str] = []

    def note(text: str) -> str:
        found.append(text)
        return text

    translate_help(cli, note)
    found += [(type(getattr(Config(), section)).__doc__ or "").split("\n")[0] for section in SECTIONS]
    yield from filter(None, found)


def messages_of_code(known: Catalog) -> Catalog:
    """Return all messages, without translations; of click, those that are known: the others are for its programmers."""
    messages = Catalog(project="elmo-zh", fuzzy=False, creation_date=NO_DATE, revision_date=NO_DATE)
    click_folder = Path(click.__file__).parent
    for folder, pattern, place in ((LOCALES.parent, "**.py", ""), *((click_folder, name, "click/") for name in CLICK)):
        for name, _, message, _, _ in extract_from_dir(folder, [(pattern, "python")], keywords=KEYWORDS):
            if not place or known.get(message if isinstance(message, str) else message[0]):
                messages.add(message, locations=[(place + name, 0)])
    for name in NAMES:
        messages.add(name, locations=[("names", 0)])
    for text in texts_of_help():
        messages.add(text, locations=[("help", 0)])
    return messages


def gaps_of(message: str) -> set[str]:
    """Return the names of the gaps of a message, such as path in "{path} is missing."."""
    return {name for _, name, _, _ in Formatter().parse(message) if name}


def forms(message: Message) -> tuple[tuple[str, ...], str]:
    """Return the forms of a message in English, one and many, and its Chinese, which has one form."""
    english = (message.id,) if isinstance(message.id, str) else tuple(message.id)
    return english, message.string if isinstance(message.string, str) else "".join(message.string or "")


def updated(catalogue: Catalog) -> Catalog:
    """Return the messages of the code with the translations of a catalogue; fuzzy where the English has changed."""
    catalogue.update(messages_of_code(catalogue))
    for message in catalogue:
        message.flags -= {"python-format", "python-brace-format"}
        english, chinese = forms(message)
        if message.fuzzy and gaps_of(chinese) != gaps_of(english[-1]):
            message.string, message.flags = "" if len(english) == 1 else ("",), set()
    return catalogue


def main() -> None:
    """Bring the catalogue up to date, compile it, and list what a translator should look at."""
    catalogue = updated(read_po(BytesIO(PO.read_bytes()), locale="zh"))
    with PO.open("wb") as file:
        write_po(file, catalogue, sort_by_file=True, width=118, include_lineno=False, ignore_obsolete=True)
    with PO.with_suffix(".mo").open("wb") as file:
        write_mo(file, catalogue, use_fuzzy=True)
    for message in catalogue:
        if message.id and (message.fuzzy or not forms(message)[1]):
            print(f"{'fuzzy' if message.fuzzy else 'untranslated'}: {forms(message)[0][-1]}")


if __name__ == "__main__":
    os.environ["ELMO_ZH_LANG"] = "en"
    main()
