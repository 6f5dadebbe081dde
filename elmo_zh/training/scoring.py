"""Exact held-out perplexity: every prediction scored once, over the whole vocabulary, whatever the batch."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from elmo_zh.batches import iter_length_sorted, mark_sentence, pad_sentences
from elmo_zh.model.bilm import BiLM, reversal
from elmo_zh.model.softmax import Softmax
from elmo_zh.reporter import Progress

BATCH_TOKENS = 2048


@dataclass(frozen=True, kw_only=True)
class TextMeasure:
    """What a text holds, beside its probability.

    Attributes:
        num_predictions: Words and sentence ends: predictions of one direction.
        num_tokens: Words.
        num_unknown: Words outside the vocabulary.
        num_characters: Characters of the words, and one for each sentence end.
        spelling_nats: Cost of spelling the unknown words.
    """

    num_predictions: int
    num_tokens: int
    num_unknown: int
    num_characters: int
    spelling_nats: float

    def perplexity(self, nats: float) -> float:
        """Return exp(nats per prediction)."""
        return math.exp(min(nats / self.num_predictions, 700.0))

    def bits_per_character(self, nats: float) -> float:
        """Return the cost of the text and of its unknown words' spelling in bits for each character."""
        return (nats + self.spelling_nats) / math.log(2) / self.num_characters

    @property
    def oov_rate(self) -> float:
        """Share of the words that are outside the vocabulary."""
        return self.num_unknown / max(1, self.num_tokens)


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Exact figures of a text; the perplexity is the geometric mean of the two directions'."""

    perplexity: float
    forward_perplexity: float
    backward_perplexity: float
    bits_per_character: float
    oov_rate: float
    num_predictions: int

    @classmethod
    def build(cls, measure: TextMeasure, forward_nats: float, backward_nats: float) -> "Figures":
        """Combine total costs with what the text holds."""
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
    bilm: BiLM, softmax: Softmax, sentences: Sequence[NDArray[Any]], progress: Progress | None = None
) -> tuple[float, float]:
    """Return the total cost in nats of word id sentences under the forward and the backward LM, from zero state."""
    device = softmax.bias.device
    lengths = [len(sentence) + 2 for sentence in sentences]
    totals = [0.0, 0.0]
    for batch in iter_length_sorted(lengths, BATCH_TOKENS):
        ids, mask = pad_sentences([mark_sentence(sentences[index]) for index in batch])
        order = reversal(mask)
        for direction, nats in enumerate(_batch_nats(bilm, softmax, ids.to(device), mask.to(device), order.to(device))):
            totals[direction] += float(nats.double().sum())
        if progress is not None:
            progress.update(int(mask.sum()) - len(batch))
    return totals[0], totals[1]


def _batch_nats(bilm: BiLM, softmax: Softmax, ids: Tensor, mask: Tensor, order: Tensor) -> tuple[Tensor, Tensor]:
    """Return the cost of each prediction, one flat tensor a direction."""
    # (2, T, B): the backward LM reads each sentence from its own end. The last token is only ever predicted.
    read = torch.stack([ids, ids.gather(1, order)]).transpose(1, 2)
    predicts = mask.transpose(0, 1)[1:]
    activations, _ = bilm(read[:, :-1], bilm.zero_state(len(ids)))
    forward, backward = (
        softmax.nats(activations[-1][direction][predicts], read[direction, 1:][predicts]) for direction in range(2)
    )
    return forward, backward
