"""Exact perplexity: every prediction is scored once over the whole vocabulary, however the text is batched."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elmo_zh.reader.bilm import State
from elmo_zh.reader.lstm import Floats, Ids, PackedSentences, iter_length_sorted, mark_sentence
from elmo_zh.reader.softmax import log_sums, target_scores
from elmo_zh.reader.weights import ModelWeights
from elmo_zh.run.reporter import Progress
from elmo_zh.vocabulary.lexicon import Lexicon

# A longer sentence is alone in its batch.
BATCH_TOKENS = 2048
# exp of more overflows. Only a model that has diverged costs so much.
_MOST_NATS = 700.0


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Exact figures for a text; `perplexity` is the geometric mean of both directions.

    Bits per character include the spelling of unknown words.
    """

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


@dataclass(frozen=True, kw_only=True)
class TextCost:
    """The exact cost of text under a model, its negative log-probability, with the counts needed to interpret it."""

    num_sentences: int = 0  # number of sentences with a token
    num_tokens: int = 0
    num_unknown: int = 0  # number of tokens outside the vocabulary
    num_characters: int = 0  # number of characters in the tokens, plus one for each sentence end
    forward_nats: float = 0.0  # cost of every token and each sentence's </S> under the forward LM, in nats
    backward_nats: float = 0.0  # cost of every token and each sentence's <S> under the backward LM, in nats
    spelling_nats: float = 0.0  # cost of spelling the unknown tokens, in nats

    def __add__(self, other: "TextCost") -> "TextCost":
        names = (field.name for field in fields(TextCost))
        return TextCost(**{name: getattr(self, name) + getattr(other, name) for name in names})

    @property
    def num_predictions(self) -> int:
        """Number of predictions in one direction: tokens and sentence ends."""
        return self.num_tokens + self.num_sentences

    @property
    def mean_nats(self) -> float:
        """Mean cost of both directions, in nats."""
        return (self.forward_nats + self.backward_nats) / 2

    def figures(self) -> Figures:
        """Return the figures; needs at least one sentence. Perplexities are limited so that they do not overflow."""
        costs = (self.mean_nats, self.forward_nats, self.backward_nats)
        mean, forward, backward = (math.exp(min(nats / self.num_predictions, _MOST_NATS)) for nats in costs)
        return Figures(
            perplexity=mean,
            forward_perplexity=forward,
            backward_perplexity=backward,
            bits_per_character=(self.mean_nats + self.spelling_nats) / math.log(2) / self.num_characters,
            oov_rate=self.num_unknown / max(1, self.num_tokens),
            num_predictions=self.num_predictions,
        )


def batch_costs(
    weights: ModelWeights,
    lexicon: Lexicon,
    sentences: Sequence[NDArray[Any]],
    progress: Progress | None = None,
    share: tuple[int, int] = (0, 1),
) -> NDArray[np.float64]:
    """Score sentences of input ids in batches; return each batch's nats under each LM, float64, shape (batches, 2).

    With a `share` (rank, size), only every size-th batch is scored, starting at number `rank`; the others cost zero. So
    the arrays of all ranks add up to the array of a single rank.
    """
    rank, size = share
    lengths = [len(sentence) + 2 for sentence in sentences]
    batches = list(iter_length_sorted(lengths, BATCH_TOKENS))
    costs = np.zeros((len(batches), 2))
    for number, batch in enumerate(batches):
        if number % size == rank:
            by_sentence, _ = _Scorer(weights, lexicon).score([sentences[index] for index in batch])
            costs[number] = np.concatenate(by_sentence, axis=1).sum(axis=1)
        if progress is not None:
            progress.update(sum(lengths[index] - 1 for index in batch))
    return costs


def total_cost(costs: NDArray[np.float64]) -> tuple[float, float]:
    """Sum `batch_costs` in a fixed order, and return the total in nats under the forward and the backward LM."""
    totals = [0.0, 0.0]
    for nats in costs.tolist():
        totals = [total + cost for total, cost in zip(totals, nats, strict=True)]
    return totals[0], totals[1]


def costs_from(
    weights: ModelWeights, lexicon: Lexicon, sentence: NDArray[Any], state: State
) -> tuple[NDArray[np.float64], State]:
    """Return one sentence's costs starting from a state, like `sentence_costs`, and the state after its last token."""
    [costs], after = _Scorer(weights, lexicon).score([sentence], state)
    return costs, after


