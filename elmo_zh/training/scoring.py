"""Exact perplexity: every prediction is scored once over the whole vocabulary, independent of the batches."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from numpy.typing import NDArray

from elmo_zh.model.batches import build_inputs, iter_length_sorted, mark_sentence, pad_sentences
from elmo_zh.model.bilm import BiLM, State, read_both_ways
from elmo_zh.model.softmax import Softmax
from elmo_zh.model.token_encoder import TokenInputs
from elmo_zh.run.reporter import Progress
from elmo_zh.training.distributed import SINGLE_PROCESS, ProcessGroup
from elmo_zh.vocabulary.lexicon import Lexicon

BATCH_TOKENS = 2048
# exp of more overflows. Only a model that has diverged costs so much.
_MOST_NATS = 700.0


@dataclass(frozen=True, kw_only=True)
class TextMeasure:
    """The counts of a text that its perplexity and bits per character are computed from.

    Attributes:
        num_predictions: Number of predictions in one direction: words and sentence ends.
        num_tokens: Number of words.
        num_unknown: Number of words outside the vocabulary.
        num_characters: Number of characters in the words, plus one for each sentence end.
        spelling_nats: Cost of spelling the unknown words, in nats.
    """

    num_predictions: int
    num_tokens: int
    num_unknown: int
    num_characters: int
    spelling_nats: float

    def perplexity(self, nats: float) -> float:
        """Return exp(nats per prediction)."""
        return math.exp(min(nats / self.num_predictions, _MOST_NATS))

    def bits_per_character(self, nats: float) -> float:
        """Return the cost of the text and of spelling its unknown words, in bits per character."""
        return (nats + self.spelling_nats) / math.log(2) / self.num_characters

    @property
    def oov_rate(self) -> float:
        """Fraction of the words that are outside the vocabulary."""
        return self.num_unknown / max(1, self.num_tokens)


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Exact figures of a text; `perplexity` is the geometric mean of the two directions."""

    perplexity: float
    forward_perplexity: float
    backward_perplexity: float
    bits_per_character: float
    oov_rate: float
    num_predictions: int

    @property
    def is_finite(self) -> bool:
        """Whether each perplexity is a number and not too large for one, as it is unless the model has diverged."""
        perplexities = (self.perplexity, self.forward_perplexity, self.backward_perplexity)
        return all(perplexity < math.exp(_MOST_NATS) for perplexity in perplexities)

    @classmethod
    def build(cls, measure: TextMeasure, forward_nats: float, backward_nats: float) -> "Figures":
        """Compute the figures from the counts of a text and its total cost in each direction."""
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
def score_sentences(
    bilm: BiLM,
    softmax: Softmax,
    lexicon: Lexicon,
    sentences: Sequence[NDArray[Any]],
    progress: Progress | None = None,
    group: ProcessGroup = SINGLE_PROCESS,
) -> tuple[float, float]:
    """Return the total cost in nats of sentences of input ids under the forward and the backward LM.

    Every sentence starts from the same state: zeros, or the model's warm state. Each rank of the group scores some of
    the batches; the batches and the order of summation are the same as with one rank.
    """
    lengths = [len(sentence) + 2 for sentence in sentences]
    batches = list(iter_length_sorted(lengths, BATCH_TOKENS))
    costs = torch.zeros(len(batches), 2, dtype=torch.float64)
    for number, batch in enumerate(batches):
        if number % group.size == group.rank:
            chosen = [sentences[index] for index in batch]
            both, _ = _batch_nats(bilm, softmax, lexicon, chosen, bilm.start_state(len(chosen)))
            costs[number] = torch.tensor(both, dtype=torch.float64)
        if progress is not None:
            progress.update(sum(lengths[index] - 1 for index in batch))
    group.all_reduce(costs)
    totals = [0.0, 0.0]
    for nats in costs.tolist():
        totals = [total + cost for total, cost in zip(totals, nats, strict=True)]
    return totals[0], totals[1]


@torch.no_grad()
def score_stream(
    bilm: BiLM, softmax: Softmax, lexicon: Lexicon, sentence: NDArray[Any], state: State
) -> tuple[tuple[float, float], State]:
    """Return one sentence's cost in nats under each LM, and the state after the last token that each LM reads.

    As in training with carried state, the last sentence mark is predicted but not read.
    """
    return _batch_nats(bilm, softmax, lexicon, [sentence], state)


def _batch_nats(
    bilm: BiLM, softmax: Softmax, lexicon: Lexicon, sentences: Sequence[NDArray[Any]], state: State
) -> tuple[tuple[float, float], State]:
    ids, mask = pad_sentences([mark_sentence(sentence) for sentence in sentences])
    device = softmax.bias.device
    # (2, T, B): the backward LM reads each sentence from its end. The last token is predicted but never read.
    read = read_both_ways(TokenInputs(ids), mask).ids
    targets = torch.from_numpy(lexicon.targets(read.numpy()))[:, 1:].to(device)
    predicts = mask.transpose(0, 1)[1:].to(device)
    inputs = build_inputs(lexicon, read[:, :-1]).to(device)
    activations, state = bilm(inputs, state, lengths=predicts.sum(dim=0))
    forward, backward = (
        float(softmax.nats(activations[-1][direction][predicts], targets[direction][predicts]).double().sum())
        for direction in range(2)
    )
    return (forward, backward), state
