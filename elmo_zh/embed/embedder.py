"""ElmoEmbedder: sentences in, one array of vectors a sentence out."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from elmo_zh.batches import build_inputs, iter_length_sorted, mark_sentence, pad_sentences
from elmo_zh.bundle.read import Bundle, load_bundle
from elmo_zh.errors import ElmoZhError
from elmo_zh.lexicon import Lexicon
from elmo_zh.model.device import choose_device
from elmo_zh.text.alignment import TokenisedLine, find_tokens
from elmo_zh.text.preparation import TextPreparation
from elmo_zh.text.segmenters import split_tokens
from elmo_zh.vocabulary import UNKNOWN_ID

PRECISIONS = {"float32": None, "bfloat16": torch.bfloat16}


class ElmoEmbedder:
    """Turns sentences into contextual vectors.

    Every sentence starts from the same state (zeros, or the bundle's warm state), so nothing but itself matters. A
    stateful embedder does as the original programs do: it carries the state from each sentence to the next.

    Attributes:
        bundle: The model and all that belongs to it.
        batch_tokens: Tokens computed together, padding included; changes speed and memory only.
        is_stateful: Whether the state is carried.
    """

    def __init__(
        self,
        bundle: Bundle,
        device: str = "auto",
        precision: str = "float32",
        *,
        stateful: bool = False,
        batch_tokens: int = 4096,
    ) -> None:
        if precision not in PRECISIONS:
            raise ElmoZhError(f"precision {precision}: expected {' or '.join(PRECISIONS)}.")
        self.bundle = bundle
        self.batch_tokens = batch_tokens
        self.is_stateful = stateful
        self._device = choose_device(device)
        self._bilm = bundle.bilm
        self._bilm.to(self._device)
        self._product_dtype = PRECISIONS[precision]
        self._lexicon = bundle.build_lexicon()
        self._preparation: TextPreparation | None = None
        self._state = self._bilm.zero_state(1)

    @classmethod
    def load(
        cls, path: str | Path, device: str = "auto", precision: str = "float32", *, stateful: bool = False
    ) -> "ElmoEmbedder":
        """Load a bundle.

        Args:
            path: Its folder.
            device: auto (a GPU if there is one), cpu or cuda.
            precision: Of matrix products: float32, or bfloat16 (faster on newer processors, less exact).
            stateful: Carry the state from sentence to sentence, as the original programs do, starting from zeros.

        Raises:
            BundleError: If the folder is not a sound bundle.
        """
        return cls(load_bundle(Path(path)), device, precision, stateful=stateful)

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
            BundleError: If that segmenter is not installed here, or not known.
        """
        return self._text_preparation().tokens(sentence)

    def prepare(self, line: str, *, segmented: bool = False) -> TokenisedLine:
        """Return a line's tokens, and where they stand in it.

        Args:
            line: One sentence.
            segmented: Whether its tokens are split by U+0020 already; else it is normalised and segmented.

        Raises:
            BundleError: If the segmenter is not installed here, or not known.
        """
        if segmented:
            tokens = split_tokens(line)
            return TokenisedLine(tokens, find_tokens(line, tokens))
        return self._text_preparation().prepare(line)

    def _text_preparation(self) -> TextPreparation:
        if self._preparation is None:
            self._preparation = self.bundle.build_preparation()
        return self._preparation

    def find_unknown(self, tokens: Sequence[str]) -> NDArray[np.bool_]:
        """Return which tokens the model cannot tell apart, shape (n,): outside the vocabulary in token mode."""
        if self.bundle.vocabulary is None or self._bilm.shape.characters is not None:
            return np.zeros(len(tokens), np.bool_)
        return np.array(self.bundle.vocabulary.encode(tokens), np.int64) == UNKNOWN_ID

    def embed(self, sentences: Sequence[str]) -> list[NDArray[np.float32]]:
        """Return the vectors of raw sentences, each float32 of shape (L + 1, n, 2P), n its number of tokens."""
        return self.embed_tokens([self.tokens(sentence) for sentence in sentences])

    def embed_tokens(self, sentences: Sequence[Sequence[str]]) -> list[NDArray[np.float32]]:
        """Return the vectors of segmented sentences, each (L + 1, n, 2P) float32; words are looked up as given."""
        lexicon = self._lexicon.without_other_words()
        marked = [mark_sentence(lexicon.encode(tokens)) for tokens in sentences]
        if self.is_stateful:
            # Empty sentences are read as well: two marks, which move the state, as in bilm-tf.
            return [self._embed_batch(lexicon, [sentence])[0] for sentence in marked]
        empty = np.zeros((self.num_layers, 0, self.dimension), np.float32)
        vectors = [empty for _ in sentences]
        filled = [index for index, tokens in enumerate(sentences) if tokens]
        for batch in iter_length_sorted([len(marked[index]) for index in filled], self.batch_tokens):
            indexes = [filled[place] for place in batch]
            found = self._embed_batch(lexicon, [marked[index] for index in indexes])
            for index, vector in zip(indexes, found, strict=True):
                vectors[index] = vector
        return vectors

    @torch.no_grad()
    def _embed_batch(self, lexicon: Lexicon, marked: Sequence[NDArray[np.int64]]) -> list[NDArray[np.float32]]:
        # Embedders may share a bundle, and its biLM with it.
        self._bilm.set_product_dtype(self._product_dtype)
        ids, mask = pad_sentences(marked)
        token_vectors = self._bilm.token_layer(build_inputs(lexicon, ids).to(self._device))
        state = self._state if self.is_stateful else self._bilm.start_state(len(marked))
        activations, after = self._bilm.read_sentences(token_vectors, mask.to(self._device), state)
        if self.is_stateful:
            self._state = after
        arrays = activations.cpu().numpy()
        # Copies, so that one sentence kept does not keep its whole batch.
        return [arrays[:, row, 1 : len(sentence) - 1].copy() for row, sentence in enumerate(marked)]

    def outputs(
        self,
        sentences: Sequence[str] | Sequence[Sequence[str]],
        sequence_len: Sequence[int] | None = None,
        layer_weights: Sequence[float] | None = None,
    ) -> dict[str, NDArray[Any]]:
        """Return what TensorFlow Hub's elmo modules return, under the same names, for a batch of B sentences.

        Args:
            sentences: Strings of words split by spaces (signature "default"), or lists of words, which may be padded
                with anything (signature "tokens").
            sequence_len: Of lists: how many of each one's words count; default all.
            layer_weights: Weights of the L + 1 layers in `elmo`; default all equal.

        Returns:
            `word_emb` (B, T, P); `lstm_outputs1`, `lstm_outputs2`, ... (B, T, 2P); `elmo`, the weighted sum of all
            layers (B, T, 2P); `default`, the mean of `elmo` over a sentence's words (B, 2P); all float32 and zero
            where padded; `sequence_len`, int32 (B,).

        Raises:
            ElmoZhError: If the lengths or weights do not fit.
        """
        tokens = [split_tokens(words) if isinstance(words, str) else list(words) for words in sentences]
        if sequence_len is not None:
            lengths = [int(length) for length in sequence_len]
            if len(lengths) != len(tokens) or any(
                not 0 <= length <= len(words) for length, words in zip(lengths, tokens, strict=True)
            ):
                raise ElmoZhError(f"sequence_len {lengths} does not fit {len(tokens)} sentences of words.")
            tokens = [words[:length] for words, length in zip(tokens, lengths, strict=True)]
        weights = np.full(self.num_layers, 1 / self.num_layers) if layer_weights is None else np.array(layer_weights)
        if weights.shape != (self.num_layers,):
            raise ElmoZhError(f"layer_weights has shape {weights.shape}, expected ({self.num_layers},).")
        lengths = [len(words) for words in tokens]
        shape = (self.num_layers, len(tokens), max(lengths, default=0), self.dimension)
        layers = np.zeros(shape, np.float32)
        for row, vectors in enumerate(self.embed_tokens(tokens)):
            layers[:, row, : lengths[row]] = vectors
        elmo = np.tensordot(weights.astype(np.float32), layers, axes=1)
        mean = elmo.sum(axis=1) / np.maximum(lengths, 1).astype(np.float32)[:, None]
        lstm_outputs = {f"lstm_outputs{number}": layers[number] for number in range(1, self.num_layers)}
        word_emb = layers[0, :, :, : self.dimension // 2]
        return {
            "word_emb": word_emb,
            **lstm_outputs,
            "elmo": elmo,
            "default": mean,
            "sequence_len": np.array(lengths, np.int32),
        }

    def reset_state(self) -> None:
        """Let a stateful embedder start from zeros again."""
        self._state = self._bilm.zero_state(1)

    def state_arrays(self) -> dict[str, NDArray[np.float32]]:
        """Return the state that a stateful embedder carries, by name."""
        return {
            f"{part}_{index}": getattr(layer, part).cpu().numpy()
            for index, layer in enumerate(self._state)
            for part in ("output", "cell")
        }

    def restore_state(self, arrays: Mapping[str, NDArray[np.float32]]) -> None:
        """Go on from what `state_arrays` returned."""
        self.reset_state()
        for index, layer in enumerate(self._state):
            layer.output.copy_(torch.from_numpy(arrays[f"output_{index}"]))
            layer.cell.copy_(torch.from_numpy(arrays[f"cell_{index}"]))

    def count_unknown(self, tokens: Sequence[str]) -> int:
        """Return how many tokens the model cannot tell apart: outside the vocabulary in token mode, else none."""
        if self.bundle.vocabulary is None or self._bilm.shape.characters is not None:
            return 0
        return self.bundle.vocabulary.encode(tokens).count(UNKNOWN_ID)

    def count_cut(self, tokens: Sequence[str]) -> int:
        """Return how many tokens are longer than the character slots; none in token mode."""
        return sum(self._lexicon.is_cut(token) for token in tokens)


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
