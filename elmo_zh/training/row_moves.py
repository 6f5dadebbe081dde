"""Origin of the rows of a new vocabulary: the same word, the known words in it, or chance."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from elmo_zh.model.composition import Composition, mean_rows, parts_of
from elmo_zh.model.token_encoder import fill_rows
from elmo_zh.vocabulary.vocabulary import SPECIALS, Vocabulary


@dataclass(frozen=True)
class RowMoves:
    """The origin of each row of a new vocabulary.

    Attributes:
        old: The vocabulary that the rows come from.
        kept: New row to the old row of the same word, including the special tokens.
        composed: New row to the old rows of the known words in it, one for each occurrence.
        num_drawn: Number of words with neither, whose rows are drawn at random.
    """

    old: Vocabulary
    kept: Mapping[int, int]
    composed: Mapping[int, Sequence[int]]
    num_drawn: int

    @classmethod
    def build(cls, old: Vocabulary, new: Vocabulary) -> "RowMoves":
        """Match two vocabularies by word."""
        words = {word: row for row, word in enumerate(new.tokens) if row >= len(SPECIALS)}
        kept = {row: row for row in range(len(SPECIALS))}
        kept |= {row: old.encode([word])[0] for word, row in words.items() if word in old}
        parts = parts_of(old, (word for word in words if word not in old))
        composed = {words[word]: rows for word, rows in parts.items()}
        return cls(old, kept, composed, len(new) - len(kept) - len(composed))

    @torch.no_grad()
    def fill(self, table: Tensor, old: Tensor, generator: torch.Generator) -> None:
        """Fill all rows of a table: copied, composed by a `Composition`, or drawn as `fill_rows` does.

        Args:
            table: Table to fill in place, float32, shape (V, P); or (V,) for a bias, of which composed rows are the
                mean of their parts.
            old: Table of the bundle, shape (old V, P) or (old V,).
            generator: Random generator for the drawn rows.
        """
        rows, old_rows = (torch.tensor(list(numbers)) for numbers in (self.kept.keys(), self.kept.values()))
        fill_rows(table.view(len(table), -1), rows, old[old_rows].view(len(rows), -1), generator)
        if not self.composed:
            return
        if old.ndim == 2:
            composition = Composition.learn(old, self.old)
            composed = torch.stack([composition.row(parts) for parts in self.composed.values()])
        else:
            composed = mean_rows(old[:, None], self.composed.values())[:, 0]
        table[torch.tensor(list(self.composed))] = composed

    def counts(self) -> dict[str, int]:
        """Return the number of words by origin, without the special tokens."""
        kept = len(self.kept) - len(SPECIALS)
        return {"words_kept": kept, "words_composed": len(self.composed), "words_drawn": self.num_drawn}
