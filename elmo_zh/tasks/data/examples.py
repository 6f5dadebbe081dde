"""Labelled examples of all kinds of tasks."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elmo_zh.errors import CorpusError

KINDS = ("classify", "tag", "pairs")


class UnlabelledError(CorpusError):
    """A file has texts but no labels, as published test examples often have."""


@dataclass(frozen=True, eq=False)
class Example:
    """One labelled example.

    Attributes:
        texts: The raw text; two of them in a pair.
        labels: The one label of the text or pair; in tagging one label a unit.
        units: In tagging the units that have labels, characters or words: the first character of each in the text and
            the one after its last, int32, shape (n, 2).
        words: In tagging of words the words as the file has them, which are not segmented again.
        part: The part that the file names for the example, train, dev or test; "" if it names none.
    """

    texts: tuple[str, ...]
    labels: tuple[str, ...]
    units: NDArray[np.int32] | None = None
    words: tuple[str, ...] | None = None
    part: str = ""

    @property
    def key(self) -> str:
        """The texts without their labels: equal for copies of an example."""
        return "\t".join(self.texts)


@dataclass(frozen=True, kw_only=True)
class Labelled:
    """The examples of one file.

    Attributes:
        name: Name of the file.
        examples: The examples in order.
        scheme: In tagging how labels mark spans: BIO, BMES or BIOES; "" if each unit has a label of its own.
        by_words: In tagging whether the units are words.
        notes: How the file was read, and what is unusual in it, for people.
    """

    name: str
    examples: Sequence[Example]
    scheme: str = ""
    by_words: bool = False
    notes: tuple[str, ...] = ()
