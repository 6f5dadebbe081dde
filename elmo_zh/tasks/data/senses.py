"""Words in sentences whose senses are marked: a table of places in texts, or JSON lines of segmented sentences."""

import csv
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmo_zh.corpus.decoding import DecodedText
from elmo_zh.corpus.read_source import decoded_files
from elmo_zh.corpus.sources import find_sources
from elmo_zh.corpus.tally import PassedOver
from elmo_zh.corpus.text_files import iter_lines
from elmo_zh.errors import CorpusError

COLUMNS = ("file", "line", "start", "end", "word", "sense")
_TARGET = "<target>"
_LONGEST_LINE = 2**20


@dataclass(frozen=True, kw_only=True)
class MarkedWord:
    """One occurrence of a word.

    Attributes:
        word: The word.
        sense: Its sense here.
        text: The raw line that it is in; "" if the sentence is segmented.
        start: Its first character in the line.
        end: The one after its last.
        tokens: The segmented sentence; empty if the line is raw.
        position: The position of the word among the tokens, from 0.
    """

    word: str
    sense: str
    text: str = ""
    start: int = 0
    end: int = 0
    tokens: tuple[str, ...] = ()
    position: int = 0


def read_senses(path: Path, texts: Path | None, encoding: str = "auto") -> list[MarkedWord]:
    """Read the marked words of a file, compressed or not.

    Args:
        path: A table with the columns `COLUMNS`, separated by tabs; or JSON lines with context (the tokens, of which
            <target> may stand for the word), target_word, target_position (from 0) and sense (a string, or a list).
        texts: The folder of the files that the table names; None for its own folder.
        encoding: Encoding of the file, or auto.

    Raises:
        CorpusError: If the file or a text cannot be read, or does not have this form.
    """
    found: list[MarkedWord] = []
    for text in decoded_files_of(path, encoding):
        if text.head(_LONGEST_LINE).lstrip().startswith("{"):
            found += _read_objects(text)
        else:
            found += _read_table(text, texts or path.parent)
    if not found:
        raise CorpusError(f"{path}: it has no marked words.")
    return found


def decoded_files_of(path: Path, encoding: str) -> Iterator[DecodedText]:
    """Yield the text of a file, or the texts of an archive."""
    for source in find_sources([str(path)]).sources:
        yield from decoded_files(source, encoding, PassedOver())


def _read_objects(text: DecodedText) -> Iterator[MarkedWord]:
    for number, line in enumerate(text.whole_lines(_LONGEST_LINE), start=1):
        if line.strip():
            try:
                yield _object(json.loads(line))
            except (ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
                raise CorpusError(
                    f"{text.name}: line {number} is no marked word ({error!r:.60}). Expected an object with context (a"
                    " list of tokens), target_word, target_position and sense."
                ) from None


def _object(found: dict[str, Any]) -> MarkedWord:
    tokens, position, word, sense = (found[key] for key in ("context", "target_position", "target_word", "sense"))
    if not isinstance(tokens, list) or not isinstance(position, int) or not 0 <= position < len(tokens):
        raise ValueError("target_position is no position in context")
    if tokens[position] not in (_TARGET, word):
        raise ValueError(f"{tokens[position]!r} at target_position, expected {word!r}")
    senses = [sense] if isinstance(sense, str) else sense
    if not word or not senses:
        raise ValueError("an empty word or sense")
    tokens = tuple(str(token) for token in [*tokens[:position], word, *tokens[position + 1 :]] if str(token).strip())
    return MarkedWord(word=word, sense="|".join(map(str, senses)), tokens=tokens, position=_shifted(found, position))


def _shifted(found: dict[str, Any], position: int) -> int:
    """Return the position without the tokens before it that are nothing but space, which are left out."""
    return sum(bool(str(token).strip()) for token in found["context"][:position])


def _read_table(text: DecodedText, texts: Path) -> Iterator[MarkedWord]:
    lines_of: dict[str, Sequence[str]] = {}
    rows = csv.reader(text.whole_lines(_LONGEST_LINE), delimiter="\t", quoting=csv.QUOTE_NONE)
    head = next(rows, [])
    if tuple(head) != COLUMNS:
        raise CorpusError(
            f"{text.name}: the columns are {', '.join(head)[:60]!r}, expected {', '.join(COLUMNS)}, separated by tabs,"
            " or JSON lines."
        )
    for number, row in enumerate(rows, start=2):
        where = f"{text.name}: line {number}"
        if len(row) != len(COLUMNS) or not all(cell.isdecimal() for cell in row[1:4]) or not row[5]:
            raise CorpusError(f"{where} has not the cells {', '.join(COLUMNS)}. Correct or remove it.")
        name, word, sense = row[0], row[4], row[5]
        line, start, end = map(int, row[1:4])
        if name not in lines_of:
            lines_of[name] = _lines(texts, name, where)
        raw = lines_of[name][line] if line < len(lines_of[name]) else ""
        if not word or raw[start:end] != word:
            raise CorpusError(
                f"{where}: line {line} of {name} has {raw[start:end][:20]!r} at {start} to {end}, expected {word!r}."
                " Correct it, or name the folder of the texts with --text."
            )
        yield MarkedWord(word=word, sense=sense, text=raw, start=start, end=end)


def _lines(folder: Path, name: str, where: str) -> Sequence[str]:
    path = folder / name
    if not path.is_file():
        raise CorpusError(f"{where}: the text {path} does not exist. Name its folder with --text.")
    return list(iter_lines(path))
