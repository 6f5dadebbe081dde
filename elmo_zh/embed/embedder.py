"""ElmoEmbedder: sentences in, one array of vectors a sentence out."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.batches import iter_length_sorted, mark_sentence, pad_sentences
from elmo_zh.bundle.read import Bundle, load_bundle
from elmo_zh.errors import ElmoZhError
from elmo_zh.model.device import choose_device
from elmo_zh.text.preparation import TextPreparation
from elmo_zh.vocabulary import UNKNOWN_ID


class ElmoEmbedder:
    """Turns sentences into contextual vectors; every sentence starts from zero state, so nothing else matters.

    Attributes:
        bundle: The model and all that belongs to it.
        batch_tokens: Tokens computed together, padding included; changes speed and memory only.
    """

    def __init__(self, bundle: Bundle, device: str = "auto", batch_tokens: int = 4096) -> None:
        self.bundle = bundle
        self.batch_tokens = batch_tokens
        self._device = choose_device(device)
        self._bilm = bundle.model.bilm
        self._bilm.to(self._device)
        self._preparation: TextPreparation | None = None

    @classmethod
    def load(cls, path: str | Path, device: str = "auto") -> "ElmoEmbedder":
        """Load a bundle.

        Args:
            path: Its folder.
            device: auto (a GPU if there is one), cpu or cuda.

        Raises:
            BundleError: If the folder is not a sound bundle.
        """
        return cls(load_bundle(Path(path)), device)

    @property
    def num_layers(self) -> int:
        """L + 1: the token layer and the LSTM layers."""
        return self._bilm.shape.num_layers + 1

    @property
    def dimension(self) -> int:
        """2P: numbers in each vector."""
        return 2 * self._bilm.shape.projection_dim

    def tokens(self, sentence: str) -> list[str]:
        """Return the tokens of a raw sentence, normalised and segmented as in the model's training.

        Raises:
            BundleError: If that segmenter is not installed here.
        """
        if self._preparation is None:
            self._preparation = self.bundle.build_preparation()
        return self._preparation.tokens(sentence)

    def embed(self, sentences: Sequence[str]) -> list[NDArray[np.float32]]:
        """Return the vectors of raw sentences, each float32 of shape (L + 1, n, 2P), n its number of tokens."""
        return self.embed_tokens([self.tokens(sentence) for sentence in sentences])

    def embed_tokens(self, sentences: Sequence[Sequence[str]]) -> list[NDArray[np.float32]]:
        """Return the vectors of segmented sentences, each (L + 1, n, 2P) float32; words are looked up as given."""
        marked = [mark_sentence(self.bundle.vocabulary.encode(tokens)) for tokens in sentences]
        empty = np.zeros((self.num_layers, 0, self.dimension), np.float32)
        vectors = [empty for _ in sentences]
        filled = [index for index, tokens in enumerate(sentences) if tokens]
        for batch in iter_length_sorted([len(marked[index]) for index in filled], self.batch_tokens):
            indexes = [filled[place] for place in batch]
            ids, mask = pad_sentences([marked[index] for index in indexes])
            activations = self._bilm.layer_activations(ids.to(self._device), mask.to(self._device)).cpu().numpy()
            for row, index in enumerate(indexes):
                # A copy, so that one sentence kept does not keep its whole batch.
                vectors[index] = activations[:, row, 1 : len(marked[index]) - 1].copy()
        return vectors

    def count_unknown(self, tokens: Sequence[str]) -> int:
        """Return how many tokens are outside the vocabulary."""
        return self.bundle.vocabulary.encode(tokens).count(UNKNOWN_ID)


def check_layers(layers: str, num_layers: int) -> None:
    """Raise ElmoZhError unless `layers` is all, average, top or the number of one of `num_layers` layers."""
    if layers in ("all", "average", "top") or (layers.isdecimal() and int(layers) < num_layers):
        return
    raise ElmoZhError(f"--layers {layers}: expected all, average, top or a number from 0 to {num_layers - 1}.")


def select_layers(vectors: NDArray[Any], layers: str) -> NDArray[Any]:
    """Return all layers as they are, shape (L + 1, n, 2P), or their average or one of them, shape (n, 2P)."""
    if layers == "all":
        return vectors
    if layers == "average":
        return np.asarray(vectors.mean(axis=0))
    return np.asarray(vectors[-1 if layers == "top" else int(layers)])
