"""ElmoEmbedder: from sentences to one array of vectors per sentence."""

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

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
)
from elmo_zh.choices import RANKINGS
from elmo_zh.config import EmbedConfig
from elmo_zh.embed.device import choose_device
from elmo_zh.embed.hub_outputs import hub_outputs
from elmo_zh.embed.sentence_vectors import (
    EmbeddedSentence,
    SentenceVectors,
    Vectors,
    restored_state,
    state_to_arrays,
)
from elmo_zh.embed.substitutes import SubstituteFinder, Substitutes
from elmo_zh.embed.unknown_rate import TokenForms, UnknownWatch
from elmo_zh.errors import ElmoZhError
from elmo_zh.language import _
from elmo_zh.run.files import file_digest
from elmo_zh.run.reporter import Reporter
from elmo_zh.text.normalise import split_segmented
from elmo_zh.text.preparation import TextPreparation, TokenisedLine, find_tokens
from elmo_zh.text.sentences import iter_windows
from elmo_zh.vocabulary.vocabulary import UNKNOWN_ID

if TYPE_CHECKING:
    from torch import Tensor

# Assumed length of a sentence, to guess how many fit into a batch.
_USUAL_SENTENCE_TOKENS = 32


class ElmoEmbedder:
    """Computes contextual vectors of sentences.

        embedder = ElmoEmbedder.load("runs/latest/model")
        [vectors] = embedder.embed(["今天天气很好"])  # float32, (L + 1, n, 2P)

    Every sentence starts from the same state (zeros, or the bundle's warm state), so its vectors depend only on the
    sentence. A stateful embedder carries the state from each sentence to the next, as the original programs do.

    Threads can share an embedder; they take turns. It can be pickled, for example for the workers of a data loader: the
    copy loads the bundle again from its folder, on the same kind of device, and refuses a different bundle there.

    Attributes:
        bundle: The model and everything that belongs to it.
        device: The kind of device used: cpu or cuda.
        precision: Precision of the matrix products: float32, bfloat16 or int8.
        unknown: Input for a word outside the vocabulary: unk or backoff.
        dtype: Numeric type of the vectors: float32 or float16.
        batch_tokens: Tokens computed together; affects only speed and memory.
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
        self.device = choose_device(device)
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
            raise ElmoZhError(
                _("precision {precision} works only on CPUs. Use bfloat16 on GPUs, or set device to cpu.").format(
                    precision=precision
                )
            )
        self._reader = bundle.weights.reader
        self._vectors: SentenceVectors | None = None
        self._finder: SubstituteFinder | None = None
        self._forms: TokenForms | None = None
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
            unknown: Input for a word outside the vocabulary, in token mode: auto and backoff compose it from the known
                words in it (`Composition`); unk is the vector of <UNK>, as in all other programs.
            dtype: Numeric type of the returned vectors: float32; or float16, which takes half the memory.
            user_dictionary: File of words that the segmenter keeps whole, in jieba's format, for a model without one.

        Raises:
            TypeError: If the path is missing.
            BundleError: If the folder is not a valid bundle.
            ElmoZhError: If an argument has an invalid value, or int8 is requested on a GPU.
        """
        bundle = load_bundle(find_bundle(path))
        chosen: dict[str, Any] = {"unknown": unknown, "dtype": dtype, "user_dictionary": user_dictionary}
        return cls(bundle, device, precision, stateful=stateful, **chosen)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the folder and the settings, without the weights and the carried state."""
        settings: dict[str, Any] = {"stateful": self.is_stateful, "batch_tokens": self.batch_tokens}
        settings |= {"unknown": self.unknown, "dtype": self.dtype, "user_dictionary": self.user_dictionary}
        place = self.bundle.path.absolute(), self.bundle.digest
        return _load_same, (*place, self.device, self.precision, *settings.items())

    def __repr__(self) -> str:
        return (
            f"<ElmoEmbedder of {self.bundle.path}: {self.num_layers} layers, dimension {self.dimension}, {self.device}>"
        )

    @property
    def num_layers(self) -> int:
        """L + 1, the number of layers: the token layer and the LSTM layers."""
        return self.bundle.shape.num_layers + 1

    def identity(self) -> dict[str, str]:
        """Return all that the vectors depend on except the text: model, precision, `unknown` and user dictionary."""
        own = {"user_dictionary": file_digest(self.user_dictionary)} if self.user_dictionary else {}
        return {"model_digest": self.bundle.digest, "precision": self.precision, "unknown": self.unknown, **own}

    def precision_advice(self) -> str:
        """Explain why bfloat16 is no faster than float32 on this machine; return "" if it is faster or not in use."""
        if self.precision != "bfloat16":
            return ""
        import torch

        from elmo_zh.model.precision_choice import advise_against

        num_rows = max(1, self.batch_tokens // _USUAL_SENTENCE_TOKENS)
        return advise_against(torch.device(self.device), self.bundle.shape, num_rows)

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
            segmented: Split the line at white space; otherwise it is normalised and segmented as in the training.

        Raises:
            BundleError: If the bundle's segmenter is unknown or not installed.
            TypeError: If the line is not a string.
        """
        if segmented:
            tokens = split_segmented(line, self.bundle.text)
            return TokenisedLine(tokens, find_tokens(line, tokens))
        return self._text_preparation().prepare(line)

    def report_dictionary(self, reporter: Reporter) -> None:
        """Warn of the entries of the user dictionary that have no effect."""
        if self.user_dictionary is not None:
            self._text_preparation().report_dictionary(self.user_dictionary, reporter)

    def _text_preparation(self) -> TextPreparation:
        with self._lock:
            if self._preparation is None:
                self._preparation = self.bundle.build_preparation(self.user_dictionary)
            return self._preparation

    def find_unknown(self, tokens: Sequence[str]) -> NDArray[np.bool_]:
        """Return which tokens are outside the vocabulary.

        Args:
            tokens: The tokens of one sentence, looked up as they are.

        Returns:
            True for each token outside the vocabulary, bool, shape (n,); all False in character mode.

        Raises:
            TypeError: If the tokens are not a list of strings.
        """
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
            return_tokens: Return an `EmbeddedSentence` for each sentence, with its tokens and their offsets.

        Returns:
            One array per sentence, in `dtype`, shape (L + 1, n, 2P), where n is its number of tokens, 0 if it is empty.

        Raises:
            TypeError: If anything but strings is given, or a single string instead of a list.
            BundleError: If the bundle's segmenter is unknown or not installed.

        Warns:
            UnknownWordsWarning: Once per embedder, if the share of unknown words is far higher than in training.
        """
        texts = check_strings(sentences, "embed", each="a string; embed_tokens takes lists of tokens")
        lines = [self.prepare(text) for text in texts]
        self._watch.look([line.tokens for line in lines])
        embedded = self._embed_lines(lines)
        return embedded if return_tokens else [sentence.vectors for sentence in embedded]

    def embed_tokens(self, sentences: Iterable[Sequence[str]], *, normalise: bool = False) -> list[Vectors]:
        """Return the vectors of segmented sentences.

        Args:
            sentences: One list of tokens per sentence. Tokens are looked up as given.
            normalise: Normalise each token as in the model's training, and look up punctuation of the other width
                where the model knows only that, such as ， for an ASCII comma.

        Returns:
            One array per sentence, in `dtype`, shape (L + 1, n, 2P), where n is its number of tokens.

        Raises:
            TypeError: If a sentence is not a list of tokens, or a token is not a string.

        Warns:
            UnknownWordsWarning: Once per embedder, if the share of unknown words is far higher than in training; and
                once if some words would be known if normalised.
        """
        return self._embed_checked(sentences, "embed_tokens", normalise=normalise)

    def _embed_checked(self, sentences: object, call: str, *, normalise: bool = False) -> list[Vectors]:
        checked = check_token_sentences(sentences, call)
        self._forms = self._forms or TokenForms(self.bundle)
        if normalise:
            checked = [[self._forms.known_form(token) for token in tokens] for tokens in checked]
        elif call == "embed_tokens":
            self._forms.warn_of_others(checked, stacklevel=4)
        self._watch.look(checked, stacklevel=4)
        return self.compute_vectors(checked)

    def compute_vectors(self, sentences: Sequence[Sequence[str]]) -> list[Vectors]:
        """Compute the vectors of segmented sentences as `embed_tokens` does, but without checks and warnings."""
        with self._lock:
            # The weights are prepared when they are first needed.
            if self._vectors is None:
                self._vectors = self._build_vectors()
            if not self.is_stateful:
                return self._vectors.read(sentences, self.dtype)
            vectors = []
            for tokens in sentences:
                found, self._state = self._vectors.follow(tokens, self._state)
                vectors.append(found.astype(self.dtype, copy=False))
            return vectors

    def _build_vectors(self) -> SentenceVectors:
        read_batch = None
        if (self.precision, self.device) != ("float32", "cpu"):
            from elmo_zh.embed.torch_reader import build_torch_reader

            read_batch = build_torch_reader(self.bundle.bilm, self.precision, self.device)
        return SentenceVectors(self.bundle.weights, self._lexicon, self.batch_tokens, self.unknown, read_batch)

    def embed_torch(self, sentences: Iterable[str | Sequence[str]]) -> "list[Tensor]":
        """Return the vectors of sentences as tensors.

        Args:
            sentences: Raw sentences as strings, segmented ones as lists of tokens.

        Returns:
            One tensor per sentence, on the CPU, in `dtype`, shape (L + 1, n, 2P), where n is its number of tokens.

        Raises:
            TypeError: If a single string is given, or anything but strings and lists of tokens.

        Warns:
            UnknownWordsWarning: Once per embedder, if the share of unknown words is far higher than in training.
        """
        import torch

        return [torch.from_numpy(sentence.vectors) for sentence in self._iter_embedded(sentences, "embed_torch")]

    def embed_iter(self, sentences: Iterable[str | Sequence[str]]) -> Iterator[EmbeddedSentence]:
        """Yield sentences with their vectors, in order and in bounded memory.

        Reads ahead until there are 2,000 sentences or 20,000 tokens, and computes them together.

        Args:
            sentences: Raw sentences as strings, segmented ones as lists of tokens.

        Yields:
            An `EmbeddedSentence` for each sentence.

        Raises:
            TypeError: If a single string is given, or anything but strings and lists of tokens.

        Warns:
            UnknownWordsWarning: Once per embedder, if the share of unknown words is far higher than in training.
        """
        return self._iter_embedded(sentences, "embed_iter")

    def _iter_embedded(self, sentences: object, call: str) -> Iterator[EmbeddedSentence]:
        for lines in iter_windows(self._iter_prepared(sentences, call), lambda line: len(line.tokens)):
            self._watch.look([line.tokens for line in lines])
            yield from self._embed_lines(lines)

    def _iter_prepared(self, sentences: object, call: str) -> Iterator[TokenisedLine]:
        for place, given in enumerate(check_list(sentences, call, "sentences", "a list of sentences")):
            if isinstance(given, str):
                yield self.prepare(given)
            else:
                tokens = check_tokens(given, call, f"sentences[{place}]", "a string or a list of tokens")
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

        `elmo_zh.embed.hub_outputs.hub_outputs` describes the arguments, the outputs and the errors.
        """
        return hub_outputs(self._embed_checked, self.num_layers, self.dimension, sentences, sequence_len, layer_weights)

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
                the cosine of their rows in the softmax; the token itself is left out. slot ranks words by how well they
                fit into the place; the token is not read. `elmo_zh.embed.substitutes` has the formulas.
            with_punctuation: Also return punctuation as a substitute for words; for punctuation it is always returned.

        Returns:
            The candidates with their probabilities; if ranked by slot, the token itself is among them.

        Raises:
            TypeError: If the tokens are not a list of strings, or position or top is not a whole number.
            ValueError: If top is negative, or the ranking is neither pattern nor slot.
            ElmoZhError: If the position is not in the sentence.
            BundleError: If the bundle has no softmax.
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
        with self._lock:
            self._finder = self._finder or SubstituteFinder(self.bundle, self.unknown)
            return self._finder.find(checked, top, ranking=ranking, with_punctuation=with_punctuation)

    def reset_state(self) -> None:
        """Reset the state of a stateful embedder to zeros."""
        self._state = self._reader.zero_state(1)

    def state_arrays(self) -> dict[str, Vectors]:
        """Return the state that a stateful embedder carries, as arrays.

        Returns:
            For each LSTM layer, from 0, output_0, float32, shape (2, 1, P), and cell_0, float32, shape (2, 1, D); on
            the first axis the forward LM, then the backward LM.
        """
        return state_to_arrays(self._state)

    def restore_state(self, arrays: Mapping[str, Vectors]) -> None:
        """Restore a state returned by `state_arrays`.

        Args:
            arrays: The arrays by name.

        Raises:
            ValueError: If names or shapes do not fit this model's state, which is then left unchanged.
        """
        self._state = restored_state(self._state, arrays)


def _load_same(path: Path, digest: str, device: str, precision: str, *settings: tuple[str, Any]) -> ElmoEmbedder:
    return ElmoEmbedder(load_bundle(path, digest), device, precision, **dict(settings))
