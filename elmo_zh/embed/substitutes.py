"""Substitutes for a word in a sentence, from the predictions of both language models, in two rankings.

slot: words that could stand there. Each LM predicts from its own side without reading the word: p_f(v | left) and
p_b(v | right). If left and right were independent given v, p(v | left, right) would be proportional to p_f p_b / p(v),
where p(v) is the frequency of v. They are not, so p(v) is raised to a power that was chosen on held-out text.

pattern: words with a similar meaning there. Both LMs read the word as well, and a conjunction after it (for the
backward LM, before it), and predict the word coordinated with it: p_f(v | left word and) and p_b(v | and word right).
These are the symmetric patterns of Amrami and Goldberg (2018), "Word Sense Induction with Neural biLM and Symmetric
Patterns". For each LM, the predictions after several conjunctions and, with a fifth of the weight, for the slot are
combined by their geometric mean. The product of both LMs' means is divided by a power of p(v), and a multiple of the
cosine between v's softmax row and the word's is added to its log, as Arefyev et al. (2020), "Always Keep your Target in
Mind", do with embeddings.

benchmarks/substitutes.py measures both.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elmo_zh.bundle.read import Bundle
from elmo_zh.checks import Place
from elmo_zh.embed.sentence_vectors import WordVectors
from elmo_zh.errors import ElmoZhError
from elmo_zh.reader.bilm import LayerState, State
from elmo_zh.reader.lstm import Floats, PackedSentences, iter_length_sorted
from elmo_zh.reader.token_layer import Composition, parts_of
from elmo_zh.vocabulary.vocabulary import SPECIALS, UNKNOWN_ID, is_word

# The conjunctions of the patterns; those outside the vocabulary are left out.
PATTERNS = ("和", "、", "或", "而", "并")
# Weight of the slot; the patterns share the rest.
SLOT_SHARE = 0.2
# The power of the prior by ranking. For slot, median and mean reciprocal rank of the true word are best near 0.5.
PRIOR_POWERS = {"pattern": 0.4, "slot": 0.5}
# The nats that a cosine of 1 is worth.
COSINE_NATS = 8.0
_BATCH_TOKENS = 2048
# Most scores (places times rows of the vocabulary) in one float32 tensor; several such tensors are held at once.
_MAX_SCORES = 2**22


@dataclass(frozen=True)
class Substitute:
    """A substitute for one word in a sentence.

    Attributes:
        word: The substitute, a word of the vocabulary.
        rank: Its rank, from 1.
        probability: Its probability from all parts of the ranking; the probabilities of all candidates sum to 1.
        forward_probability: Its probability under the forward LM: by slot, given the words before the place; by
            pattern, the geometric mean over patterns and slot, scaled to sum to 1 over the vocabulary.
        backward_probability: The same for the backward LM and the words after the place.
    """

    word: str
    rank: int
    probability: float
    forward_probability: float
    backward_probability: float


@dataclass(frozen=True)
class Substitutes:
    """The substitutes for one token.

    Attributes:
        word: The token.
        own: The token itself as a substitute; None if it is outside the vocabulary or the ranking is by pattern.
        best: The most probable candidates in order; by slot, the token itself may be one. Special tokens are never
            candidates; punctuation is one only for punctuation, or on request.
    """

    word: str
    own: Substitute | None
    best: tuple[Substitute, ...]

    @property
    def others(self) -> list[Substitute]:
        """The most probable candidates, without the token itself."""
        return [substitute for substitute in self.best if substitute.word != self.word]

    @property
    def words(self) -> list[str]:
        """The words of `others`."""
        return [substitute.word for substitute in self.others]


class SubstituteFinder:
    """Finds substitutes with a model.

    `unknown` says how a word outside the vocabulary is read, as for `ElmoEmbedder`. In a ranking by pattern, backoff
    also composes the word's softmax row from any known words in it; without that row, no cosine is added.

    Raises BundleError if the bundle has no softmax or no vocabulary.
    """

    def __init__(self, bundle: Bundle, unknown: str = "unk") -> None:
        self._vocabulary = bundle.require_probabilities()
        self._reader = bundle.weights.reader
        self._weight, self._bias = bundle.weights.arrays["softmax.weight"], bundle.weights.arrays["softmax.bias"]
        self._prior = zipf_log_prior(len(self._vocabulary))
        self._is_punctuation = np.array([not is_word(token) for token in self._vocabulary.tokens])
        self._word_vectors = WordVectors(bundle.weights, bundle.build_lexicon(), unknown)
        self._patterns = self._word_vectors([word for word in PATTERNS if word in self._vocabulary])[2:]
        self._composes = unknown == "backoff"
        self._composition: Composition | None = None

    def find(
        self, places: Sequence[Place], top: int, *, ranking: str = "pattern", with_punctuation: bool = False
    ) -> list[Substitutes]:
        """Return the `top` substitutes for each place; `with_punctuation` lets punctuation replace words too."""
        check_places(places)
        substitutes: list[Substitutes] = []
        step = max(1, _MAX_SCORES // len(self._vocabulary))
        for start in range(0, len(places), step):
            some = places[start : start + step]
            words = [tokens[position] for tokens, position in some]
            forward, backward = self.log_probabilities(some, ranking)
            penalty = PRIOR_POWERS[ranking] * self._prior
            if ranking == "pattern":
                penalty = penalty - COSINE_NATS * self._cosines(words)
            left_out = self._left_out(words, ranking, with_punctuation=with_punctuation)
            combined = combine(forward, backward, np.where(left_out, np.float32(np.inf), penalty))
            for word, *scores in zip(words, combined, forward, backward, strict=True):
                substitutes.append(self._substitutes(word, scores, top))
        return substitutes

    def log_probabilities(self, places: Sequence[Place], ranking: str = "pattern") -> tuple[Floats, Floats]:
        """Return the log probabilities of the forward LM and the backward LM for each place, both of shape (N, V)."""
        hidden, state = self._read(places)
        if ranking == "pattern" and len(self._patterns):
            # A geometric mean of softmaxes is, up to a factor, the softmax of the mean output.
            hidden = SLOT_SHARE * hidden + (1 - SLOT_SHARE) * self._after_patterns(state)
        forward, backward = (log_softmax(outputs @ self._weight.T + self._bias) for outputs in hidden)
        return forward, backward

    def _read(self, places: Sequence[Place]) -> tuple[Floats, State]:
        """Return each LM's top output before it reads the word, (2, N, P), and its state after reading it."""
        vectors, sentences = self._word_vectors.number([tuple(tokens) for tokens, _ in places])
        # The part of each sentence that the forward LM reads, then the part that the backward LM reads; both up to the
        # word, and one mark more, which `top_outputs` does not read.
        parts = [np.append(ids[: position + 2], 0) for ids, (_, position) in zip(sentences, places, strict=True)]
        parts += [np.insert(ids[position + 1 :], 0, 0) for ids, (_, position) in zip(sentences, places, strict=True)]
        P, N = self._reader.shape.projection_dim, len(places)
        hidden, state = np.empty((2, N, P), np.float32), self._reader.zero_state(N)
        for batch in iter_length_sorted([len(part) for part in parts], _BATCH_TOKENS):
            start = self._reader.start_state(len(batch))
            outputs, after = self._reader.top_outputs(vectors, [parts[number] for number in batch], start)
            packed = PackedSentences.of_lengths([len(parts[number]) - 1 for number in batch])
            for row, (number, rows) in enumerate(zip(batch, packed.rows(), strict=True)):
                way, place = divmod(number, N)
                hidden[way, place] = outputs[way, rows[-2]]
                for layer, layer_after in zip(state, after, strict=True):
                    layer.output[way, place], layer.cell[way, place] = (
                        layer_after.output[way, row],
                        layer_after.cell[way, row],
                    )
        return hidden, state

    def _after_patterns(self, state: State) -> Floats:
        """Return each LM's top output after reading a conjunction too, averaged over conjunctions, shape (2, N, P)."""
        count, num_places = len(self._patterns), state[0].output.shape[1]
        # The pattern, and one mark more, which `top_outputs` does not read.
        sentences = [np.array([pattern, 0]) for _ in range(num_places) for pattern in range(count)]
        after = [LayerState(*(part.repeat(count, axis=1) for part in layer)) for layer in state]
        forward = self._reader.top_outputs(self._patterns, sentences, after)[0][0]
        backward = self._reader.top_outputs(self._patterns, [ids[::-1] for ids in sentences], after)[0][1]
        outputs = np.stack([forward, backward]).reshape(2, num_places, count, -1)
        return np.asarray(outputs.mean(axis=2), np.float32)

    def _cosines(self, words: Sequence[str]) -> Floats:
        """Return the cosine of each word's softmax row with all rows, after subtracting the mean row, shape (N, V)."""
        centre = self._weight.mean(axis=0)
        numbers = {word: number for number, word in enumerate(dict.fromkeys(words))}
        rows = np.stack([self._row(word, centre) for word in numbers]) - centre
        rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
        lengths = np.maximum(np.linalg.norm(self._weight - centre, axis=1), np.finfo(np.float32).tiny)
        cosines: Floats = (rows @ self._weight.T - (rows @ centre)[:, None]) / lengths
        return cosines[[numbers[word] for word in words]]

    def _row(self, word: str, centre: Floats) -> Floats:
        """Return a word's softmax row, composed if need be; failing that, the mean row, whose cosines are all 0."""
        [row] = self._vocabulary.encode([word])
        if row != UNKNOWN_ID:
            return np.asarray(self._weight[row])
        parts = parts_of(self._vocabulary, [word]).get(word) if self._composes else None
        if not parts:
            return centre
        self._composition = self._composition or Composition.learn(self._weight, self._vocabulary)
        return self._composition.row(parts)

    def _left_out(self, words: Sequence[str], ranking: str, *, with_punctuation: bool) -> NDArray[np.bool_]:
        """Mark the candidates to leave out for each token, bool, shape (N, V).

        These are punctuation, if the token is a word and unless allowed; and by pattern, the token itself.
        """
        replaces_word = np.array([is_word(word) and not with_punctuation for word in words])
        left_out = replaces_word[:, None] & self._is_punctuation
        if ranking == "pattern":
            left_out[np.arange(len(words)), self._vocabulary.encode(words)] = True
        return np.asarray(left_out)

    def _substitutes(self, word: str, scores: Sequence[NDArray[np.float32]], top: int) -> Substitutes:
        combined, forward, backward = scores
        order = best_rows(combined, top)

        def build(row: int, rank: int) -> Substitute:
            logs = (float(log_probabilities[row]) for log_probabilities in (combined, forward, backward))
            return Substitute(self._vocabulary.tokens[row], rank, *np.exp([*logs]).tolist())

        [own_row] = self._vocabulary.encode([word])
        own = None
        if combined[own_row] > -np.inf:
            is_before = np.arange(len(combined)) < own_row
            higher = (combined > combined[own_row]) | (is_before & (combined == combined[own_row]))
            own = build(own_row, 1 + int(higher.sum()))
        return Substitutes(word, own, tuple(build(int(row), rank) for rank, row in enumerate(order, start=1)))


