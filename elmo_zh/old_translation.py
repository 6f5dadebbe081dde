"""Translation of finished lines, for messages that are not yet translated where they arise.

It finds the template of the catalogue that an English line was made from; a line that is in Chinese already stays.
This module goes once all messages are written with `elmo_zh.language._`.
"""

import re
import struct
from collections.abc import Iterator, Mapping
from functools import cache, cached_property, lru_cache
from operator import itemgetter
from pathlib import Path
from string import Formatter

_MAGIC = 0x950412DE
_FULL_WIDTH = {";": "；", ":": "：", ".": "。", ",": "，"}
# No message has more sentences, and no list of messages more characters; anything longer is text.
_MOST_SENTENCES, _LONGEST_LIST = 8, 200
# Every template has two letters in a row.
_LETTERS = re.compile("[A-Za-z]{2}")
# If a message can be split in two ways, the one that leaves fewer sentences in English wins.
_JOINT = 0.01
# Gaps that hold a number.
_NUMBERS = ("number", "low", "high")
# A gap that holds a part of labelled data: train (also the name of a stage), dev or test.
_PART = "part"
# A template with fewer letters may match a line by chance if one of its gaps holds words or punctuation.
_FEW_LETTERS, _PROSE = 12, re.compile(r"[a-z]{2,} [a-z]{2,}|[:;,.] ")
# Text that runs from one pair of brackets into another, and so is not a gap.
_BETWEEN_BRACKETS = re.compile(r"[^()]*\).*\([^()]*", re.DOTALL)
_SPACES = re.compile(r"(\s*)(.*?)(\s*)", re.DOTALL)


def read_catalogue(path: Path) -> dict[str, str]:
    """Return the messages of a compiled GNU gettext catalogue with their translations."""
    data = path.read_bytes()
    magic, _, number, originals, translations = struct.unpack_from("<5I", data)
    if magic != _MAGIC:
        raise ValueError(f"{path} is not a catalogue of messages")

    def strings(table: int) -> Iterator[str]:
        for index in range(number):
            length, start = struct.unpack_from("<2I", data, table + 8 * index)
            yield data[start : start + length].decode("utf-8")

    pairs = zip(strings(originals), strings(translations), strict=True)
    # Both forms of a counted noun have one translation.
    return {
        form: translation
        for message, translation in pairs
        for form in message.split("\0")
        if not form or {*_gaps(translation)} == {*_gaps(form)}
    }


class _Template:
    """A message with named gaps, and its translation."""

    def __init__(self, message: str, translation: str) -> None:
        self._parts = [(literal, name) for literal, name, _, _ in Formatter().parse(message)]
        self._translation = translation
        literals = [literal for literal, _ in self._parts]
        self.anchor = max(literals, key=len)
        self.num_characters = sum(map(len, literals))
        # The gap at the start of the line, if there is one.
        self.first_gap = "" if self._parts[0][0] else self._parts[0][1] or ""
        num_letters = sum(character.isalpha() for literal in literals for character in literal)
        self.is_vague = not literals[0] and num_letters < _FEW_LETTERS

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        pattern, seen = "", set[str]()
        for literal, name in self._parts:
            gap = f"(?P<{name}>{'[-+0-9,.]+' if name in _NUMBERS else '.*?'})" if name else ""
            pattern += re.escape(literal) + (f"(?P={name})" if name in seen else gap)
            seen |= {name} if name else set()
        return re.compile(pattern, re.DOTALL)

    def match(self, line: str) -> dict[str, str] | None:
        """Return the text in each gap if a line was made from this template, otherwise None."""
        found = self._pattern.fullmatch(line) if self.anchor in line and self._may_match(line) else None
        return found.groupdict() if found else None

    def _may_match(self, line: str) -> bool:
        """Return whether a line has all literals in order, which is much faster to check than finding the gaps."""
        (first, _), (last, name) = self._parts[0], self._parts[-1]
        if not line.startswith(first) or (name is None and not line.endswith(last)):
            return False
        place = 0
        for literal, _ in self._parts:
            place = line.find(literal, place) + len(literal)
            if place < len(literal):
                return False
        return True

    def fill(self, gaps: Mapping[str, str]) -> str:
        return self._translation.format_map(gaps)


