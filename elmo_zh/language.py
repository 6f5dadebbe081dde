"""The language of messages: English, or Chinese where the environment says so.

Messages are written in English where they arise, as ordinary f-strings. The catalogue holds the template of each, such
as `{path} is not there.`, and its translation; `docs/messages.py` collects the templates from the code. The command
line translates finished lines: it finds the template that a line was made from. A line without a template stays
English. JSON, files, exceptions of the Python API and logs are never translated.
"""

import os
import re
import struct
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path
from string import Formatter

LOCALES = Path(__file__).parent / "locale"
# The domain of click's own words, so that one catalogue holds all.
DOMAIN = "messages"
_VARIABLES = ("ELMO_ZH_LANG", "LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG")
_MAGIC = 0x950412DE
_SPACES = re.compile(r"(\s*)(.*?)(\s*)", re.DOTALL)


def chosen_language(environment: Mapping[str, str] = os.environ) -> str:
    """Return "zh" if the first of these variables that is set begins with zh, otherwise "en".

    They are ELMO_ZH_LANG, LANGUAGE, LC_ALL, LC_MESSAGES and LANG.
    """
    chosen = next((value for name in _VARIABLES if (value := environment.get(name))), "en")
    return "zh" if chosen.lower().startswith("zh") else "en"


def read_catalogue(path: Path) -> dict[str, str]:
    """Return the messages of a compiled catalogue with their translations (the MO format of GNU gettext).

    Raises:
        ValueError: If the file is no catalogue.
    """
    data = path.read_bytes()
    magic, _, number, originals, translations = struct.unpack_from("<5I", data)
    if magic != _MAGIC:
        raise ValueError(f"{path} is not a catalogue of messages")

    def strings(table: int) -> Iterator[str]:
        for index in range(number):
            length, start = struct.unpack_from("<2I", data, table + 8 * index)
            yield data[start : start + length].decode("utf-8")

    return dict(zip(strings(originals), strings(translations), strict=True))


class _Template:
    """A message with named gaps, and its translation."""

    def __init__(self, message: str, translation: str) -> None:
        self._parts = [(literal, name) for literal, name, _, _ in Formatter().parse(message)]
        self._translation = translation
        literals = [literal for literal, _ in self._parts]
        self.anchor = max(literals, key=len)
        self.num_characters = sum(map(len, literals))

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        gaps = (re.escape(literal) + (f"(?P<{name}>.*?)" if name else "") for literal, name in self._parts)
        return re.compile("".join(gaps), re.DOTALL)

    def match(self, line: str) -> dict[str, str] | None:
        """Return what fills the gaps if a line was made from this template."""
        found = self._pattern.fullmatch(line) if self.anchor in line else None
        return found.groupdict() if found else None

    def fill(self, gaps: Mapping[str, str]) -> str:
        return self._translation.format_map(gaps)


class Translator:
    """Translates finished messages by a catalogue of templates.

    Args:
        messages: Templates with their translations; both name their gaps as f-strings do, such as {path}.
    """

    def __init__(self, messages: Mapping[str, str]) -> None:
        # Those with conversions are click's own; it fills their gaps itself.
        translated = {message: text for message, text in messages.items() if message and text and "!r" not in message}
        self._words = {
            message.format(): translation.format() for message, translation in translated.items() if not _gaps(message)
        }
        templates = [_Template(message, text) for message, text in translated.items() if _gaps(message)]
        # The template with the most characters of its own is the one that a line was made from.
        self._templates = sorted(templates, key=lambda template: -template.num_characters)

    def translate(self, line: str) -> str:
        """Return a message in the other language: as a whole, else sentence by sentence, else unchanged."""
        if (whole := self._whole(line)) is not None:
            return whole
        sentences = re.split(r"(?<=[.:;]) ", line)
        for end in range(len(sentences) - 1, 0, -1):
            if (first := self._whole(" ".join(sentences[:end]))) is not None:
                return first + self.translate(" ".join(sentences[end:]))
        if len(sentences) > 1:
            return f"{sentences[0]} {self.translate(' '.join(sentences[1:]))}"
        return line

    def _whole(self, line: str) -> str | None:
        before, text, after = _SPACES.fullmatch(line).groups()  # type: ignore[union-attr]  # it matches everything
        if text in self._words:
            return f"{before}{self._words[text]}{after}"
        for template in self._templates:
            if (gaps := template.match(text)) is not None:
                # Names of files and settings have no space; what has one may be a message of its own.
                filled = {name: self.translate(gap) if " " in gap else gap for name, gap in gaps.items()}
                return f"{before}{template.fill(filled)}{after}"
        return None


def _gaps(message: str) -> list[str]:
    return [name for _, name, _, _ in Formatter().parse(message) if name]


@cache
def _translator() -> Translator | None:
    language = chosen_language()
    path = LOCALES / language / "LC_MESSAGES" / f"{DOMAIN}.mo"
    return Translator(read_catalogue(path)) if language != "en" else None


def translate(line: str) -> str:
    """Return a finished message in the language of the environment."""
    translator = _translator()
    return translator.translate(line) if translator else line
