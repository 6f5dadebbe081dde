"""The entries of an index that `ContextIndex` returns: occurrences, their lines, and similar occurrences."""

from dataclasses import dataclass
from typing import Any

from elmo_zh.corpus.input_texts import Members, member_name


@dataclass(frozen=True)
class Occurrence:
    """One occurrence of a word.

    Attributes:
        number: Its number in the index, from 0, in the order of the texts.
        word: The word, as the model reads it.
        line: Number of its line in the index, for `ContextIndex.line`.
        token: Its place among the tokens of that line.
        start: Its first character in the text of that line.
        end: The character after its last one.
    """

    number: int
    word: str
    line: int
    token: int
    start: int
    end: int


@dataclass(frozen=True)
class IndexedLine:
    """A line that holds an occurrence.

    Attributes:
        text: The raw line, or the sentence of it, if lines were split.
        source: Name of its text; in an archive that of the archive and the member, such as texts.zip/old/1.txt.
        number: Number of the line in that text, from 0.
        archive: Name of the archive; empty if the text is in none.
        start: The first character of `text` in the raw line: 0 unless lines were split. Add it to the places of an
            `Occurrence` to get those in the raw line.
    """

    text: str
    source: str
    number: int
    archive: str = ""
    start: int = 0


class IndexedTexts:
    """The texts of an index, as its lines name them.

    Attributes:
        sources: The names of the files: of an archive its members, such as texts.zip/old/1.txt.
        archives: The names of the archives.
    """

    def __init__(self, info: dict[str, Any]) -> None:
        """Read the texts from the content of index.json."""
        self._texts = [(text["name"], Members.restored(text.get("members", []))) for text in info["texts"]]
        self.archives = [name for name, members in self._texts if members.names]
        self.sources = [
            source
            for name, members in self._texts
            for source in ([member_name(name, member) for member in members.names] or [name])
        ]

    def line(self, text: str, text_number: int, number: int, start: int) -> IndexedLine:
        """Return a line.

        Args:
            text: What it holds.
            text_number: The number of its text, from 0.
            number: Its number in that text, from 0, counted through all members of an archive.
            start: Its first character in the raw line.
        """
        name, members = self._texts[text_number]
        source, own_number = members.place(name, number)
        return IndexedLine(text, source, own_number, archive=name if members.names else "", start=start)


@dataclass(frozen=True)
class Neighbour:
    """An occurrence that is similar to a vector.

    Attributes:
        occurrence: The occurrence.
        cosine: Cosine of its vector and the given one.
    """

    occurrence: Occurrence
    cosine: float
