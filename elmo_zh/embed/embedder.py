"""ElmoEmbedder: from sentences to one array of vectors per sentence."""

import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from operator import index
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from elmo_zh.bundle.find_bundle import find_bundle
from elmo_zh.bundle.read import Bundle, load_bundle
from elmo_zh.checks import (
    Place,
    check_arguments,
    check_choice,
    check_list,
    check_strings,
    check_token_sentences,
    check_tokens,
    check_top,
)
from elmo_zh.choices import DEVICES, RANKINGS
from elmo_zh.config import EmbedConfig
from elmo_zh.embed.sentence_vectors import (
    EmbeddedSentence,
    SentenceVectors,
    Vectors,
)
from elmo_zh.embed.substitutes import SubstituteFinder, Substitutes
from elmo_zh.embed.unknown_rate import UnknownWatch
from elmo_zh.errors import ElmoZhError
from elmo_zh.reader.bilm import BatchReader, LayerState
from elmo_zh.run.files import file_digest
from elmo_zh.run.reporter import Reporter
from elmo_zh.text.normalise import split_segmented
from elmo_zh.text.preparation import TextPreparation, TokenisedLine, find_tokens
from elmo_zh.text.segmenters import split_tokens
from elmo_zh.text.sentences import iter_windows
from elmo_zh.vocabulary.vocabulary import UNKNOWN_ID

# What NVIDIA's driver creates on Linux, and on Linux within Windows.
_DRIVER_FILES = ("/dev/nvidiactl", "/dev/dxg")