def best_rows(scores: NDArray[np.float32], top: int) -> NDArray[np.int64]:
    """Return the `top` rows with the highest finite scores, ties in their original order, int64, shape (n,)."""
    count = min(top, int(np.count_nonzero(scores > -np.inf)))
    if not count:
        return np.empty(0, np.int64)
    falling = -scores
    # Sort only the rows that score at least as high as the last one to return.
    rows = np.flatnonzero(falling <= np.partition(falling, count - 1)[count - 1])
    return np.asarray(rows[np.argsort(falling[rows], kind="stable")[:count]])


def log_softmax(scores: Floats) -> Floats:
    """Return the logs of the softmax of each row of scores."""
    shifted = scores - scores.max(axis=-1, keepdims=True)
    sums: Floats = np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return np.asarray(shifted - sums)


def zipf_log_prior(num_tokens: int) -> Floats:
    """Return the log of each row's frequency by Zipf's law, as in sampled softmax, float32, shape (V,)."""
    rows = np.arange(num_tokens, dtype=np.float64)
    return np.asarray(np.log(np.log1p(1 / (rows + 1)) / np.log(num_tokens + 1)), np.float32)


def combine(forward: Floats, backward: Floats, penalty: Floats) -> Floats:
    """Add both directions' log probabilities, (N, V), subtract a penalty and normalise; special tokens get -inf."""
    scores = forward + backward - penalty
    scores[:, : len(SPECIALS)] = -np.inf
    return log_softmax(scores)


def check_places(places: Sequence[Place]) -> None:
    """Raise ElmoZhError if a position is outside its sentence."""
    for tokens, position in places:
        if not 0 <= position < len(tokens):
            raise ElmoZhError.unexpected(f"position {position}", f"0<=N<={len(tokens) - 1}")
