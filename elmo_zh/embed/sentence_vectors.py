"""Fast inference: from segmented sentences to their vectors.

Each distinct sentence is computed once, and so is the token vector of each distinct word. Sentences of similar length
are computed together, without affecting each other.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from elmo_zh.model.batches import build_inputs, iter_length_sorted, pad_sentences
from elmo_zh.model.bilm import BiLM, State
from elmo_zh.model.composition import Composition, parts_of
from elmo_zh.model.kernels.cells import LSTMState
from elmo_zh.model.kernels.execution import with_half_of_the_threads
from elmo_zh.model.precision import FLOAT32, Precision
from elmo_zh.model.sentence_reader import PackedSentences, SentenceReader
from elmo_zh.vocabulary.lexicon import Lexicon
from elmo_zh.vocabulary.vocabulary import BEGIN_ID, END_ID, UNKNOWN_ID

# Rows of <S>, </S> and the first word.
_BEGIN, _END, _FIRST_WORD = 0, 1, 2

Vectors = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class EmbeddedSentence:
    """The vectors of a sentence, with its tokens.

    Attributes:
        vectors: float32, shape (L + 1, n, 2P), where n is the number of tokens.
        tokens: The n tokens.
        offsets: First character of each token in the sentence as given, and the one after its last, int32, shape
            (n, 2). For a sentence given as tokens they refer to the tokens joined by single spaces.
        is_unknown: True for each token outside the vocabulary in token mode, bool, shape (n,).
    """

    vectors: Vectors = field(repr=False)
    tokens: list[str]
    offsets: NDArray[np.int32] = field(repr=False)
    is_unknown: NDArray[np.bool_] = field(repr=False)


# Takes word vectors, (W, P), sentences as rows of these, marks included and longest first, and their states.
# Returns all layers of the M tokens without the marks, (L + 1, M, 2P), on the CPU, and the states afterwards.
BatchReader = Callable[[Tensor, Sequence[NDArray[np.int64]], State], tuple[Tensor, State]]


class SentenceVectors:
    """Computes the vectors of whole sentences with a biLM."""

    def __init__(
        self, bilm: BiLM, lexicon: Lexicon, device: torch.device, precision: Precision, batch_tokens: int, unknown: str
    ) -> None:
        self._bilm, self._batch_tokens = bilm, batch_tokens
        self._read_batch = build_batch_reader(bilm, precision, device)
        self._word_vectors = TokenLayerVectors(bilm, lexicon, precision, unknown)

    @with_half_of_the_threads()
    def read(self, sentences: Sequence[Sequence[str]], dtype: str = "float32") -> list[Vectors]:
        """Return the vectors of each segmented sentence in `dtype`, shape (L + 1, n, 2P); n is 0 if it is empty."""
        shape = self._bilm.shape
        vectors = [np.zeros((shape.num_layers + 1, 0, 2 * shape.projection_dim), dtype) for _ in sentences]
        places: dict[tuple[str, ...], list[int]] = {}
        for place, tokens in enumerate(sentences):
            if tokens:
                places.setdefault(tuple(tokens), []).append(place)
        distinct = list(places)
        word_vectors, numbered = self._word_vectors.number(distinct)
        for batch in iter_length_sorted([len(numbers) for numbers in numbered], self._batch_tokens):
            state = self._bilm.start_state(len(batch))
            layers, _ = self._read_batch(word_vectors, [numbered[index] for index in batch], state)
            start = 0
            for index in batch:
                end = start + len(distinct[index])
                for place in places[distinct[index]]:
                    # A copy, so that no array keeps its whole batch in memory or shares memory with an equal sentence.
                    vectors[place] = layers[:, start:end].numpy().astype(dtype)
                start = end
        return vectors

    @with_half_of_the_threads()
    def follow(self, tokens: Sequence[str], state: State) -> tuple[Vectors, State]:
        """Return the vectors of a sentence that starts from a given state, and the state after it."""
        word_vectors, numbered = self._word_vectors.number([tuple(tokens)])
        layers, after = self._read_batch(word_vectors, numbered, state)
        return layers.numpy(), after


def state_to_arrays(state: State) -> dict[str, Vectors]:
    """Return a state as arrays by name: output_0, cell_0, output_1, ..."""
    return {
        f"{part}_{index}": getattr(layer, part).cpu().numpy()
        for index, layer in enumerate(state)
        for part in ("output", "cell")
    }


def restored_state(state: State, arrays: Mapping[str, Vectors]) -> State:
    """Rebuild a state from the arrays of `state_to_arrays`; raise ValueError unless names and shapes fit `state`."""
    expected = {name: array.shape for name, array in state_to_arrays(state).items()}
    found = {name: np.shape(array) for name, array in arrays.items()}
    for name in dict.fromkeys((*expected, *found)):
        if found.get(name) != expected.get(name):
            shown = [f"shape {each[name]}" if name in each else "no such array" for each in (found, expected)]
            raise ValueError(
                f"restore_state: {name}: found {shown[0]}, expected {shown[1]}. Give what state_arrays() of an embedder"
                " of the same model returned."
            )
    tensors = {name: torch.as_tensor(array).to(state[0].cell, copy=True) for name, array in arrays.items()}
    return [LSTMState(tensors[f"output_{index}"], tensors[f"cell_{index}"]) for index in range(len(state))]


def build_batch_reader(bilm: BiLM, precision: Precision, device: torch.device) -> BatchReader:
    """Return a function that runs the LSTM layers on a batch of sentences, in the fastest way on the device."""
    if device.type != "cpu":
        return partial(_read_on_gpu, bilm, precision, device)
    reader = SentenceReader(bilm, precision)
    return lambda word_vectors, sentences, state: reader.read(word_vectors, PackedSentences.pack(sentences), state)


@torch.no_grad()
def _read_on_gpu(
    bilm: BiLM,
    precision: Precision,
    device: torch.device,
    word_vectors: Tensor,
    sentences: Sequence[NDArray[np.int64]],
    state: State,
) -> tuple[Tensor, State]:
    numbers, mask = (each.pin_memory().to(device, non_blocking=True) for each in pad_sentences(sentences))
    token_vectors = functional.embedding(numbers, word_vectors)
    layers, after = bilm.read_sentences(token_vectors, mask, state, precision)
    words = mask.clone()
    words[:, 0] = False
    words[torch.arange(len(words), device=device), mask.sum(dim=1) - 1] = False
    found = layers[:, words]
    there = torch.empty(found.shape, dtype=found.dtype, pin_memory=found.is_cuda)
    return there.copy_(found), after


# Words whose vectors from a character CNN are kept: about 100 MB in a model of the published size.
_MOST_KEPT_WORDS = 50_000


class TokenLayerVectors:
    """Computes the token layer's vectors, first for <S> and </S>, then for words.

    In token mode the input for a word outside the vocabulary is the vector of <UNK>. With `unknown` = backoff it is
    composed from the vectors of the known words in it (`Composition`), if it has any. For int8, the products of a
    character CNN are float32.
    """

    def __init__(self, bilm: BiLM, lexicon: Lexicon, precision: Precision = FLOAT32, unknown: str = "unk") -> None:
        self._bilm, self._lexicon, self._precision = bilm, lexicon, precision
        self._backs_off = unknown == "backoff" and bilm.shape.characters is None
        self._composition: Composition | None = None
        self._marks = self._encode(lexicon.without_other_words(), [BEGIN_ID, END_ID])
        # Row of each word that the character CNN has already computed. The table is uninitialised memory, so only rows
        # in use take up space.
        self._kept: dict[str, int] = {}
        self._table = self._marks[:0]

    def __call__(self, words: Sequence[str]) -> Tensor:
        """Return the vectors of <S>, </S> and then W distinct words, float32, shape (2 + W, P)."""
        look_up = self._look_up if self._bilm.shape.characters is None else self._remember
        return torch.cat([self._marks, look_up(words)])

    def number(self, sentences: Sequence[tuple[str, ...]]) -> tuple[Tensor, list[NDArray[np.int64]]]:
        """Return the vectors of all distinct words, and each sentence, with <S> and </S>, as row numbers in them."""
        rows: dict[str, int] = {}
        numbered = []
        for tokens in sentences:
            numbers = np.empty(len(tokens) + 2, np.int64)
            numbers[0], numbers[-1] = _BEGIN, _END
            numbers[1:-1] = [rows.setdefault(token, len(rows) + _FIRST_WORD) for token in tokens]
            numbered.append(numbers)
        return self(list(rows)), numbered

    def _look_up(self, words: Sequence[str]) -> Tensor:
        ids = self._lexicon.encode(words)
        vectors = self._encode(self._lexicon, ids)
        if self._backs_off:
            vocabulary, places = self._lexicon.vocabulary, {word: place for place, word in enumerate(words)}
            unknown = (word for word, row in zip(words, ids, strict=True) if row == UNKNOWN_ID)
            for word, parts in parts_of(vocabulary, unknown).items():
                # Learned only if there is such a word.
                self._composition = self._composition or Composition.learn(self._bilm.token_table.weight, vocabulary)
                vectors[places[word]] = self._composition.row(parts).to(vectors)
        return vectors

    def _remember(self, words: Sequence[str]) -> Tensor:
        new = [word for word in words if word not in self._kept]
        if len(self._kept) + len(new) > len(self._table):
            # The table is full or does not exist: start over with these words.
            new = list(words)
            self._kept.clear()
            if len(new) > len(self._table):
                self._table = self._marks.new_empty(max(len(new), _MOST_KEPT_WORDS), self._marks.shape[1])
        if new:
            lexicon, first = self._lexicon.without_other_words(), len(self._kept)
            self._table[first : first + len(new)] = self._encode(lexicon, lexicon.encode(new))
            self._kept.update((word, first + place) for place, word in enumerate(new))
        return self._table[torch.tensor([self._kept[word] for word in words], dtype=torch.int64)]

    @torch.no_grad()
    def _encode(self, lexicon: Lexicon, ids: Sequence[int]) -> Tensor:
        device = self._bilm.lstm_layers()[0].bias.device
        inputs = build_inputs(lexicon, torch.tensor(ids, dtype=torch.int64)).to(device)
        return self._bilm.encode_tokens(inputs, self._precision)