class Translator:
    """Translates finished messages with a catalogue of templates, whose gaps are named, such as {path}."""

    def __init__(self, messages: Mapping[str, str]) -> None:
        # Messages with conversions belong to click, which fills their gaps itself.
        translated = {message: text for message, text in messages.items() if message and text and "!r" not in message}
        self._words = {
            message.format(): translation.format() for message, translation in translated.items() if not _gaps(message)
        }
        templates = [_Template(message, text) for message, text in translated.items() if _gaps(message)]
        # The template with the most characters of its own is the one that a line was made from.
        self._templates = sorted(templates, key=lambda template: -template.num_characters)
        # The same parts of a line are looked up again and again.
        self._best = lru_cache(maxsize=10_000)(self._divided)

    def translate(self, line: str) -> str:
        """Translate a message, splitting it so that templates cover as many characters as possible."""
        if line.startswith("| ") and line.endswith(" |"):  # a row of a table
            return f"| {' | '.join(self._best(cell)[1] for cell in line[2:-2].split(' | '))} |"
        return self._best(line)[1]

    def _divided(self, line: str) -> tuple[float, str]:
        if line in self._words:
            return len(line), self._words[line]
        sentences = re.split(r"(?<=[.:;,。]) " if len(line) <= _LONGEST_LIST else r"(?<=[.:;。]) ", line)
        best: list[tuple[float, str]] = [(0, "")]
        for start in range(len(sentences) - 1, -1, -1):
            ends = {*range(start + 1, min(start + _MOST_SENTENCES, len(sentences)) + 1), len(sentences)}
            ways = []
            for end in sorted(ends, reverse=True):
                num_rest, rest = best[len(sentences) - end]
                sentence = " ".join(sentences[start:end])
                # A single word in a list may be a name, such as a column's.
                is_name = len(sentences) > 1 and " " not in sentence and not sentence.endswith(":")
                if not is_name and (found := self._made(sentence)):
                    ways.append((found[0] + num_rest, found[1] + rest))
                elif end == start + 1:
                    ways.append((num_rest - _JOINT * bool(rest), _joined(sentence, rest, is_translated=num_rest > 0)))
            best.append(max(ways, key=itemgetter(0)))
        return best[-1]

    def _made(self, sentence: str) -> tuple[float, str] | None:
        if not _LETTERS.search(sentence):
            return None
        ways = [self._whole(sentence)]
        if end := _FULL_WIDTH.get(sentence[-1]):
            part = self._whole(sentence[:-1])
            ways.insert(0, part and (part[0], part[1] + end))
        return max(filter(None, ways), key=itemgetter(0), default=None)

    def _whole(self, line: str) -> tuple[float, str] | None:
        before, text, after = _SPACES.fullmatch(line).groups()  # type: ignore[union-attr]  # it matches everything
        if text in self._words:
            return len(text), f"{before}{self._words[text]}{after}"
        ways = [self._filled(template, gaps) for template, gaps in self._matching(text)]
        # Nested templates score the same whichever is outside; the outer one begins first.
        num_characters, _, shown = max(filter(None, ways), key=itemgetter(0, 1), default=(0, 0, None))
        return None if shown is None else (num_characters, f"{before}{shown}{after}")

    def _matching(self, text: str) -> Iterator[tuple[_Template, dict[str, str]]]:
        for template in self._templates:
            if not (template.is_vague and len(text) > _LONGEST_LIST) and (gaps := template.match(text)) is not None:
                yield template, gaps

    def _filled(self, template: _Template, gaps: Mapping[str, str]) -> tuple[float, int, str] | None:
        """Return the number of characters from templates, the negative length of the first gap, and the translation."""
        if any(map(_BETWEEN_BRACKETS.fullmatch, gaps.values())):
            return None
        # Names of files and settings have no space; a gap that has one may be a message of its own.
        filled = {name: self._best(gap) if " " in gap else (0, gap) for name, gap in gaps.items()}
        if named := self._words.get(" ".join((gaps.get(_PART, ""), _PART))):
            filled[_PART] = (len(gaps[_PART]), named)
        if template.is_vague and any(not number and _PROSE.search(gap) for number, gap in filled.values()):
            return None
        # A list of names counts the same however long it is, so that no name is left outside the gap.
        num_characters = template.num_characters + sum(max(number, 0) for number, _ in filled.values())
        # No space stands beside Chinese punctuation.
        shown = {name: gap.strip() if number > 0 else gap for name, (number, gap) in filled.items()}
        return num_characters, -len(gaps.get(template.first_gap, "")), template.fill(shown)


def _joined(sentence: str, rest: str, *, is_translated: bool) -> str:
    """Join a sentence that stays in English with the rest of its message."""
    if is_translated and (sentence[-1] in ";:" or (sentence[-1] == "," and not rest[0].isascii())):
        return sentence[:-1] + _FULL_WIDTH[sentence[-1]] + rest
    return f"{sentence} {rest}" if rest else sentence


def _gaps(message: str) -> list[str]:
    return [name for _, name, _, _ in Formatter().parse(message) if name]


@cache
def translator(path: str) -> Translator:
    """Return the translator with a catalogue."""
    return Translator(read_catalogue(Path(path)))
