"""User dictionaries in jieba's format, which add words to a segmenter."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from elmo_zh.errors import CorpusError

AddWord = Callable[[str, int | None, str | None], object]

_LINE = re.compile("(.+?)( [0-9]+)?( [a-z]+)?")
# Texts given by mistake have commas and long lines.
_LONGEST_WORD, _COMMAS = 20, {*",，"}
# Beginning of the first line of a table that the command `words` has written.
_TABLE = "word\t"


def load_user_dictionary(path: Path, add_word: AddWord) -> None:
    """Add a user dictionary's words with their counts and tags, or the bare words in a table made by `words`."""
    try:
        entries = [*_iter_words(path)]
        others = [word for word, _, _ in entries if len(word) > _LONGEST_WORD or _COMMAS & {*word}]
        if 2 * len(others) > len(entries):
            raise CorpusError(
                f"{path} is not a user dictionary: {len(others):,} of {len(entries):,} lines contain a comma or a"
                f" word of more than {_LONGEST_WORD} characters. Give a file with one word per line."
            )
        for word, count, tag in entries:
            add_word(word, count, tag)
    except (ValueError, OSError) as error:
        raise CorpusError(
            f"{path} is not a jieba user dictionary ({error})."
            " Write it in UTF-8, with a word on each line, optionally followed by a count and a tag, separated by"
            " spaces."
        ) from None


def _iter_words(path: Path) -> Iterator[tuple[str, int | None, str | None]]:
    is_table = False
    with path.open("rb") as file:
        for number, raw in enumerate(file, start=1):
            try:
                line = raw.strip().decode("utf-8").lstrip("\ufeff")
            except UnicodeDecodeError:
                raise ValueError(f"line {number} is not UTF-8") from None
            if number == 1 and line.startswith(_TABLE):
                is_table = True
            elif line and is_table:
                yield line.partition("\t")[0], None, None
            elif line:
                match = _LINE.fullmatch(line)
                assert match is not None  # a non-empty line has at least a word
                word, count, tag = match.groups()
                yield word, int(count) if count else None, tag.strip() if tag else None
