"""Exact perplexity: every prediction is scored once over the whole vocabulary, whatever the batches."""

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from elmo_zh.model.batches import build_inputs, iter_length_sorted, mark_sentence, pad_sentences
from elmo_zh.model.bilm import BiLM, State, read_both_ways
from elmo_zh.model.softmax import ExactCosts, Softmax
from elmo_zh.model.token_encoder import TokenInputs
from elmo_zh.run.reporter import Progress, report_steps
from elmo_zh.vocabulary.lexicon import Lexicon

# A sentence with more steps than a block is alone in its batch.
BATCH_TOKENS = BLOCK_STEPS = 2048
# exp of more overflows. Only a model that has diverged costs so much.
_MOST_NATS = 700.0


@dataclass(frozen=True, kw_only=True)
class TextMeasure:
    """The counts of a text from which its perplexity and bits per character are computed."""

    num_predictions: int  # Number of predictions in one direction: words and sentence ends
    num_tokens: int  # Number of words
    num_unknown: int  # Number of words outside the vocabulary
    num_characters: int  # Number of characters in the words, plus one for each sentence end
    spelling_nats: float  # Cost of spelling the unknown words, in nats

    def perplexity(self, nats: float) -> float:
        """Return exp(nats per prediction), limited so that it does not overflow."""
        return math.exp(min(nats / self.num_predictions, _MOST_NATS))

    def bits_per_character(self, nats: float) -> float:
        """Return the cost of the text and of spelling its unknown words, in bits per character."""
        return (nats + self.spelling_nats) / math.log(2) / self.num_characters

    @property
    def oov_rate(self) -> float:
        """Fraction of words that are outside the vocabulary."""
        return self.num_unknown / max(1, self.num_tokens)


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Exact figures for a text; `perplexity` is the geometric mean of both directions."""

    perplexity: float
    forward_perplexity: float
    backward_perplexity: float
    bits_per_character: float
    oov_rate: float
    num_predictions: int

    @property
    def is_finite(self) -> bool:
        """Whether all perplexities are finite, as they are unless the model has diverged."""
        perplexities = (self.perplexity, self.forward_perplexity, self.backward_perplexity)
        return all(perplexity < math.exp(_MOST_NATS) for perplexity in perplexities)

    @classmethod
    def build(cls, measure: TextMeasure, forward_nats: float, backward_nats: float) -> "Figures":
        """Compute the figures from a text's counts and its total cost in each direction."""
        mean = (forward_nats + backward_nats) / 2
        return cls(
            perplexity=measure.perplexity(mean),
            forward_perplexity=measure.perplexity(forward_nats),
            backward_perplexity=measure.perplexity(backward_nats),
            bits_per_character=measure.bits_per_character(mean),
            oov_rate=measure.oov_rate,
            num_predictions=measure.num_predictions,
        )


@torch.no_grad()
def batch_costs(
    bilm: BiLM,
    softmax: Softmax,
    lexicon: Lexicon,
    sentences: Sequence[NDArray[Any]],
    progress: Progress | None = None,
    share: tuple[int, int] = (0, 1),
) -> Tensor:
    """Score sentences of input ids in batches; return each batch's nats under each LM, float64, shape (batches, 2).

    With a `share` (rank, size), only every size-th batch is scored, starting at number `rank`; the others cost zero. So
    the sum over the ranks has the same batches in the same order as with one rank.
    """
    rank, size = share
    lengths = [len(sentence) + 2 for sentence in sentences]
    batches = list(iter_length_sorted(lengths, BATCH_TOKENS))
    costs = torch.zeros(len(batches), 2, dtype=torch.float64)
    for number, batch in enumerate(batches):
        if number % size == rank:
            chosen = [sentences[index] for index in batch]
            predicted = _predict(bilm, _SharedCosts(softmax), lexicon, chosen, bilm.start_state(len(chosen)))
            costs[number] = torch.tensor(predicted.total(), dtype=torch.float64)
        if progress is not None:
            progress.update(sum(lengths[index] - 1 for index in batch))
    return costs


