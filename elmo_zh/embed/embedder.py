"""ElmoEmbedder: sentences in, one array of vectors a sentence out."""

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from elmo_zh.bundle.read import Bundle, load_bundle
from elmo_zh.embed.hub_outputs import hub_outputs
from elmo_zh.embed.sentence_vectors import SentenceVectors
from elmo_zh.embed.word_vectors import UNKNOWN_WAYS
from elmo_zh.errors import BundleError, ElmoZhError
from elmo_zh.model.precision import DEVICES, PRECISIONS, choose_device
from elmo_zh.text.alignment import TokenisedLine, find_tokens
from elmo_zh.text.preparation import TextPreparation
from elmo_zh.text.segmenters.registry import split_tokens
from elmo_zh.vocabulary.vocabulary import UNKNOWN_ID

# Of `embed_iter`: enough that sentences of like length meet and words come again, little enough to wait for.
_WINDOW_SENTENCES, _WINDOW_TOKENS = 2000, 20_000

Vectors = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class EmbeddedSentence:
    """A sentence's vectors and what they stand for.

    Attributes:
        vectors: Float32, shape (L + 1, n, 2P), n tokens.
        tokens: The tokens.
        offsets: First character of each in the sentence as it was given and the one after its last, int32, shape
            (n, 2); of a sentence given as tokens, as if one space stood between them.
        is_unknown: Which tokens the model cannot tell apart, bool, shape (n,).
    """

    vectors: Vectors
    tokens: list[str]
    offsets: NDArray[np.int32]
    is_unknown: NDArray[np.bool_]


