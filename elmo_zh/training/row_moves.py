"""Where the rows of a new vocabulary come from: from the same word, from the known words in it, or at random."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from elmo_zh.model.token_encoder import fill_rows
from elmo_zh.vocabulary.vocabulary import SPECIALS, Vocabulary

# How words relate to the words in them is learned from the first words of the known vocabulary, the most frequent ones.
_WORDS_TO_LEARN_FROM = 50_000
# The penalty of that regression, as a share of the mean square of its inputs.
_PENALTY = 0.1


@dataclass(frozen=True)
class RowMoves:
    """The origin of each row of a new vocabulary.

    Attributes:
        kept: New row to the old row of the same word, including the special tokens.
        composed: New row to the old rows of the known words in it, one for each occurrence.
        num_drawn: Number of words with neither, whose rows are drawn at random.
        examples: Old row of a known word to the old rows of the known words in it.
    """

    kept: Mapping[int, int]
    composed: Mapping[int, Sequence[int]]
    num_drawn: int
    examples: Mapping[int, Sequence[int]]

    @classmethod
    def build(cls, old: Vocabulary, new: Vocabulary) -> "RowMoves":
        """Match two vocabularies by word."""
        kept = {row: row for row in range(len(SPECIALS))}
        kept |= {row: old.encode([new.tokens[row]])[0] for row in _word_rows(new) if new.tokens[row] in old}
        composed = _parts(old, new, (row for row in _word_rows(new) if row not in kept))
        examples = _parts(old, old, _word_rows(old)[:_WORDS_TO_LEARN_FROM])
        return cls(kept, composed, len(new) - len(kept) - len(composed), examples)

    @torch.no_grad()
    def fill(self, table: Tensor, old: Tensor, generator: torch.Generator) -> None:
        """Fill all rows of a table: copied, composed, or drawn as `fill_rows` does.

        A composed row is the mean of the rows of the known words in it, less the mean of all rows, times a matrix: the
        one that best gives the rows of the known words from their parts, by ridge regression. The bare mean is further
        from a word's row than the mean of all rows is. A bias is the mean of theirs.

        Args:
            table: Table to fill in place, float32, shape (V, P), or (V,) for a bias.
            old: Table of the bundle, shape (old V, P) or (old V,).
            generator: Random generator for the drawn rows.
        """
        rows, old_rows = (torch.tensor(list(numbers)) for numbers in (self.kept.keys(), self.kept.values()))
        fill_rows(table.view(len(table), -1), rows, old[old_rows].view(len(rows), -1), generator)
        if not self.composed:
            return
        means = _mean_rows(old, self.composed.values())
        if old.ndim == 2 and self.examples:
            centre = old.mean(dim=0)
            matrix = _learn_composition(old - centre, self.examples)
            means = centre + (means - centre) @ matrix
        table[torch.tensor(list(self.composed))] = means

    def counts(self) -> dict[str, int]:
        """Return the number of words by origin, without the special tokens."""
        kept = len(self.kept) - len(SPECIALS)
        return {"words_kept": kept, "words_composed": len(self.composed), "words_drawn": self.num_drawn}


def _word_rows(vocabulary: Vocabulary) -> range:
    return range(len(SPECIALS), len(vocabulary))


def _parts(known: Vocabulary, words: Vocabulary, rows: Iterable[int]) -> dict[int, list[int]]:
    """Return for each of these rows of `words` the rows of the known words in it; without those that have none."""
    found = {row: known.encode(known.find_subwords(words.tokens[row])) for row in rows}
    return {row: parts for row, parts in found.items() if parts}


def _mean_rows(table: Tensor, groups: Collection[Sequence[int]]) -> Tensor:
    """Return the mean of each group of rows, shape (n, P), or (n,) of a bias."""
    starts = torch.tensor([0, *map(len, groups)]).cumsum(0)[:-1]
    rows = torch.tensor([row for group in groups for row in group])
    means = functional.embedding_bag(rows, table.view(len(table), -1), starts, mode="mean")
    return means.view(len(groups), *table.shape[1:])


def _learn_composition(centred: Tensor, examples: Mapping[int, Sequence[int]]) -> Tensor:
    """Return the matrix that best turns the mean of the rows of a word's parts into the word's row, shape (P, P)."""
    inputs = _mean_rows(centred, examples.values()).double()
    squares = inputs.T @ inputs
    penalty = _PENALTY * squares.diagonal().mean() * torch.eye(len(squares), dtype=torch.float64)
    targets = centred[torch.tensor(list(examples))].double()
    return torch.linalg.lstsq(squares + penalty, inputs.T @ targets).solution.to(centred.dtype)
