"""The LSTM layers of a biLM over whole sentences (Peters et al. 2018), in float32, with NumPy alone.

One step of one direction, where x is the input and h is the previous output:

    z = x W_x + h W_h + b                  (input gate i, candidate j, forget gate f, output gate o, each of width D)
    c = sigmoid(f + 1) c + sigmoid(i) tanh(j)     clipped to the cell clip
    h = (sigmoid(o) tanh(c)) W_p                  clipped to the projection clip; without W_p it is not clipped

Since sigmoid(x) = (1 + tanh(x / 2)) / 2, halving the weights of i, f and o, which is exact, leaves a single tanh over
all of z. A gate is then 1 + tanh, twice its sigmoid; c and W_p (or h, without W_p) are halved instead.

A batch has its longest sentence first, and its rows are packed by time step: first the first token of every sentence,
then the second tokens, and so on. So the sentences that have a token at a step are the first ones, and no step computes
padding.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elmo_zh.vocabulary.vocabulary import BEGIN_ID, END_ID

Floats = NDArray[np.float32]
Ids = NDArray[np.int64]

# The products with the inputs are computed for about this many rows at a time: enough to be fast, few enough for the
# cache.
_BLOCK_ROWS = 1024
# If a batch has at most this many distinct words, their products are computed once each: a fifth of all the work, and
# half of the words of running text are repetitions.
_MOST_DISTINCT = 2 * _BLOCK_ROWS


def mark_sentence(ids: Sequence[int] | NDArray[Any]) -> Ids:
    """Return a sentence's ids with <S> before and </S> after them, int64, shape (n + 2,)."""
    marked = np.empty(len(ids) + 2, np.int64)
    marked[0], marked[1:-1], marked[-1] = BEGIN_ID, ids, END_ID
    return marked


def iter_length_sorted(lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """Yield the indexes of the sentences in each batch, longest first.

    A batch has at most `batch_tokens` tokens, counting padding; a longer sentence has a batch of its own.
    """
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda i: (-lengths[i], i)):
        if batch and (len(batch) + 1) * lengths[batch[0]] > batch_tokens:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