def total_cost(costs: Tensor) -> tuple[float, float]:
    """Sum `batch_costs` in a fixed order, and return the total in nats under the forward and the backward LM."""
    totals = [0.0, 0.0]
    for nats in costs.tolist():
        totals = [total + cost for total, cost in zip(totals, nats, strict=True)]
    return totals[0], totals[1]


@torch.no_grad()
def costs_from(
    bilm: BiLM, softmax: Softmax, lexicon: Lexicon, sentence: NDArray[Any], state: State
) -> tuple[NDArray[np.float64], State]:
    """Return one sentence's costs starting from a state, like `sentence_costs`, and the state after its last token."""
    predicted = _predict(bilm, _SharedCosts(softmax), lexicon, [sentence], state)
    [costs] = predicted.by_sentence()
    return costs, predicted.state


@torch.no_grad()
def sentence_costs(
    bilm: BiLM, softmax: Softmax, lexicon: Lexicon, sentences: Sequence[NDArray[Any]]
) -> list[NDArray[np.float64]]:
    """Return the cost of each prediction in sentences of input ids, in nats, from the start state of `batch_costs`.

    The costs of n words have shape (2, n + 1): column k is for word k under the forward and the backward LM; the last
    column is for the mark that each LM predicts at its end, </S> and <S>. Sentences that begin or end alike, such as
    minimal pairs, share most of the work.
    """
    shared = _SharedCosts(softmax)
    found: list[NDArray[np.float64]] = [np.empty((2, 0))] * len(sentences)
    for batch in iter_length_sorted([len(sentence) + 2 for sentence in sentences], BATCH_TOKENS):
        chosen = [sentences[index] for index in batch]
        predicted = _predict(bilm, shared, lexicon, chosen, bilm.start_state(len(chosen)))
        for index, costs in zip(batch, predicted.by_sentence(), strict=True):
            found[index] = costs
    return found


@dataclass(frozen=True, eq=False)
class _Predictions:
    # The cost of each prediction under the forward LM and under the backward LM, float64, each of shape (M,): step by
    # step, at each step sentence by sentence.
    nats: tuple[Tensor, Tensor]
    predicts: Tensor  # True where a sentence has a prediction, shape (T, B)
    state: State  # The state after the last token that each LM reads

    def total(self) -> tuple[float, float]:
        forward, backward = (float(costs.sum()) for costs in self.nats)
        return forward, backward

    def by_sentence(self) -> list[NDArray[np.float64]]:
        steps = torch.zeros(2, *self.predicts.shape, dtype=torch.float64)
        predicts = self.predicts.cpu()
        for direction, costs in enumerate(self.nats):
            steps[direction][predicts] = costs.cpu()
        found = []
        for row, length in enumerate(predicts.sum(dim=0).tolist()):
            own: NDArray[np.float64] = steps[:, :length, row].numpy().copy()
            # The backward LM predicts the last word first, and <S> after the first word.
            own[1, :-1] = own[1, -2::-1]
            found.append(own)
        return found


class TopOutputs(NamedTuple):
    """The outputs that both LMs predict words from, each in its own reading order."""

    hidden: Tensor  # Outputs of the top layer, float32, shape (2, T, B, P)
    targets: Tensor  # The rows to predict, int64, shape (2, T, B)
    predicts: Tensor  # True where a sentence has a prediction, shape (T, B)
    state: State  # The state after the last token that each LM reads


def top_outputs(bilm: BiLM, lexicon: Lexicon, sentences: Sequence[NDArray[Any]], state: State) -> TopOutputs:
    """Run both LMs on sentences of input ids from a state; each predicts its last marker, but never reads it."""
    [outputs] = _iter_outputs(bilm, lexicon, sentences, state, block_steps=sys.maxsize)
    return outputs


