"""The entries of an index that `ContextIndex` returns: occurrences, their lines, and similar occurrences."""

from dataclasses import dataclass


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
    """

    text: str
    source: str
    number: int
    archive: str = ""


@dataclass(frozen=True)
class Neighbour:
    """An occurrence that is similar to a vector.

    Attributes:
        occurrence: The occurrence.
        cosine: Cosine of its vector and the given one.
    """

    occurrence: Occurrence
    cosine: float