@dataclass(frozen=True, eq=False)
class PackedSentences:
    """B sentences, longest first, as N rows: the first token of every sentence, then the second tokens, and so on."""

    counts: list[int]  # Number of sentences that have a token at each step; they are the first ones
    starts: Ids  # The first row of each step, shape (T,)
    lengths: Ids  # Tokens of each sentence, shape (B,)

    @classmethod
    def of_lengths(cls, lengths: Sequence[int]) -> "PackedSentences":
        """Return the packing of sentences with these lengths, which must be in descending order."""
        array = np.array(lengths, np.int64)
        assert (np.diff(array) <= 0).all(), "the longest sentence comes first"
        counts = np.searchsorted(-array, -np.arange(array[0]), side="left")
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int64)
        return cls(counts.tolist(), starts, array)

    def pack(self, sentences: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """Return the values of all sentences, one per token, in the order of the rows, shape (N,)."""
        packed = np.empty(int(self.lengths.sum()), np.asarray(sentences[0]).dtype)
        for rows, values in zip(self.rows(), sentences, strict=True):
            packed[rows] = values
        return packed

    def rows(self) -> Iterator[Ids]:
        """Yield the rows of each sentence's tokens, in order."""
        for number, length in enumerate(self.lengths.tolist()):
            yield self.starts[:length] + number


class BothWays(NamedTuple):
    """Sentences of word numbers, marks included, packed for both LMs."""

    counts: list[int]  # Number of sentences that have a token at each step
    words: Ids  # The word that each row reads, for the forward LM and for the backward LM, shape (2, N)
    places: Ids  # The row of each token but the marks, sentence by sentence, for both LMs, shape (2, M)


def pack_both_ways(sentences: Sequence[Ids]) -> BothWays:
    """Pack sentences of word numbers for both LMs; they must be sorted, longest first, and have marks at both ends."""
    packed = PackedSentences.of_lengths([len(sentence) for sentence in sentences])
    words = np.stack([packed.pack(sentences), packed.pack([sentence[::-1] for sentence in sentences])])
    places = np.concatenate([np.stack([rows[1:-1], rows[-2:0:-1]]) for rows in packed.rows()], axis=1)
    return BothWays(packed.counts, words, places)


class LSTMWeights(NamedTuple):
    """One direction of one layer, as `prepare` returns it."""

    input: Floats  # Shape (P, 4D), the columns of i, f and o halved
    recurrent: Floats  # Shape (P, 4D), likewise
    bias: Floats  # Shape (4D,), likewise, with the forget gate's 1
    projection: Floats | None  # Shape (D, P), halved; None if P = D


class LSTMState(NamedTuple):
    """The state that one direction of a layer carries from token to token, for B sentences."""

    output: Floats  # h, shape (B, P)
    cell: Floats  # c, shape (B, D)


def prepare(input_weight: Floats, recurrent_weight: Floats, bias: Floats, projection: Floats | None) -> LSTMWeights:
    """Return the weights of one direction in the form that `run_layer` needs (see `LSTMWeights`)."""
    D = len(bias) // 4
    scale = np.full(4 * D, 0.5, np.float32)
    scale[D : 2 * D] = 1
    with_one = bias.copy()
    with_one[2 * D : 3 * D] += 1
    halved = None if projection is None else projection * np.float32(0.5)
    return LSTMWeights(input_weight * scale, recurrent_weight * scale, with_one * scale, halved)


def run_layer(
    inputs: Floats,
    rows: Ids | None,
    counts: Sequence[int],
    weights: LSTMWeights,
    state: LSTMState,
    cell_clip: float,
    output_clip: float,
) -> tuple[Floats, LSTMState]:
    """Return the outputs of N packed rows, shape (N, P), and each sentence's state after its last token.

    Args:
        inputs: Shape (N, P), or with `rows` one for each of U distinct words, (U, P).
        rows: The input that each packed row reads, shape (N,); None if each has its own.
        counts: How many sentences have a token at each step.
        weights: As `prepare` returns them.
        state: The state before the first token.
        cell_clip: Largest magnitude of the cell state; 0 for none.
        output_clip: Largest magnitude of the output; 0 for none.
    """
    B, D = state.cell.shape
    outputs = np.empty((sum(counts), inputs.shape[1]), np.float32)
    last_output, cell = state.output.copy(), state.cell.copy()
    before, first = state.output, 0
    from_output, product = np.empty((B, 4 * D), np.float32), np.empty((B, D), np.float32)
    for step, z in enumerate(_from_inputs(inputs, rows, counts, weights)):
        n = len(z)
        z += np.matmul(before[:n], weights.recurrent, out=from_output[:n])
        np.tanh(z, out=z)
        i, j, f, o = z[:, :D], z[:, D : 2 * D], z[:, 2 * D : 3 * D], z[:, 3 * D :]
        z[:, 2 * D :] += 1
        i += 1
        c = cell[:n]
        c *= f
        c += np.multiply(i, j, out=product[:n])
        c *= 0.5
        if cell_clip:
            np.clip(c, -cell_clip, cell_clip, out=c)
        m = np.tanh(c, out=product[:n])
        m *= o
        h = outputs[first : first + n]
        if weights.projection is None:
            np.multiply(m, 0.5, out=h)
        else:
            np.matmul(m, weights.projection, out=h)
            if output_clip:
                np.clip(h, -output_clip, output_clip, out=h)
        ending = counts[step + 1] if step + 1 < len(counts) else 0
        last_output[ending:n] = h[ending:]
        before = h
        first += n
    return outputs, LSTMState(last_output, cell)


def _from_inputs(inputs: Floats, rows: Ids | None, counts: Sequence[int], weights: LSTMWeights) -> Iterator[Floats]:
    """Yield x W_x + b of each step, shape (n, 4D), in memory that the caller may change."""
    if rows is not None and len(inputs) <= _MOST_DISTINCT:
        products = inputs @ weights.input
        products += weights.bias
        z, first = np.empty((counts[0], products.shape[1]), np.float32), 0
        for n in counts:
            yield np.take(products, rows[first : first + n], axis=0, out=z[:n], mode="clip")
            first += n
        return
    inputs = inputs if rows is None else inputs[rows]
    first, start, stop = 0, 0, 0
    block = np.empty((0, len(weights.bias)), np.float32)
    for n in counts:
        if first + n > stop:
            start, stop = first, max(first + n, min(len(inputs), first + _BLOCK_ROWS))
            block = inputs[start:stop] @ weights.input
            block += weights.bias
        yield block[first - start : first - start + n]
        first += n
