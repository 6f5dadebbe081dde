"""User dictionaries in jieba's format, which add words to a segmenter."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from elmo_zh.config import TextConfig
from elmo_zh.errors import CorpusError
from elmo_zh.language import _
from elmo_zh.text.entries import Entries
from elmo_zh.text.normalise import build_normaliser

_LATIN = re.compile("[a-zA-Z0-9]+")
AddWord = Callable[[str, int | None, str | None], object]

_LINE = re.compile("(.+?)( [0-9]+)?( [a-z]+)?")
# Two Latin words, of which jieba would take the second for a tag.
_PHRASE = re.compile("([!-~]+ (?!eng$)[a-z]{3,})()()")
# A count of 0 would remove the word in jieba, but not in rjieba, which takes counts up to this one.
_LARGEST_COUNT = 2**31 - 1
# Beginning of the first line of a table that the command `words` has written.
_TABLE = "word\t"


class DictionaryEntry(NamedTuple):
    """A word of a user dictionary, with its line and, if given, its frequency and tag."""

    line: int
    word: str
    frequency: int | None = None
    tag: str | None = None


def load_user_dictionary(path: Path, config: TextConfig, add_word: AddWord) -> None:
    """Pass each word of a user dictionary, prepared as the text is, to `add_word`, with its count and tag if given."""
    for entry in read_user_dictionary(path, Entries(path, build_normaliser(config))):
        add_word(entry.word, entry.frequency, entry.tag)


def keep_latin_words(segment: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    """Return a segmenter that keeps Latin words whole even if an entry occurs inside them (ens in license)."""

    def segment_joined(sentence: str) -> list[str]:
        joined = [""]
        for token in segment(sentence):
            border = joined[-1][-1:] + token[:1]
            if len(border) == 2 and border.isascii() and border.isalpha() and _LATIN.fullmatch(joined[-1] + token):
                joined[-1] += token
            else:
                joined.append(token)
        return joined[1:]

    return segment_joined


def read_user_dictionary(path: Path, entries: Entries) -> list[DictionaryEntry]:
    """Return the entries of a user dictionary or of a table made by `words`, their words prepared as the text is.

    Raises:
        CorpusError: If the file cannot be read, or is not a user dictionary.
    """
    try:
        listed = [*_iter_entries(path)]
    except (ValueError, OSError) as error:
        raise CorpusError(
            _(
                "{path} is not a jieba user dictionary ({error}). Write it in UTF-8, with a word on each line,"
                " optionally followed by a count and a tag, separated by spaces."
            ).format(path=path, error=error)
        ) from None
    prepared = ((entry, entries.prepare(entry.word, entry.line)) for entry in listed)
    return [entry._replace(word=word) for entry, word in prepared if word]


def _iter_entries(path: Path) -> Iterator[DictionaryEntry]:
    is_table = False
    with path.open("rb") as file:
        for number, raw in enumerate(file, start=1):
            try:
                line = raw.strip().decode("utf-8").lstrip("\ufeff")
            except UnicodeDecodeError:
                raise ValueError(f"{_('line {number}').format(number=number)}: {raw[:20]!r}") from None
            if number == 1 and line.startswith(_TABLE):
                is_table = True
            elif line and is_table:
                yield DictionaryEntry(number, line.partition("\t")[0])
            elif line:
                match = _PHRASE.fullmatch(line) or _LINE.fullmatch(line)
                assert match is not None  # a non-empty line has at least a word
                word, count, tag = match.groups()
                if count and not 0 < int(count) <= _LARGEST_COUNT:
                    line_name = _("line {number}").format(number=number)
                    raise ValueError(f"{line_name}: {int(count)}; 1-{_LARGEST_COUNT}")
                yield DictionaryEntry(number, word, int(count) if count else None, tag.strip() if tag else None)
