"""Measure how well held-out text, or a fixed sample of it, is predicted by the model and by n-gram baselines."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from elmo_zh.id_store import EncodedSentences, HeldoutSentences, IdStore
from elmo_zh.model.language_model import LanguageModel, weights_of
from elmo_zh.run.reporter import Progress
from elmo_zh.scoring import Figures, TextCost, batch_costs, total_cost
from elmo_zh.training.distributed import SINGLE_PROCESS, ProcessGroup
from elmo_zh.vocabulary.lexicon import Lexicon
from elmo_zh.vocabulary.vocabulary import BEGIN_ID, END_ID, UNKNOWN_ID

# The sample does not depend on the training seed, so that runs can be compared.
_SAMPLE_SEED = 20_180_215


def sample_sentences(heldout: HeldoutSentences, num_tokens: int) -> NDArray[np.int64]:
    """Return the held-out sample, about `num_tokens` words (or all), as sorted indexes of random sentences."""
    order = np.random.default_rng(_SAMPLE_SEED).permutation(len(heldout))
    lengths = heldout.lengths(order)
    enough = int(np.searchsorted(np.cumsum(lengths), num_tokens)) + 1
    return np.sort(order[:enough])


def text_cost(store: IdStore, indexes: NDArray[np.int64], forward_nats: float, backward_nats: float) -> TextCost:
    """Return the cost of selected held-out sentences, with the counts for perplexity and bits per character."""
    heldout = store.heldout
    sentences = [store.lexicon.targets(heldout[int(index)]) for index in indexes]
    num_tokens = sum(len(ids) for ids in sentences)
    return TextCost(
        num_sentences=len(sentences),
        num_tokens=num_tokens,
        num_unknown=sum(int(np.count_nonzero(ids == UNKNOWN_ID)) for ids in sentences),
        num_characters=int(heldout.characters[indexes].sum()) + len(sentences),
        forward_nats=forward_nats,
        backward_nats=backward_nats,
        spelling_nats=float(heldout.spelling_nats[indexes].sum()),
    )


def evaluate_heldout(
    model: LanguageModel,
    store: IdStore,
    indexes: NDArray[np.int64],
    progress: Progress | None = None,
    group: ProcessGroup = SINGLE_PROCESS,
) -> Figures:
    """Return exact figures for held-out sentences, computed in float32 as in the exported model."""
    sentences = [store.heldout[int(index)] for index in indexes]
    share = group.rank, group.size
    costs = torch.from_numpy(
        batch_costs(weights_of(model.bilm, model.softmax), store.lexicon, sentences, progress, share)
    )
    group.all_reduce(costs)
    return text_cost(store, indexes, *total_cost(costs.numpy())).figures()


MAX_TRAIN_TOKENS = 20_000_000
_BASELINES = ("unigram", "bigram")


def measure_baselines(store: IdStore, seed: int) -> dict[str, float]:
    """Return the held-out text's cost in nats, the mean of both directions, for unigram and Kneser-Ney bigram models.

    Counts come from a random sample of at most MAX_TRAIN_TOKENS training tokens.
    """
    num_tokens = len(store.lexicon.vocabulary)
    train_pairs = pairs(store.train, _choose_sentences(store.train, seed), store.lexicon)
    heldout_pairs = pairs(store.heldout, np.arange(len(store.heldout)), store.lexicon)
    unigram = bigram = 0.0
    for direction, start in ((1, BEGIN_ID), (-1, END_ID)):
        # The backward model predicts the first token of a pair from the second.
        context, target = train_pairs[:, ::direction].T
        heldout_context, heldout_target = heldout_pairs[:, ::direction].T
        counts = np.bincount(target, minlength=num_tokens)
        unigram -= float(np.log((counts[heldout_target] + 1) / (len(target) + num_tokens - 1)).sum() / 2)
        model = KneserNeyBigram(context, target, num_tokens, start)
        bigram += float(-np.log(model.probabilities(heldout_context, heldout_target)).sum() / 2)
    return dict(zip(_BASELINES, (unigram, bigram), strict=True))


def _choose_sentences(train: EncodedSentences, seed: int) -> NDArray[np.int64]:
    if train.num_tokens <= MAX_TRAIN_TOKENS:
        return np.arange(len(train))
    wanted = max(1, int(len(train) * MAX_TRAIN_TOKENS / train.num_tokens))
    drawn = np.random.default_rng(seed).choice(len(train), wanted, replace=False)
    return np.sort(drawn[np.cumsum(train.lengths(drawn)) <= MAX_TRAIN_TOKENS])


def pairs(sentences: EncodedSentences, indexes: NDArray[np.int64], lexicon: Lexicon) -> NDArray[np.int64]:
    """Return all pairs of adjacent vocabulary rows in `<S> w1 .. wn </S>`, shape (number of predictions, 2)."""
    ids, lengths = sentences.read(indexes)
    # Each sentence takes n + 2 positions: fill all with <S>, then overwrite the positions of the words and of </S>.
    begins = np.concatenate([[0], np.cumsum(lengths + 2)])
    marked = np.full(begins[-1], BEGIN_ID, np.int64)
    marked[begins[1:] - 1] = END_ID
    within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    marked[np.repeat(begins[:-1] + 1, lengths) + within] = ids
    marked = lexicon.targets(marked)
    is_pair = np.ones(max(0, len(marked) - 1), np.bool_)
    is_pair[begins[1:-1] - 1] = False
    return np.stack([marked[:-1][is_pair], marked[1:][is_pair]], axis=1)


class KneserNeyBigram:
    """An interpolated Kneser-Ney bigram model (Chen and Goodman 1999) whose lowest order is uniform.

    P(w | v) = max(c(v w) - d, 0) / c(v) + d n(v) / c(v) Q(w), where n(v) is the number of distinct words after v. Q has
    the same form over the number of distinct words before w, with its own discount, and backs off to the uniform
    distribution over the V - 1 outcomes. Each discount is n1 / (n1 + 2 n2), where n1 counts are 1 and n2
    counts are 2; it is 0.5 if n1 = 0. After an unseen context, P = Q.
    """

    def __init__(self, context: NDArray[np.int64], target: NDArray[np.int64], num_tokens: int, start: int) -> None:
        self._num_tokens = num_tokens
        self._pairs, self._pair_counts = np.unique(context * num_tokens + target, return_counts=True)
        pair_contexts, pair_targets = np.divmod(self._pairs, num_tokens)
        self._context_counts = np.bincount(context, minlength=num_tokens)
        self._followers = np.bincount(pair_contexts, minlength=num_tokens)
        self._discount = _discount(self._pair_counts)
        before = np.bincount(pair_targets, minlength=num_tokens)
        discount = _discount(before[before > 0])
        reserved = discount * np.count_nonzero(before) / len(self._pairs)
        self.lower: NDArray[Any] = np.maximum(before - discount, 0) / len(self._pairs) + reserved / (num_tokens - 1)
        self.lower[start] = 0.0

    def probabilities(self, context: NDArray[np.int64], target: NDArray[np.int64]) -> NDArray[Any]:
        """Return P(target | context) for arrays of pairs."""
        keys = context * self._num_tokens + target
        positions = np.minimum(np.searchsorted(self._pairs, keys), len(self._pairs) - 1)
        counts = np.where(self._pairs[positions] == keys, self._pair_counts[positions], 0)
        total = self._context_counts[context]
        seen = total > 0
        total = np.maximum(total, 1)
        direct = np.maximum(counts - self._discount, 0) / total
        back_off = np.where(seen, self._discount * self._followers[context] / total, 1.0)
        return np.asarray(direct + back_off * self.lower[target])


def _discount(counts: NDArray[Any]) -> float:
    once, twice = np.count_nonzero(counts == 1), np.count_nonzero(counts == 2)
    # If nothing was seen exactly once, the estimate would be 0 and leave no probability for unseen events.
    return once / (once + 2 * twice) if once else 0.5
