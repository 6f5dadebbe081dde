"""The largest response of each filter to each word, computed once per distinct word ending.

The response to a window of characters x_0 x_1 .. is a sum of one row per character: r(x) = sum over k of T_k[x_k],
with T_k = E K_k from the embedding E and the kernel K, whose rows past a filter's width are zero. So only the few
distinct characters are multiplied, and windows look up the resulting rows. The largest response follows by recursion,

    m(x) = max(r(x), m(x without its first character)),    m(nothing) = -infinity,

which starts from the last character. Words share endings (Chinese characters of three bytes, empty slots), and each
distinct ending is computed once. The gradient of m(x) goes to r(x) if that is larger, otherwise to the shorter ending;
T_k[c] gets the sum of the gradients of all r(x) with x_k = c.

This is for CPUs. On a GPU, `model.token_layer` multiplies all windows: more work, in fewer and larger steps.

Shape letters: W words, C character slots, c width of a character's embedding, N filters of all widths, A distinct
characters, E distinct endings, K width of the widest filter.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from elmo_zh.model.kernels.products import multiply_once

# Words computed at a time: memory stays bounded, and mostly in the cache.
_CHUNK_WORDS = 512


def largest_responses(
    character_ids: Tensor, padding: int, embedding: Tensor, kernels: Sequence[Tensor], dtype: torch.dtype
) -> Tensor:
    """Return each filter's largest response to each word, without bias, shape (W, N), in the embedding's dtype.

    `character_ids` are spellings, padded on the right, int64, shape (W, C), W > 0 and C at least K; `embedding` has one
    row per character, shape (number of characters, c); each kernel has shape (width, c, filters). Products are in
    `dtype`.
    """
    widest = max(len(kernel) for kernel in kernels)
    width = embedding.shape[1]
    # Flat, so that gradients have the strides of their parameters.
    flat = [functional.pad(kernel.flatten(0, 1), (0, 0, 0, (widest - len(kernel)) * width)) for kernel in kernels]
    kernel = torch.cat(flat, dim=1).view(widest, width, -1)
    found = []
    for chunk in torch.split(character_ids, _CHUNK_WORDS):
        endings = find_endings(chunk, padding, widest)
        characters = functional.embedding(endings.characters, embedding)
        tables = multiply_once(characters.to(dtype), kernel.transpose(0, 1).flatten(1).to(dtype)).to(embedding.dtype)
        tables = torch.cat([tables.view(-1, *kernel.shape[::2]), _end_table(kernels, tables)])
        found.append(_LargestResponses.apply(tables, endings))  # type: ignore[no-untyped-call]
    return torch.cat(found)


def _end_table(kernels: Sequence[Tensor], like: Tensor) -> Tensor:
    """Return the table row for places past the last slot, shape (1, K, N): -infinity, since no window reaches there."""
    widths = torch.cat([torch.full((kernel.shape[2],), len(kernel)) for kernel in kernels])
    reaches = torch.arange(int(widths.max()))[:, None] < widths
    return torch.zeros(1, *reaches.shape, dtype=like.dtype).masked_fill_(reaches, -torch.inf)


@dataclass(frozen=True)
class Endings:
    """The distinct endings of some words: the empty one, then all of one character, of two, and so on."""

    characters: Tensor  # The distinct characters of the words, ascending, int64, shape (A,)
    # The first characters of each ending, as indexes of `characters`, A after its end, int64, shape (E, K).
    windows: Tensor
    shorter: Tensor  # The ending without its first character, int64, shape (E,); the empty one refers to itself
    bounds: list[int]  # First ending of each length, from length 1, and the number of endings
    words: Tensor  # The ending that is the whole word, int64, shape (W,)

    def by_length(self) -> list[slice]:
        """Return one slice of the endings for each length, starting with length 1."""
        return [slice(start, stop) for start, stop in zip(self.bounds, self.bounds[1:], strict=False)]


def find_endings(character_ids: Tensor, padding: int, widest: int) -> Endings:
    """Find the distinct endings of words, with one window of only padding, since all such windows respond alike."""
    occurrences = torch.bincount(character_ids.flatten())
    characters, place = occurrences.nonzero()[:, 0], (occurrences > 0).cumsum(dim=0) - 1
    end = len(characters)
    lengths = ((character_ids != padding).sum(dim=1) + widest).clamp(max=character_ids.shape[1])
    backwards = lengths[:, None] - 1 - torch.arange(int(lengths.max()))
    spellings = place[character_ids.gather(1, backwards.clamp(min=0))].masked_fill_(backwards < 0, end)
    # Sorted, so that a row has the same endings as the previous row up to the first difference.
    rows, row_of_word = torch.unique(spellings, dim=0, return_inverse=True)
    is_new = rows != end
    is_new[1:] &= (rows[1:] != rows[:-1]).cumsum(dim=1) > 0
    windows = functional.pad(rows, (widest - 1, 0), value=end).unfold(1, widest, 1).flip(2)
    # From here on lengths come first and rows second, as endings are numbered.
    is_new, windows = is_new.T, windows.transpose(0, 1)
    number = is_new.flatten().cumsum(dim=0).view(is_new.shape)
    shorter = functional.pad(number[:-1], (0, 0, 1, 0))[is_new]
    return Endings(
        characters,
        functional.pad(windows[is_new], (0, 0, 1, 0), value=end),
        functional.pad(shorter, (1, 0)),
        [1, *(is_new.sum(dim=1).cumsum(dim=0) + 1).tolist()],
        number[lengths - 1, row_of_word],
    )


class _LargestResponses(torch.autograd.Function):
    """Computes the largest responses to words, shape (W, N), from tables of shape (A + 1, K, N)."""

    @staticmethod
    def forward(ctx: Any, tables: Tensor, endings: Endings) -> Tensor:
        largest = functional.embedding_bag(_table_rows(endings), tables.flatten(0, 1), mode="sum")
        for longer in endings.by_length():
            torch.maximum(largest[longer], largest.index_select(0, endings.shorter[longer]), out=largest[longer])
        ctx.save_for_backward(largest)
        ctx.endings, ctx.shape = endings, tables.shape
        return largest.index_select(0, endings.words)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (largest,), endings = ctx.saved_tensors, ctx.endings
        d_responses = torch.zeros_like(largest).index_add_(0, endings.words, gradients[0])
        for longer in reversed(endings.by_length()):
            shorter, d_longer = endings.shorter[longer], d_responses[longer]
            before = largest.index_select(0, shorter)
            # 1 or 0 as a number: torch.where is far slower than a product.
            d_before = torch.le(largest[longer], before, out=before).mul_(d_longer)
            d_responses.index_add_(0, shorter, d_before)
            d_longer.sub_(d_before)
        # For each row of the tables, the endings that use it.
        rows = _table_rows(endings).flatten()
        readers = rows.argsort(stable=True) // ctx.shape[1]
        counts = torch.bincount(rows, minlength=ctx.shape[0] * ctx.shape[1])
        d_tables = functional.embedding_bag(readers, d_responses, counts.cumsum(dim=0) - counts, mode="sum")
        return d_tables.view(ctx.shape), None


def _table_rows(endings: Endings) -> Tensor:
    """Return the table rows that each ending uses, numbered by character and then k; shape (E, K)."""
    widest = endings.windows.shape[1]
    return endings.windows * widest + torch.arange(widest)