def sentence_costs(
    weights: ModelWeights, lexicon: Lexicon, sentences: Sequence[NDArray[Any]]
) -> list[NDArray[np.float64]]:
    """Return the cost of each prediction in sentences of input ids, in nats, from the model's start state.

    The costs of n words have shape (2, n + 1): column k is for word k under the forward and the backward LM; the last
    column is for the mark that each LM predicts at its end, </S> and <S>. For sentences that begin or end alike, such
    as minimal pairs, the sum over the vocabulary is computed once for each context that they share.
    """
    scorer, costs = _Scorer(weights, lexicon), [np.empty((2, 0))] * len(sentences)
    for batch in iter_length_sorted([len(sentence) + 2 for sentence in sentences], BATCH_TOKENS):
        by_sentence, _ = scorer.score([sentences[index] for index in batch])
        for index, sentence_cost in zip(batch, by_sentence, strict=True):
            costs[index] = sentence_cost
    return costs


class Outputs(NamedTuple):
    """The outputs from which both LMs predict the words of B sentences, each in its own reading order."""

    hidden: Floats  # Outputs of the top layer, shape (2, N, P)
    targets: Ids  # The vocabulary rows to predict, shape (2, N)
    packed: PackedSentences  # Where each sentence has its rows
    state: State  # The state after the last token that each LM reads


def read_outputs(weights: ModelWeights, lexicon: Lexicon, sentences: Sequence[NDArray[Any]], state: State) -> Outputs:
    """Run both LMs on sentences of input ids, longest first; each predicts its last mark, but never reads it."""
    vectors, numbered = weights.number_words(lexicon, sentences)
    hidden, after = weights.reader.top_outputs(vectors, numbered, state)
    packed = PackedSentences.of_lengths([len(sentence) + 1 for sentence in sentences])
    marked = [lexicon.targets(mark_sentence(sentence)) for sentence in sentences]
    targets = packed.pack([words[1:] for words in marked]), packed.pack([words[-2::-1] for words in marked])
    return Outputs(hidden, np.stack(targets), packed, after)


class _Scorer:
    """Scores batches of sentences, and computes each softmax's sum once for all predictions in the same context.

    A context is what an LM has read of a sentence: its first words or, for the backward LM, its last words. Contexts
    are numbered in the order in which they first occur.
    """

    def __init__(self, weights: ModelWeights, lexicon: Lexicon) -> None:
        self._weights, self._lexicon = weights, lexicon
        self._softmax = weights.arrays["softmax.weight"], weights.arrays["softmax.bias"]
        # The number of each context, by the number of the context one word shorter and the word read last
        self._numbers: tuple[dict[tuple[int, int], int], ...] = ({}, {})
        # The log of the softmax's sum over the vocabulary in each context
        self._log_sums = [np.empty(0), np.empty(0)]

    def score(
        self, sentences: Sequence[NDArray[Any]], state: State | None = None
    ) -> tuple[list[NDArray[np.float64]], State]:
        """Return each sentence's costs, as `sentence_costs` does, and the state after their last tokens.

        The sentences must be input ids, longest first. They start from `state`, or from the model's start state.
        """
        start = self._weights.reader.start_state(len(sentences)) if state is None else state
        outputs = read_outputs(self._weights, self._lexicon, sentences, start)
        costs = np.stack([self._costs(way, sentences, outputs) for way in range(2)])
        by_sentence = []
        for rows in outputs.packed.rows():
            in_order = costs[:, rows]
            # The backward LM predicts the last word first, and <S> after the first word.
            in_order[1, :-1] = in_order[1, -2::-1]
            by_sentence.append(in_order)
        return by_sentence, outputs.state

    def _costs(self, way: int, sentences: Sequence[NDArray[Any]], outputs: Outputs) -> NDArray[np.float64]:
        """Return the cost of each prediction of one LM in nats, shape (N,)."""
        hidden, known = outputs.hidden[way], self._log_sums[way]
        contexts = outputs.packed.pack([self._contexts(way, sentence) for sentence in sentences])
        distinct, first = np.unique(contexts, return_index=True)
        new = first[distinct >= len(known)]
        known = self._log_sums[way] = np.concatenate([known, log_sums(hidden[new], *self._softmax)])
        return np.asarray(known[contexts] - target_scores(hidden, *self._softmax, outputs.targets[way]))

    def _contexts(self, way: int, sentence: NDArray[Any]) -> Ids:
        """Return the number of the context of each prediction in a sentence, in the LM's reading order."""
        read, numbers = mark_sentence(sentence)[:: 1 - 2 * way].tolist()[:-1], self._numbers[way]
        contexts, context = np.empty(len(read), np.int64), -1
        for place, word in enumerate(read):
            context = contexts[place] = numbers.setdefault((context, word), len(numbers))
        return contexts
