"""Substitutes: the words that could stand at a place, by what both language models predict there.

Each LM predicts a word from its own side without reading the word itself: p_f(w | left) and p_b(w | right). If left and
right were independent given the word, p(w | left, right) would be proportional to p_f p_b / p(w), where p is how
frequent the word is. They are not, so p is raised to a power that was measured on held-out text
(benchmarks/substitutes.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from elmo_zh.bundle.read import Bundle
from elmo_zh.checks import Place
from elmo_zh.errors import ElmoZhError
from elmo_zh.model.batches import build_inputs, iter_length_sorted, mark_sentence, pad_sentences
from elmo_zh.vocabulary.vocabulary import SPECIALS, UNKNOWN_ID, is_word

# The power of the prior: the median and the mean reciprocal rank of the true word are best near it.
PRIOR_POWER = 0.5
_BATCH_TOKENS = 2048
# Scores in one tensor, places times words of the vocabulary; several such tensors of float32 are held at once.
_MAX_SCORES = 2**22


@dataclass(frozen=True)
class Substitute:
    """A word that could stand at a place.

    Attributes:
        word: The word, of the vocabulary.
        rank: Its rank, from 1.
        probability: Its probability by both directions over the prior; those of all candidates sum to 1.
        forward_probability: Its probability under the forward LM, from what stands before the place.
        backward_probability: Its probability under the backward LM, from what stands after it.
    """

    word: str
    rank: int
    probability: float
    forward_probability: float
    backward_probability: float


@dataclass(frozen=True)
class Substitutes:
    """The substitutes of a token.

    Attributes:
        word: The token.
        own: The token among the substitutes; None if it is outside the vocabulary.
        best: The most probable candidates in order, among them perhaps the token itself. Special tokens are no
            candidates; punctuation is one only for punctuation, or if it was asked for.
    """

    word: str
    own: Substitute | None
    best: tuple[Substitute, ...]

    @property
    def words(self) -> list[str]:
        """The most probable words without the token itself."""
        return [substitute.word for substitute in self.best if substitute.word != self.word]


class SubstituteFinder:
    """Finds substitutes with a model; its softmax is moved to the device of the biLM.

    Raises BundleError if the bundle has no softmax or no vocabulary.
    """

    def __init__(self, bundle: Bundle, device: torch.device, prior_power: float = PRIOR_POWER) -> None:
        self._softmax, self._vocabulary = bundle.require_probabilities()
        self._bundle, self._device = bundle, device
        self._softmax.to(device)
        self._penalty = prior_power * zipf_log_prior(len(self._vocabulary)).to(device)
        self._is_punctuation = torch.tensor([not is_word(token) for token in self._vocabulary.tokens], device=device)

    def find(self, places: Sequence[Place], top: int, *, with_punctuation: bool = False) -> list[Substitutes]:
        """Return the best substitutes for each place; punctuation may always stand in the place of punctuation."""
        found: list[Substitutes] = []
        step = max(1, _MAX_SCORES // len(self._vocabulary))
        for start in range(0, len(places), step):
            chosen = places[start : start + step]
            forward, backward = self.log_probabilities(chosen)
            combined = combine(forward, backward, self._penalty)
            if not with_punctuation:
                combined = self._words_for_words(combined, chosen)
            for row, (tokens, position) in enumerate(chosen):
                parts = [scores[row].cpu().numpy() for scores in (combined, forward, backward)]
                found.append(self._substitutes(tokens[position], parts, top))
        return found

    @torch.no_grad()
    def log_probabilities(self, places: Sequence[Place]) -> tuple[Tensor, Tensor]:
        """Return what the forward LM and the backward LM predict at each place, log-probabilities, each (N, V)."""
        check_places(places)
        P = self._softmax.weight.shape[1]
        hidden = torch.empty(2, len(places), P, device=self._device)
        for batch in iter_length_sorted([len(tokens) + 2 for tokens, _ in places], _BATCH_TOKENS):
            lexicon = self._bundle.build_lexicon()
            sentences = [mark_sentence(lexicon.encode(places[index][0])) for index in batch]
            ids, mask = pad_sentences(sentences)
            inputs = build_inputs(lexicon, ids).to(self._device)
            top = self._bundle.bilm.layer_activations(inputs, mask.to(self._device))[-1]
            for row, index in enumerate(batch):
                # With the mark, the token before the place is at `position`, the one after it two further.
                position = places[index][1]
                hidden[0, index], hidden[1, index] = top[row, position, :P], top[row, position + 2, P:]
        scores = functional.linear(hidden, self._softmax.weight, self._softmax.bias)
        forward, backward = scores.log_softmax(dim=-1)
        return forward, backward

    def _words_for_words(self, combined: Tensor, places: Sequence[Place]) -> Tensor:
        """Return log-probabilities, shape (N, V), in which no punctuation stands in the place of a word."""
        replaces_word = torch.tensor([is_word(tokens[position]) for tokens, position in places], device=self._device)
        left_out = replaces_word[:, None] & self._is_punctuation
        return combined.masked_fill(left_out, -torch.inf).log_softmax(dim=-1)

    def _substitutes(self, word: str, scores: Sequence[NDArray[np.float32]], top: int) -> Substitutes:
        combined, forward, backward = scores
        order = best_rows(combined, top)

        def build(row: int, rank: int) -> Substitute:
            logs = (float(each[row]) for each in (combined, forward, backward))
            return Substitute(self._vocabulary.tokens[row], rank, *np.exp([*logs]).tolist())

        [own_row] = self._vocabulary.encode([word])
        own = None
        if own_row != UNKNOWN_ID:
            is_before = np.arange(len(combined)) < own_row
            higher = (combined > combined[own_row]) | (is_before & (combined == combined[own_row]))
            own = build(own_row, 1 + int(higher.sum()))
        return Substitutes(word, own, tuple(build(int(row), rank) for rank, row in enumerate(order, start=1)))


def best_rows(scores: NDArray[np.float32], top: int) -> NDArray[np.int64]:
    """Return at most `top` rows with the largest scores, descending, int64, shape (n,); never those of -inf.

    Rows are sorted by falling frequency, so of equally probable words the more frequent one comes first.
    """
    count = min(top, int(np.count_nonzero(scores > -np.inf)))
    if not count:
        return np.empty(0, np.int64)
    falling = -scores
    # Only these are sorted: all rows that are as good as the last one to return.
    rows = np.flatnonzero(falling <= np.partition(falling, count - 1)[count - 1])
    return np.asarray(rows[np.argsort(falling[rows], kind="stable")[:count]])


def zipf_log_prior(num_tokens: int) -> Tensor:
    """Return the log of each row's frequency by Zipf's law, float32, shape (V,).

    The rows are sorted by count, and the law is that by which sampled softmax draws negatives: row k has
    log((k + 2) / (k + 1)) / log(V + 1). Bundles hold no counts.
    """
    rows = torch.arange(num_tokens, dtype=torch.float64)
    return (torch.log1p(1 / (rows + 1)) / torch.log(torch.tensor(num_tokens + 1.0))).log().float()


def combine(forward: Tensor, backward: Tensor, penalty: Tensor) -> Tensor:
    """Return the log-probabilities by both directions, shape (N, V): their sum less the penalty, special tokens never.

    The penalty, shape (V,), is the log of the prior times its power.
    """
    scores = forward + backward - penalty
    scores[:, : len(SPECIALS)] = -torch.inf
    return scores.log_softmax(dim=-1)


def check_places(places: Sequence[Place]) -> None:
    """Raise ElmoZhError if a position is not in its sentence."""
    for tokens, position in places:
        if not 0 <= position < len(tokens):
            expected = f"expected 0 to {len(tokens) - 1}" if tokens else "but an empty sentence has no position"
            raise ElmoZhError(f"position {position}: the sentence has {len(tokens)} tokens, {expected}.")
