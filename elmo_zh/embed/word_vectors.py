"""Token-layer vectors of words: each distinct word is computed once, and a character CNN's vectors are kept."""

from collections.abc import Sequence

import torch
from torch import Tensor

from elmo_zh.model.batches import build_inputs
from elmo_zh.model.bilm import BiLM
from elmo_zh.model.composition import Composition, parts_of
from elmo_zh.model.precision import FLOAT32, Precision
from elmo_zh.vocabulary.lexicon import Lexicon
from elmo_zh.vocabulary.vocabulary import BEGIN_ID, END_ID, UNKNOWN_ID

# Words whose vectors from a character CNN are kept: about 100 MB in a model of the published size.
_MOST_KEPT_WORDS = 50_000


class WordVectors:
    """Computes the token layer's vectors of words, preceded by those of <S> and </S>."""

    def __init__(self, bilm: BiLM, lexicon: Lexicon, precision: Precision = FLOAT32, unknown: str = "unk") -> None:
        """Prepare the token layer of a biLM.

        Args:
            bilm: The model, on its device.
            lexicon: The ids of the model's words.
            precision: Precision of the products of a character CNN; for int8 they are float32.
            unknown: In token mode, the input for a word outside the vocabulary: unk is the vector of <UNK>; backoff is
                composed of those of the known words in it (`Composition`), or that of <UNK> if it has none.
        """
        self._bilm, self._lexicon, self._precision = bilm, lexicon, precision
        self._backs_off = unknown == "backoff" and bilm.shape.characters is None
        self._composition: Composition | None = None
        self._marks = self._encode(lexicon.without_other_words(), [BEGIN_ID, END_ID])
        # Row of each word that the character CNN has computed already. The table is uninitialised memory, so that only
        # rows in use take up space.
        self._kept: dict[str, int] = {}
        self._table = self._marks[:0]

    def __call__(self, words: Sequence[str]) -> Tensor:
        """Return the vectors of <S>, </S> and then of W distinct words, float32, shape (2 + W, P)."""
        look_up = self._look_up if self._bilm.shape.characters is None else self._remember
        return torch.cat([self._marks, look_up(words)])

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
            # The table is full, or there is none yet: start over with these words.
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