def _iter_outputs(
    bilm: BiLM, lexicon: Lexicon, sentences: Sequence[NDArray[Any]], state: State, block_steps: int
) -> Iterator[TopOutputs]:
    """Yield the outputs of `top_outputs` in blocks of steps; each block starts from the previous block's last state."""
    ids, mask = pad_sentences([mark_sentence(sentence) for sentence in sentences])
    device = bilm.lstm_layers()[0].bias.device
    # (2, T, B): the backward LM reads each sentence from its end.
    read = read_both_ways(TokenInputs(ids), mask).ids
    targets = torch.from_numpy(lexicon.targets(read.numpy()))[:, 1:].to(device)
    predicts = mask.transpose(0, 1)[1:].to(device)
    for start in range(0, len(predicts), block_steps):
        steps = slice(start, min(start + block_steps, len(predicts)))
        inputs = build_inputs(lexicon, read[:, steps]).to(device)
        activations, state = bilm(inputs, state, lengths=predicts[steps].sum(dim=0))
        yield TopOutputs(activations[-1], targets[:, steps], predicts[steps], state)


class _SharedCosts:
    """Computes the costs of predictions, with one softmax for all predictions in the same context.

    A context is what an LM has read of a sentence: its first words or, for the backward LM, its last words. Contexts
    are numbered in the order in which they are first predicted from.
    """

    def __init__(self, softmax: Softmax) -> None:
        self._costs = ExactCosts(softmax)
        # The number of each context, by the number of the context one word shorter and the word read last
        self._numbers: tuple[dict[tuple[int, int], int], ...] = ({}, {})
        # The log of the softmax's sum over the vocabulary in each context, float64
        self._log_sums = [softmax.bias.new_empty(0, dtype=torch.float64) for _ in range(2)]

    def contexts(self, sentences: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
        """Return the number of the context of each prediction, shape (2, T, B), or -1 after the last one."""
        both = np.full((2, max(map(len, sentences)) + 1, len(sentences)), -1)
        for contexts, numbers, way in zip(both, self._numbers, (1, -1), strict=True):
            words = [mark_sentence(sentence)[::way].tolist() for sentence in sentences]
            before = [-1] * len(words)
            for step, here in enumerate(contexts):
                for row, sentence in enumerate(words):
                    if step < len(sentence) - 1:
                        before[row] = here[row] = numbers.setdefault((before[row], sentence[step]), len(numbers))
        return both

    def nats(self, direction: int, hidden: Tensor, targets: Tensor, contexts: NDArray[np.int64]) -> Tensor:
        """Return the exact cost of each target in nats, float64, shape (M,), for outputs of shape (M, P)."""
        known = self._log_sums[direction]
        distinct, first = np.unique(contexts, return_index=True)
        new = torch.from_numpy(first[distinct >= len(known)]).to(hidden.device)
        top, rows = hidden[new], targets[new]
        known = torch.cat([known, self._costs.nats(top, rows) + self._costs.scores(top, rows)])
        self._log_sums[direction] = known
        return known[torch.from_numpy(contexts).to(known.device)] - self._costs.scores(hidden, targets)


def _predict(
    bilm: BiLM, shared: _SharedCosts, lexicon: Lexicon, sentences: Sequence[NDArray[Any]], state: State
) -> _Predictions:
    """Predict all words in a batch; a very long sentence is a batch of its own and is read in blocks."""
    nats: tuple[list[Tensor], list[Tensor]] = ([], [])
    all_predicts: list[Tensor] = []
    contexts = shared.contexts(sentences)
    for hidden, targets, predicts, after in _iter_outputs(bilm, lexicon, sentences, state, BLOCK_STEPS):
        state = after
        here, contexts = contexts[:, : len(predicts)], contexts[:, len(predicts) :]
        for direction, (top, rows) in enumerate(zip(hidden, targets, strict=True)):
            numbers = here[direction][predicts.cpu().numpy()]
            nats[direction].append(shared.nats(direction, top[predicts], rows[predicts], numbers))
        if all_predicts:
            report_steps(sum(map(len, all_predicts)))
        all_predicts.append(predicts)
    forward, backward = map(torch.cat, nats)
    return _Predictions((forward, backward), torch.cat(all_predicts), state)