class ElmoEmbedder:
    """Computes contextual vectors of sentences.

        embedder = ElmoEmbedder.load("runs/latest/model")
        [vectors] = embedder.embed(["今天天气很好"])  # float32, (L + 1, n, 2P)

    Unless the embedder is stateful, every sentence starts from the same state (zeros, or the bundle's warm state), so
    its vectors depend only on the sentence. A stateful embedder carries the state from each sentence to the next, as
    the original programs do.

    Threads can share an embedder; they take turns. It can be pickled, for example for the workers of a data loader: the
    copy loads the bundle again from its folder, on the same kind of device, and refuses a different bundle there.

    Attributes:
        bundle: The model and everything that belongs to it.
        device: The kind of device used: cpu or cuda.
        precision: Precision of the matrix products: float32, bfloat16 or int8.
        unknown: Input for a word outside the vocabulary: unk or backoff.
        dtype: Numeric type of the vectors: float32 or float16.
        batch_tokens: Tokens of a batch; affects speed and memory.
        user_dictionary: File of additional words that the segmenter keeps whole, or None.
        is_stateful: Whether the state is carried from sentence to sentence.
    """

    def __init__(
        self,
        bundle: Bundle,
        device: str = "auto",
        precision: str = "float32",
        *,
        stateful: bool = False,
        batch_tokens: int = 4096,
        unknown: str = "auto",
        dtype: str = "float32",
        user_dictionary: str | Path | None = None,
    ) -> None:
        self.device = _choose_device(device)
        settings = {"precision": precision, "unknown": unknown, "dtype": dtype, "batch_tokens": batch_tokens}
        check_arguments("ElmoEmbedder", EmbedConfig, ElmoZhError, **settings)
        self.bundle = bundle
        self.user_dictionary = None if user_dictionary is None else Path(user_dictionary).absolute()
        self._lock = threading.RLock()
        self._lexicon = bundle.build_lexicon()
        self._preparation: TextPreparation | None = None
        self.precision, self.dtype = precision, dtype
        self.unknown = "backoff" if unknown == "auto" else unknown
        self.batch_tokens, self.is_stateful = batch_tokens, stateful
        if precision == "int8" and self.device != "cpu":
            raise ElmoZhError.needs(f"precision {precision}", "device cpu")
        self._reader = bundle.weights.reader
        self._vectors: SentenceVectors | None = None
        self._finder: SubstituteFinder | None = None
        self._watch = UnknownWatch(bundle)
        self._state = self._reader.zero_state(1)

    @classmethod
    def load(
        cls,
        path: str | Path,
        device: str = "auto",
        precision: str = "float32",
        *,
        stateful: bool = False,
        unknown: str = "auto",
        dtype: str = "float32",
        user_dictionary: str | Path | None = None,
    ) -> "ElmoEmbedder":
        """Load the embedder from a bundle.

        Args:
            path: The folder of the bundle, or the name of an installed model.
            device: auto (a GPU if there is one), cpu or cuda.
            precision: Precision of the matrix products: float32; or bfloat16 or int8 (CPUs only), which are faster on
                newer CPUs but less exact.
            stateful: Carry the state from sentence to sentence, as the original programs do, starting from zeros.
            unknown: Input for a word outside the vocabulary, in token mode: auto and backoff compose a vector from the
                known words in it, if any (`Composition`); unk is the vector of <UNK>, as in other programs.
            dtype: Numeric type of the returned vectors: float32; or float16, which takes half the memory.
            user_dictionary: File of words that the segmenter keeps whole, in jieba's format, for a model without one.

        Raises:
            TypeError: If `path` is not a path.
            BundleError: If the folder is not a valid bundle.
            ValueError: If the device has another name.
            ElmoZhError: If another argument has an invalid value, cuda is requested without a GPU, or int8 on a GPU.
        """
        bundle = load_bundle(find_bundle(path))
        settings: dict[str, Any] = {"unknown": unknown, "dtype": dtype, "user_dictionary": user_dictionary}
        return cls(bundle, device, precision, stateful=stateful, **settings)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the folder and the settings, without the weights and the carried state."""
        settings: dict[str, Any] = {"stateful": self.is_stateful, "batch_tokens": self.batch_tokens}
        settings |= {"unknown": self.unknown, "dtype": self.dtype, "user_dictionary": self.user_dictionary}
        place = self.bundle.path.absolute(), self.bundle.digest
        return _load_same, (*place, self.device, self.precision, *settings.items())

    @property
    def num_layers(self) -> int:
        """L + 1, the number of layers: the token layer and the LSTM layers."""
        return self.bundle.shape.num_layers + 1

    def identity(self) -> dict[str, str]:
        """Return what is stored with vectors: digests of the model and any user dictionary, precision, `unknown`."""
        others = {"user_dictionary": file_digest(self.user_dictionary)} if self.user_dictionary else {}
        return {"model_digest": self.bundle.digest, "precision": self.precision, "unknown": self.unknown, **others}

    @property
    def dimension(self) -> int:
        """2P, the length of each vector."""
        return 2 * self.bundle.shape.projection_dim

    def tokens(self, sentence: str) -> list[str]:
        """Return the tokens of a raw sentence, prepared as in training; raise the same errors as `prepare`."""
        return self._text_preparation().tokens(sentence)

    def prepare(self, line: str, *, segmented: bool = False) -> TokenisedLine:
        """Return the tokens of a line and their offsets in it.

            line = embedder.prepare("今天天气很好")
            line.tokens, line.offsets  # n strings; int32, (n, 2)

        Args:
            line: One sentence.
            segmented: The line is segmented, with spaces between tokens; otherwise it is normalised and segmented as in
                training.

        Raises:
            BundleError: If the line is not segmented, and the bundle's segmenter is unknown, not installed or another
                version, or cannot use the given user dictionary.
            TypeError: If the line is not a string.
        """
        if segmented:
            tokens = split_segmented(line, self.bundle.text)
            return TokenisedLine(tokens, find_tokens(line, tokens))
        return self._text_preparation().prepare(line)

    def report_dictionary(self, reporter: Reporter) -> None:
        """Warn about entries of the user dictionary that have no effect."""
        if self.user_dictionary is not None:
            self._text_preparation().report_dictionary(self.user_dictionary, reporter)

    def _text_preparation(self) -> TextPreparation:
        with self._lock:
            if self._preparation is None:
                self._preparation = self.bundle.build_preparation(self.user_dictionary)
            return self._preparation

    def find_unknown(self, tokens: Sequence[str]) -> NDArray[np.bool_]:
        """Return which tokens, looked up as they are, are unknown, bool, shape (n,); none in character mode."""
        tokens = check_tokens(tokens, "find_unknown", "tokens")
        if self.bundle.vocabulary is None or self.bundle.shape.characters is not None:
            return np.zeros(len(tokens), np.bool_)
        return np.equal(self.bundle.vocabulary.encode(tokens), UNKNOWN_ID)

    def count_cut(self, tokens: Sequence[str]) -> int:
        """Return how many tokens are too long for the character slots; 0 in token mode."""
        return sum(self._lexicon.is_cut(token) for token in tokens)

    @overload
    def embed(self, sentences: Iterable[str]) -> list[Vectors]: ...

    @overload
    def embed(self, sentences: Iterable[str], *, return_tokens: Literal[True]) -> list[EmbeddedSentence]: ...

    def embed(self, sentences: Iterable[str], *, return_tokens: bool = False) -> list[Vectors] | list[EmbeddedSentence]:
        """Return the vectors of raw sentences.

        Args:
            sentences: One string per sentence, normalised and segmented as in the model's training, but never split.
            return_tokens: Return tokens and offsets too.

        Returns:
            One array per sentence, in `dtype`, shape (L + 1, n, 2P), where n is its number of tokens, 0 if it is empty;
            with `return_tokens`, an `EmbeddedSentence` for each.

        Raises:
            TypeError: If anything but strings is given, or a single string instead of a list.
            BundleError: If the bundle's segmenter cannot be used, as for `prepare`.

        Warns:
            UnknownWordsWarning: Once per embedder, if the share of unknown words is far higher than in training.
        """
        texts = check_strings(sentences, "embed", each="a string; embed_tokens takes lists of tokens")
        lines = [self.prepare(text) for text in texts]
        self._watch.look([line.tokens for line in lines])
        embedded = self._embed_lines(lines)
        return embedded if return_tokens else [sentence.vectors for sentence in embedded]

    def embed_tokens(self, sentences: Iterable[Sequence[str]]) -> list[Vectors]:
        """Return the vectors of segmented sentences.

        Args:
            sentences: One list of tokens per sentence. Tokens are looked up as they are.

        Returns:
            One array per sentence, in `dtype`, shape (L + 1, n, 2P), where n is its number of tokens.

        Raises:
            TypeError: If a sentence is not a list of tokens, or a token is not a string.

        Warns:
            UnknownWordsWarning: Once per embedder, if the share of unknown words is far higher than in training.
        """
        checked = check_token_sentences(sentences, "embed_tokens")
        self._watch.look(checked)
        return self.compute_vectors(checked)

    def compute_vectors(self, sentences: Sequence[Sequence[str]]) -> list[Vectors]:
        """Compute the vectors of segmented sentences as `embed_tokens` does, but without checks and warnings."""
        with self._lock:
            # The weights are prepared when they are first needed.
            if self._vectors is None:
                settings = self._lexicon, self.batch_tokens, self.unknown, self._batch_reader()
                self._vectors = SentenceVectors(self.bundle.weights, *settings)
            if not self.is_stateful:
                return self._vectors.read(sentences, self.dtype)
            vectors = []
            for tokens in sentences:
                of_sentence, self._state = self._vectors.follow(tokens, self._state)
                vectors.append(of_sentence.astype(self.dtype, copy=False))
            return vectors

    def _batch_reader(self) -> BatchReader | None:
        if (self.precision, self.device) == ("float32", "cpu"):
            return None
        from elmo_zh.model.sentence_reader import build_torch_reader

        return build_torch_reader(self.bundle.bilm, self.precision, self.device)

    def embed_iter(self, sentences: Iterable[str | Sequence[str]]) -> Iterator[EmbeddedSentence]:
        """Yield sentences with their vectors, in order and in bounded memory.

        Reads ahead until there are 2,000 sentences or 20,000 tokens, and computes them together.

        Args:
            sentences: Raw sentences as strings, segmented ones as lists of tokens.

        Yields:
            An `EmbeddedSentence` for each sentence.

        Raises:
            TypeError: If a single string is given, or anything but strings and lists of tokens.
            BundleError: If a sentence is a string, and the bundle's segmenter cannot be used, as for `prepare`.

        Warns:
            UnknownWordsWarning: Once per embedder, if the share of unknown words is far higher than in training.
        """
        for lines in iter_windows(self._iter_prepared(sentences), lambda line: len(line.tokens)):
            self._watch.look([line.tokens for line in lines])
            yield from self._embed_lines(lines)

    def _iter_prepared(self, sentences: object) -> Iterator[TokenisedLine]:
        for place, sentence in enumerate(check_list(sentences, "embed_iter", "sentences", "a list of sentences")):
            if isinstance(sentence, str):
                yield self.prepare(sentence)
            else:
                tokens = check_tokens(sentence, "embed_iter", f"sentences[{place}]", "a string or a list of tokens")
                yield TokenisedLine.of_tokens(tokens)

    def _embed_lines(self, lines: Sequence[TokenisedLine]) -> list[EmbeddedSentence]:
        return [
            EmbeddedSentence(vectors, line.tokens, line.offsets, self.find_unknown(line.tokens))
            for line, vectors in zip(lines, self.compute_vectors([line.tokens for line in lines]), strict=True)
        ]

    def outputs(
        self,
        sentences: Sequence[str] | Sequence[Sequence[str]],
        sequence_len: Sequence[int] | None = None,
        layer_weights: Sequence[float] | None = None,
    ) -> dict[str, NDArray[Any]]:
        """Return the outputs of TensorFlow Hub's ELMo modules, with the same names, for a batch of B sentences.

        Args:
            sentences: Strings of words separated by single spaces (signature "default"), or lists of words, which may
                be padded with anything (signature "tokens").
            sequence_len: Number of words to use from the start of each list; default: all.
            layer_weights: Weights of the L + 1 layers in `elmo`; default: equal weights that sum to 1.

        Returns:
            `word_emb` (B, T, P); `lstm_outputs1`, `lstm_outputs2`, ... (B, T, 2P); `elmo`, the weighted sum of all
            layers (B, T, 2P); `default`, the mean of `elmo` over the words of each sentence (B, 2P); all float32, and
            zero where padded; `sequence_len`, int32 (B,).

        Raises:
            TypeError: If a single string is given, or anything but strings and lists of words.
            ValueError: If `sequence_len` does not fit the sentences, or `layer_weights` the layers.
        """
        expected = "a list of strings or of lists of words"
        tokens: list[list[Any]] = [
            split_tokens(words) if isinstance(words, str) else list(check_list(words, "outputs", "sentences", expected))
            for words in check_list(sentences, "outputs", "sentences", expected)
        ]
        lengths = [len(words) for words in tokens] if sequence_len is None else [int(length) for length in sequence_len]
        if len(lengths) != len(tokens) or any(
            not 0 <= length <= len(words) for length, words in zip(lengths, tokens, strict=True)
        ):
            raise ValueError(f"sequence_len is {lengths}; expected one length per sentence, from 0 to its word count")
        weights = np.full(self.num_layers, 1 / self.num_layers) if layer_weights is None else np.array(layer_weights)
        if weights.shape != (self.num_layers,):
            raise ValueError(f"layer_weights has shape {weights.shape}; expected ({self.num_layers},)")
        cut = check_token_sentences([words[:length] for words, length in zip(tokens, lengths, strict=True)], "outputs")
        self._watch.look(cut)
        layers = np.zeros((self.num_layers, len(tokens), max(lengths, default=0), self.dimension), np.float32)
        for row, vectors in enumerate(self.compute_vectors(cut)):
            layers[:, row, : lengths[row]] = vectors
        elmo = np.tensordot(weights.astype(np.float32), layers, axes=1)
        return {
            "word_emb": layers[0, :, :, : self.dimension // 2],
            **{f"lstm_outputs{number}": layers[number] for number in range(1, self.num_layers)},
            "elmo": elmo,
            "default": elmo.sum(axis=1) / np.maximum(lengths, 1).astype(np.float32)[:, None],
            "sequence_len": np.array(lengths, np.int32),
        }

    def substitutes(
        self,
        tokens: Sequence[str],
        position: int,
        top: int = 20,
        *,
        ranking: str = "pattern",
        with_punctuation: bool = False,
    ) -> Substitutes:
        """Return substitutes for a token in a segmented sentence, using predictions in both directions.

        Args:
            tokens: The tokens of the sentence.
            position: The place of the token to replace, from 0.
            top: How many of the most probable candidates to return.
            ranking: pattern ranks words by how well they go with the token there, joined to it by a conjunction, and by
                the cosine between their softmax rows and the token's; the token itself is left out. slot ranks words by
                how well they fit into the place; the token is not read. `elmo_zh.embed.substitutes` has the formulas.
            with_punctuation: Allow punctuation as a substitute for words too; it can always replace punctuation.

        Returns:
            The candidates with their probabilities; if ranked by slot, the token itself may be among them.

        Raises:
            TypeError: If the tokens are not a list of strings, or the position is not a whole number.
            ValueError: If the ranking is neither pattern nor slot, or `top` is not a whole number of at least 1.
            ElmoZhError: If the position is not in the sentence.
            BundleError: If the bundle has no softmax or no vocabulary.
        """
        return self.substitutes_many([(tokens, position)], top, ranking=ranking, with_punctuation=with_punctuation)[0]

    def substitutes_many(
        self, places: Sequence[Place], top: int = 20, *, ranking: str = "pattern", with_punctuation: bool = False
    ) -> list[Substitutes]:
        """Return the `substitutes` for many pairs of a sentence and a position, which is faster than one by one.

        embedder.substitutes_many([(["我", "吃", "苹果"], 2), (["今天", "很", "热"], 1)], top=5)
        """
        checked = [
            (check_tokens(tokens, "substitutes_many", f"places[{place}]"), index(position))
            for place, (tokens, position) in enumerate(places)
        ]
        check_choice(ranking, RANKINGS, "substitutes_many", "ranking")
        check_top(top, "substitutes_many")
        with self._lock:
            self._finder = self._finder or SubstituteFinder(self.bundle, self.unknown)
            return self._finder.find(checked, top, ranking=ranking, with_punctuation=with_punctuation)

    def reset_state(self) -> None:
        """Reset the state of a stateful embedder to zeros."""
        self._state = self._reader.zero_state(1)

    def state_arrays(self) -> dict[str, Vectors]:
        """Return the state that a stateful embedder carries: output_0, (2, 1, P), cell_0, (2, 1, D), output_1, ..."""
        return {f"{part}_{n}": getattr(layer, part) for n, layer in enumerate(self._state) for part in layer._fields}

    def restore_state(self, arrays: Mapping[str, Vectors]) -> None:
        """Restore a state returned by `state_arrays` of the same model."""
        self._state = [
            LayerState(*(np.array(arrays[f"{part}_{n}"]) for part in layer._fields))
            for n, layer in enumerate(self._state)
        ]


def _load_same(path: Path, digest: str, device: str, precision: str, *settings: tuple[str, Any]) -> ElmoEmbedder:
    return ElmoEmbedder(load_bundle(path, digest), device, precision, **dict(settings))


def _choose_device(name: str) -> str:
    """Return cpu or cuda for a name in `choices.DEVICES`; cpu, and auto without a GPU driver, need no PyTorch."""
    name = str(name)
    check_choice(name, DEVICES, "ElmoEmbedder", "device")
    if name == "cpu" or (name == "auto" and not (find_spec("torch") and any(map(os.path.exists, _DRIVER_FILES)))):
        return "cpu"
    from elmo_zh.model.precision import choose_device

    return choose_device(name).type
