"""One batch's update of CBOW and skip-gram with negative sampling, as products of small matrices.

A batch is G blocks of K consecutive words. The words of a block share M negative samples, each weighted negative / M,
so that the expected gradient is that of `negative` samples for each prediction (after Ji et al. 2016, "Parallelizing
Word2Vec in Shared and Distributed Memory"). Which words are context of which is a band matrix for each block: K words
by their X = K + 2 * window neighbours, 0 across the ends of sentences. So a table's row is read and written once for
each word, not once for each pair of words.

All gradients of a batch come from the tables as they were before it.
"""

import torch
from torch import Tensor

from elmo_zh.word2vec.batches import BLOCK_WORDS, Batch


class NegativeSampling:
    """The two tables of word2vec and how a batch changes them.

    Attributes:
        inputs: The vectors of words as context, which word2vec is after, shape (V, P), changed in place.
        outputs: The vectors of words as predictions, zero at the start, shape (V, P).

    Args:
        inputs: Initial vectors.
        window: Words on either side that count as context at most.
        negative: Negative samples for each prediction.
    """

    def __init__(self, inputs: Tensor, window: int, negative: int) -> None:
        self.inputs = inputs
        self.outputs = torch.zeros_like(inputs)
        self._window = window
        self._negative = negative
        self._distances = _distances(BLOCK_WORDS, window)

    def update_cbow(self, batch: Batch, learning_rate: float) -> None:
        """Predict each word from the mean of its context's vectors, and take a step.

        As in word2vec.c and gensim, each context word gets the gradient of the sum of the vectors, not of their mean.
        """
        shape = (*_blocks(batch), self.inputs.shape[1])
        negative_ids, num_words = batch.negative_ids, shape[1]
        is_context, is_context_of = self._context(batch)
        num_context = is_context.sum(2, keepdim=True).clamp_(min=1)
        padded_inputs, inputs = self._padded(shape)
        torch.index_select(self.inputs, 0, batch.word_ids, out=inputs)
        # Of words without context the mean is 0, and so are all steps.
        means = torch.bmm(is_context.div_(num_context), self._with_neighbours(padded_inputs, num_words))  # (G, K, P)
        predicted = self.outputs.index_select(0, batch.word_ids).view(shape)
        negatives = self._negatives(negative_ids)
        positive_steps = torch.linalg.vecdot(means, predicted)[..., None].neg_().sigmoid_().mul_(learning_rate)
        negative_steps = torch.bmm(means, negatives.mT).sigmoid_()
        negative_steps *= -learning_rate * self._negative / negative_ids.shape[1]
        # A word is no negative sample of itself.
        negative_steps.masked_fill_(batch.word_ids.view(*shape[:2], 1) == negative_ids[:, None], 0)
        padded_steps, mean_steps = self._padded(shape)
        torch.baddbmm(predicted.mul_(positive_steps), negative_steps, negatives, out=mean_steps.view(shape))
        input_steps = torch.bmm(is_context_of, self._with_neighbours(padded_steps, num_words))
        _add_rows(self.outputs, negative_ids, torch.bmm(negative_steps.mT, means))
        _add_rows(self.outputs, batch.word_ids, means.mul_(positive_steps))
        _add_rows(self.inputs, batch.word_ids, input_steps)

    def update_skipgram(self, batch: Batch, learning_rate: float) -> None:
        """Predict each word from each word of its context, and take a step.

        The negative samples of a prediction are those of the context word's block.
        """
        shape = (*_blocks(batch), self.inputs.shape[1])
        negative_ids, num_words = batch.negative_ids, shape[1]
        _, is_context_of = self._context(batch)
        inputs = self.inputs.index_select(0, batch.word_ids).view(shape)
        padded_outputs, outputs = self._padded(shape)
        torch.index_select(self.outputs, 0, batch.word_ids, out=outputs)
        predicted = self._with_neighbours(padded_outputs, num_words)  # (G, X, P)
        negatives = self._negatives(negative_ids)
        positive_steps = torch.bmm(inputs, predicted.mT).neg_().sigmoid_().mul_(is_context_of).mul_(learning_rate)
        # For each input and sample, how many of the input's predictions the sample is a wrong answer to.
        neighbour_ids = self._with_neighbours(self._with_margins(batch.word_ids), num_words)
        num_wrong = torch.bmm(is_context_of, (neighbour_ids[..., None] != negative_ids[:, None]).float())
        negative_steps = torch.bmm(inputs, negatives.mT).sigmoid_().mul_(num_wrong)
        negative_steps *= -learning_rate * self._negative / negative_ids.shape[1]
        input_steps = torch.bmm(positive_steps, predicted).baddbmm_(negative_steps, negatives)
        output_steps = self._sums_over_blocks(torch.bmm(positive_steps.mT, inputs))
        _add_rows(self.outputs, negative_ids, torch.bmm(negative_steps.mT, inputs))
        _add_rows(self.outputs, batch.word_ids, output_steps)
        _add_rows(self.inputs, batch.word_ids, input_steps)

    def _negatives(self, negative_ids: Tensor) -> Tensor:
        """Return the samples' output vectors, shape (G, M, P)."""
        return self.outputs.index_select(0, negative_ids.view(-1)).view(*negative_ids.shape, -1)

    def _context(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return which neighbours are context of each word, and of which each word is context, both (G, K, X)."""
        num_blocks, num_words = _blocks(batch)
        distances = self._distances if num_words == BLOCK_WORDS else _distances(num_words, self._window)
        sentences = self._with_neighbours(self._with_margins(batch.sentence_numbers, fill=-1), num_words)
        is_same = sentences[:, None] == batch.sentence_numbers.view(num_blocks, num_words, 1)
        widths = batch.widths.view(num_blocks, num_words, 1)
        neighbour_widths = self._with_neighbours(self._with_margins(batch.widths), num_words)[:, None]
        return ((distances <= widths) & is_same).float(), ((distances <= neighbour_widths) & is_same).float()

    def _with_margins(self, values: Tensor, fill: int = 0) -> Tensor:
        """Return values, shape (G * K,), with a window of the same number on either side."""
        margin = values.new_full((self._window,), fill)
        return torch.cat((margin, values, margin))

    def _padded(self, shape: tuple[int, int, int]) -> tuple[Tensor, Tensor]:
        """Return room for G * K vectors with a window of zeros on either side, and its middle part."""
        num_rows = shape[0] * shape[1]
        whole = self.inputs.new_empty(num_rows + 2 * self._window, shape[2])
        whole[: self._window] = 0
        whole[num_rows + self._window :] = 0
        return whole, whole[self._window : num_rows + self._window]

    def _with_neighbours(self, padded: Tensor, num_words: int) -> Tensor:
        """Return each block with its neighbours, as overlapping views: shape (G, X), or (G, X, P) of vectors."""
        blocks = padded.unfold(0, num_words + 2 * self._window, num_words)
        return blocks if blocks.ndim == 2 else blocks.mT

    def _sums_over_blocks(self, values: Tensor) -> Tensor:
        """Return, for each word, the sum of what blocks and their neighbours have for it: (G, X, P) to (G * K, P)."""
        num_blocks, num_neighbours, dimension = values.shape
        num_words = num_neighbours - 2 * self._window
        sums = values.new_zeros(num_blocks * num_words + 2 * self._window, dimension)
        for start in range(0, num_neighbours, num_words):
            part = values[:, start : start + num_words]
            size = (num_blocks, part.shape[1], dimension)
            sums.as_strided(size, (num_words * dimension, dimension, 1), start * dimension).add_(part)
        return sums[self._window : -self._window]


def _distances(num_words: int, window: int) -> Tensor:
    """Return how far a block's words are from its neighbours, shape (K, X); a word from itself beyond any window."""
    distances = torch.arange(num_words, dtype=torch.int32)[:, None] - torch.arange(-window, num_words + window)
    return distances.abs_().masked_fill_(distances == 0, torch.iinfo(torch.int32).max).int()


def _blocks(batch: Batch) -> tuple[int, int]:
    """Return the number of blocks and of words in each."""
    num_blocks = len(batch.negative_ids)
    return num_blocks, len(batch.word_ids) // num_blocks


def _add_rows(table: Tensor, rows: Tensor, steps: Tensor) -> None:
    """Add a step to each of some rows, which may occur more than once."""
    steps = steps.reshape(-1, table.shape[1])
    # With an expanded index torch sorts the rows and adds those of a row in order, on all cores.
    table.scatter_add_(0, rows.reshape(-1, 1).expand_as(steps), steps)
