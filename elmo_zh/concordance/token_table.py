"""The tokens of an index, or of newly segmented text, together with the columns of their lines."""

from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from elmo_zh.contexts.index import ContextIndex, IndexedLine
from elmo_zh.contexts.index_files import COLUMN, Column, ColumnBuilder, with_source
from elmo_zh.corpus.input_texts import InputText
from elmo_zh.run.reporter import Hints, Reporter, SilentReporter
from elmo_zh.text.alignment import TokenisedLine, find_tokens
from elmo_zh.text.normalise import split_segmented
from elmo_zh.text.preparation import TextPreparation
from elmo_zh.text.sentences import LONGEST_SENTENCE, describe_cuts, iter_pieces

# Stands for lines that are not selected; their text would fill the memory.
_UNREAD = IndexedLine("", "", 0)


@dataclass(frozen=True, eq=False)
class TokenTable:
    """N tokens on L lines, with the columns and the text of each line."""

    spellings: Sequence[str]
    words: NDArray[np.int32]  # the index of each token in `spellings`, int32, shape (N,)
    spans: NDArray[np.int32]  # start and end of each token in the text of its line, int32, shape (N, 2)
    ends: NDArray[np.int64]  # the cumulative number of tokens at the end of each line, int64, shape (L,)
    columns: Mapping[str, Column]  # the columns of the lines by name; always includes `source`
    line: Callable[[int], IndexedLine]  # returns the text of a line and its origin

    @cached_property
    def ranks(self) -> NDArray[np.int64]:
        """The rank of each distinct token in the order of code points, int64, shape (V,)."""
        return np.argsort(np.argsort(np.array(self.spellings, np.str_), kind="stable"))

    def tokens(self, first: int, end: int) -> list[str]:
        """Return the spellings of the tokens in a range."""
        return [self.spellings[number] for number in self.words[first:end].tolist()]

    def lines_of(self, tokens: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the line of each given token, int64, shape (n,)."""
        return np.searchsorted(self.ends, tokens, side="right")

    def first_tokens(self, lines: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of the first token of each given line, int64, shape (n,)."""
        return np.where(lines > 0, self.ends[lines - 1], 0)

    @classmethod
    def of_index(cls, index: ContextIndex) -> "TokenTable":
        """Open the tokens of an index as a table; its arrays are memory-mapped."""
        tokens, ends = index.tokens()
        return cls(
            spellings=index.distinct_tokens,
            words=tokens["word"],
            spans=tokens.view(np.int32).reshape(len(tokens), -1)[:, 1:],
            ends=ends,
            columns=index.columns,
            line=index.line,
        )

    def folded(self, fold: Callable[[str], str]) -> "TokenTable":
        """Return the table with lines folded as a whole, which may change more than folding each token."""
        numbers: dict[str, int] = {}
        words = np.empty(len(self.words), np.int32)
        for first, end in zip(np.append(0, self.ends[:-1]).tolist(), self.ends.tolist(), strict=True):
            tokens = self.tokens(first, end)
            text = fold("".join(tokens))
            ends = np.cumsum([0, *map(len, tokens)]).tolist()
            words[first:end] = [numbers.setdefault(text[start:stop], len(numbers)) for start, stop in pairwise(ends)]
        return replace(self, spellings=list(numbers), words=words)

    @classmethod
    def of_texts(
        cls,
        texts: Sequence[InputText],
        preparation: TextPreparation | None,
        wanted: Callable[[str], bool] = lambda _: True,
        reporter: Reporter | None = None,
        fold: Callable[[str], str] = str,
    ) -> "TokenTable":
        """Segment the lines that `wanted` accepts, given normalised and without spaces; return a table in memory.

        Without a `preparation`, the texts are already segmented, and the tokens are taken as they are.
        With `fold`, which keeps the length of a text, the folded lines are segmented.

        Long lines are cut as in an index, so that the context of a match is never a whole text. Blank lines are left
        out. Lines that were not selected have no tokens and no text, only columns, which conditions refer to.
        """
        kept, reporter = _Lines(), reporter or SilentReporter()
        is_segmented = preparation is None or preparation.keeps_tokens
        normalise, prepare = (preparation.normalise, preparation.prepare) if preparation else (str, _read_segmented)
        hints = Hints(reporter)
        with reporter.progress("lines", unit="lines") as progress:
            for text in texts:
                num_cuts = 0
                for number, record in enumerate(text.records_if_text(reporter)):
                    cut = iter_pieces(record.line, split=False, longest=LONGEST_SENTENCE, segmented=is_segmented)
                    for start, piece, is_rest in cut:
                        if piece.strip():
                            is_wanted = wanted("".join(normalise(piece).split()))
                            line = IndexedLine(piece, *text.place(number), start=start)
                            kept.add(line, record.columns, prepare(fold(piece)) if is_wanted else None)
                        num_cuts += is_rest
                    progress.update(1)
                if num_cuts:
                    hints.give("cut lines", describe_cuts(text.name, num_cuts))
        return kept.table()


def _read_segmented(line: str) -> TokenisedLine:
    tokens = split_segmented(line)
    return TokenisedLine(tokens, find_tokens(line, tokens))


class _Lines:
    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._words, self._ends, self._spans = array("i"), array("q"), [np.empty((0, 2), np.int32)]
        self._columns = ColumnBuilder()
        self._sources: dict[str, int] = {}
        self._codes = array("i")
        self._lines: list[IndexedLine] = []

    def add(self, line: IndexedLine, columns: Mapping[str, str], tokenised: TokenisedLine | None) -> None:
        """Add a line; without tokens, only its columns are kept."""
        if tokenised is not None:
            self._words.extend([self._numbers.setdefault(token, len(self._numbers)) for token in tokenised.tokens])
            self._spans.append(tokenised.offsets)
        self._ends.append(len(self._words))
        self._columns.add(columns)
        self._codes.append(self._sources.setdefault(line.source, len(self._sources)))
        self._lines.append(_UNREAD if tokenised is None else line)

    def table(self) -> TokenTable:
        return TokenTable(
            spellings=list(self._numbers),
            words=np.array(self._words, np.int32),
            spans=np.concatenate(self._spans),
            ends=np.array(self._ends, np.int64),
            columns=with_source(Column(list(self._sources), np.array(self._codes, COLUMN)), self._columns.columns()),
            line=self._lines.__getitem__,
        )