class ElmoEmbedder:
    """Turns sentences into contextual vectors.

    Every sentence starts from the same state (zeros, or the bundle's warm state), so nothing but itself matters. A
    stateful embedder does as the original programs do: it carries the state from each sentence to the next.

    Threads may share an embedder; they take turns. It can be pickled, as for the workers of a data loader: the copy
    loads the bundle again from its folder, and refuses another one there.

    Attributes:
        bundle: The model and all that belongs to it.
        precision: Of matrix products.
        unknown: What an unknown word reads.
        batch_tokens: Tokens computed together; changes speed and memory only.
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
        unknown: str = "unk",
    ) -> None:
        for name, value, known in (
            ("device", device, DEVICES),
            ("precision", precision, tuple(PRECISIONS)),
            ("unknown", unknown, UNKNOWN_WAYS),
        ):
            if value not in known:
                raise ElmoZhError(f"{name} {value}: expected {', '.join(known[:-1])} or {known[-1]}.")
        self.bundle, self.precision, self.unknown = bundle, precision, unknown
        self.batch_tokens, self.is_stateful = batch_tokens, stateful
        self._device_name, self._device = device, choose_device(device)
        if not PRECISIONS[precision].runs_on(self._device):
            raise ElmoZhError(f"precision {precision} is for processors. On a GPU use bfloat16, or give device cpu.")
        self._bilm = bundle.bilm.to(self._device)
        self._lexicon = bundle.build_lexicon()
        self._preparation: TextPreparation | None = None
        self._vectors: SentenceVectors | None = None
        self._state = self._bilm.zero_state(1)
        self._lock = threading.RLock()

    @classmethod
    def load(
        cls,
        path: str | Path,
        device: str = "auto",
        precision: str = "float32",
        *,
        stateful: bool = False,
        unknown: str = "unk",
    ) -> "ElmoEmbedder":
        """Load a bundle.

        Args:
            path: Its folder.
            device: auto (a GPU if there is one), cpu or cuda.
            precision: Of matrix products: float32; bfloat16 or int8 are faster on newer processors and less exact.
            stateful: Carry the state from sentence to sentence, as the original programs do, starting from zeros.
            unknown: In token mode, what a word outside the vocabulary reads: unk is <UNK>'s vector, as in all other
                programs; backoff is the mean of the vectors of the pieces that the vocabulary knows.

        Raises:
            BundleError: If the folder is not a sound bundle.
            ElmoZhError: If an argument is not one of these.
        """
        return cls(load_bundle(Path(path)), device, precision, stateful=stateful, unknown=unknown)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the folder and the settings, not the weights; a state carried so far is left out."""
        settings = {"stateful": self.is_stateful, "batch_tokens": self.batch_tokens, "unknown": self.unknown}
        return _load_same, (self.bundle.path, self.bundle.digest, self._device_name, self.precision, settings)

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
        with self._lock:
            if self._preparation is None:
                self._preparation = self.bundle.build_preparation()
            return self._preparation

    @overload
    def embed(self, sentences: Iterable[str]) -> list[Vectors]: ...

    @overload
    def embed(self, sentences: Iterable[str], *, return_tokens: Literal[True]) -> list[EmbeddedSentence]: ...

    def embed(self, sentences: Iterable[str], *, return_tokens: bool = False) -> list[Vectors] | list[EmbeddedSentence]:
        """Return the vectors of raw sentences, each float32 of shape (L + 1, n, 2P), n its number of tokens.

        Args:
            sentences: Raw, one string a sentence.
            return_tokens: Return tokens, offsets and which are unknown beside the vectors.

        Raises:
            TypeError: For a single string, whose characters would each be taken for a sentence.
        """
        _require_several(sentences)
        lines = [self.prepare(sentence) for sentence in sentences]
        embedded = self._embed_lines(lines)
        return embedded if return_tokens else [sentence.vectors for sentence in embedded]

    def embed_tokens(self, sentences: Iterable[Sequence[str]]) -> list[Vectors]:
        """Return the vectors of segmented sentences, each (L + 1, n, 2P) float32; words are looked up as given."""
        _require_several(sentences)
        sentences = list(sentences)
        with self._lock:
            # The weights are made ready when they are first needed.
            if self._vectors is None:
                self._vectors = SentenceVectors(
                    self._bilm, self._lexicon, self._device, PRECISIONS[self.precision], self.batch_tokens, self.unknown
                )
            if not self.is_stateful:
                return self._vectors.read(sentences)
            vectors = []
            for tokens in sentences:
                found, self._state = self._vectors.follow(tokens, self._state)
                vectors.append(found)
            return vectors

    def embed_torch(self, sentences: Iterable[str | Sequence[str]]) -> list[Tensor]:
        """Return vectors as tensors on the CPU, each float32 of shape (L + 1, n, 2P).

        Args:
            sentences: Raw ones as strings, segmented ones as lists of tokens.
        """
        return [torch.from_numpy(sentence.vectors) for sentence in self.embed_iter(sentences)]

    def embed_iter(self, sentences: Iterable[str | Sequence[str]]) -> Iterator[EmbeddedSentence]:
        """Yield sentences with their vectors, in order, reading only some thousands ahead.

        Args:
            sentences: Raw ones as strings, segmented ones as lists of tokens.
        """
        _require_several(sentences)
        window: list[TokenisedLine] = []
        num_tokens = 0
        for sentence in sentences:
            line = self.prepare(sentence) if isinstance(sentence, str) else TokenisedLine.of_tokens(sentence)
            window.append(line)
            num_tokens += len(line.tokens)
            if len(window) >= _WINDOW_SENTENCES or num_tokens >= _WINDOW_TOKENS:
                yield from self._embed_lines(window)
                window, num_tokens = [], 0
        yield from self._embed_lines(window)

    def _embed_lines(self, lines: Sequence[TokenisedLine]) -> list[EmbeddedSentence]:
        return [
            EmbeddedSentence(vectors, line.tokens, line.offsets, self.find_unknown(line.tokens))
            for line, vectors in zip(lines, self.embed_tokens(line.tokens for line in lines), strict=True)
        ]

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
        return hub_outputs(self.embed_tokens, self.num_layers, self.dimension, sentences, sequence_len, layer_weights)

    def reset_state(self) -> None:
        """Let a stateful embedder start from zeros again."""
        self._state = self._bilm.zero_state(1)

    def state_arrays(self) -> dict[str, Vectors]:
        """Return the state that a stateful embedder carries, by name."""
        return {
            f"{part}_{index}": getattr(layer, part).cpu().numpy()
            for index, layer in enumerate(self._state)
            for part in ("output", "cell")
        }

    def restore_state(self, arrays: Mapping[str, Vectors]) -> None:
        """Go on from what `state_arrays` returned."""
        self.reset_state()
        for index, layer in enumerate(self._state):
            layer.output.copy_(torch.from_numpy(arrays[f"output_{index}"]))
            layer.cell.copy_(torch.from_numpy(arrays[f"cell_{index}"]))

    def find_unknown(self, tokens: Sequence[str]) -> NDArray[np.bool_]:
        """Return which tokens the model cannot tell apart, shape (n,): outside the vocabulary in token mode."""
        if self.bundle.vocabulary is None or self._bilm.shape.characters is not None:
            return np.zeros(len(tokens), np.bool_)
        return np.equal(self.bundle.vocabulary.encode(tokens), UNKNOWN_ID)

    def count_cut(self, tokens: Sequence[str]) -> int:
        """Return how many tokens are longer than the character slots; none in token mode."""
        return sum(self._lexicon.is_cut(token) for token in tokens)


def _load_same(path: Path, digest: str, device: str, precision: str, settings: Mapping[str, Any]) -> ElmoEmbedder:
    """Load an embedder that was pickled."""
    bundle = load_bundle(path)
    if bundle.digest != digest:
        raise BundleError(f"{path} is not the model that was pickled: {bundle.digest}, expected {digest}.")
    return ElmoEmbedder(bundle, device, precision, **settings)


def _require_several(sentences: object) -> None:
    if isinstance(sentences, str):
        raise TypeError(
            f"a single string was given ({sentences[:20]!r}), but a list of sentences is needed: [sentence]"
        )
