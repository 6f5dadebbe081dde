"""Vectors of sentences from a biLM that is trained together with the network of a task, instead of a cache.

The layers thaw one by one, the top one first, an epoch each (Howard and Ruder 2018, gradual unfreezing): in the first
epoch only the network learns, in the second also the top LSTM layer, and so on down to the token layer.
"""

import copy
from collections.abc import Iterable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from elmo_zh.bundle.read import Bundle
from elmo_zh.model.batches import build_inputs, mark_sentence, pad_sentences
from elmo_zh.model.bilm import BiLM
from elmo_zh.tasks.vector_cache import Sentence, number_rows, rows_of


class LiveVectors:
    """Computes the vectors of sentences anew for each batch, with gradients where layers are thawed.

    Attributes:
        bilm: A copy of the bundle's biLM, on the CPU; it is changed by training.
    """

    def __init__(self, bundle: Bundle, sentences: Iterable[Sentence]) -> None:
        """Copy the biLM of a bundle, and number the tokens of all sentences."""
        self.bilm: BiLM = copy.deepcopy(bundle.bilm).cpu()
        if self.bilm.shape.characters is None:
            # The optimiser and the clipping of gradients need dense ones.
            self.bilm.token_table.has_sparse_gradient = False
        self._original = {name: value.clone() for name, value in self.bilm.state_dict().items()}
        lexicon = bundle.build_lexicon()
        self._lexicon = lexicon
        self._first_rows = number_rows(sentences)
        self._starts = np.array(list(self._first_rows.values()), np.int64)
        self._ids = [mark_sentence(lexicon.encode(tokens)) for tokens in self._first_rows]

    def reset(self) -> None:
        """Put the weights of the bundle back."""
        self.bilm.load_state_dict(self._original)

    def thaw(self, epoch: int) -> None:
        """Let those layers learn that are thawed in an epoch, counted from 1."""
        layers: list[nn.Module] = [*reversed(self.bilm.lstm_layers()), self.bilm.token_layer]
        for number, layer in enumerate(layers):
            layer.requires_grad_(number < epoch - 1)

    def rows(self, sentences: Iterable[Sentence]) -> NDArray[np.int64]:
        """Return the rows of the tokens of sentences, int64, shape (m,)."""
        return rows_of(sentences, self._first_rows)

    def take(self, rows: NDArray[np.int64]) -> Tensor:
        """Return the vectors of rows of shape (B, T), float32, shape (L + 1, B, T, 2P); those of row 0 are zero."""
        shape = self.bilm.shape
        there = rows > 0
        if not there.any():
            return torch.zeros(shape.num_layers + 1, *rows.shape, 2 * shape.projection_dim)
        numbers = np.searchsorted(self._starts, rows[there], "right") - 1
        used, sentence_of = np.unique(numbers, return_inverse=True)
        layers = self._compute([self._ids[number] for number in used])
        # The first token of a sentence comes after <S>.
        places = rows[there] - self._starts[numbers] + 1
        found = layers.new_zeros(len(layers), *rows.shape, layers.shape[-1])
        found[:, torch.from_numpy(there)] = layers[:, torch.from_numpy(sentence_of), torch.from_numpy(places)]
        return found

    def _compute(self, sentences: list[NDArray[np.int64]]) -> Tensor:
        """Return the layers of sentences with their marks, shape (L + 1, S, T + 2, 2P)."""
        learns = torch.is_grad_enabled() and any(each.requires_grad for each in self.bilm.parameters())
        with torch.set_grad_enabled(learns):
            ids, mask = pad_sentences(sentences)
            token_vectors = self.bilm.encode_tokens(build_inputs(self._lexicon, ids))
            return self.bilm.read_sentences(token_vectors, mask, self.bilm.start_state(len(mask)))[0]
