"""Texts as models read them: units and their tokens, as numbers in padded batches, and the ELMo vectors of sentences.

These vectors are computed once, and kept in float16: in memory, or on disk in one memory-mapped .npy file, so an epoch
does not run the biLM. The file is joined from parts in the work folder of a job, each with the vectors of a window of
sentences, so an interrupted command can resume.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from tokenize import TokenError
from typing import Any
from zlib import crc32

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from elmo_zh.bundle.word2vec_table import Word2Vec, build_table
from elmo_zh.config.task_settings import HeadSettings
from elmo_zh.corpus.readers.examples import Example
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.embed.unknown_rate import TokenForms
from elmo_zh.errors import OptionError, RunError
from elmo_zh.language import _
from elmo_zh.reader.lstm import iter_length_sorted
from elmo_zh.run.arrays import load_npy, save_npy, write_header
from elmo_zh.run.files import require_disk_space
from elmo_zh.run.job import Files, Step, Work
from elmo_zh.run.reporter import Reporter
from elmo_zh.text.entries import Entries
from elmo_zh.text.normalise import identity_spans
from elmo_zh.text.preparation import align_sentences
from elmo_zh.text.sentences import LONGEST_SENTENCE, WINDOW_ITEMS, iter_windows
from elmo_zh.vocabulary.vocabulary import SPECIALS, Vocabulary
from elmo_zh.word2vec.vectors import read_given_vectors

# Character numbers.
PADDING, UNKNOWN_CHARACTER, FIRST_CHARACTER = range(3)
# Place of a unit in its token; the first is for a unit without a token, such as a space.
NO_TOKEN, ALONE, FIRST, INSIDE, LAST = PLACES = range(5)
# Maximum units in a batch, including padding, to bound memory. A longer text gets a batch of its own.
_BATCH_UNITS = 8192
# Only the first characters of a long word are read.
_MOST_CHARACTERS = 16
# The columns that each n-gram joins: 0 to 4 are units, from two before to two after; 5 to 7 are words, from one before
# to one after; 8 and 9 are the first and last character of the word, and 10 is the unit's place in it.
_TEMPLATES = (
    *((0,), (1,), (2,), (3,), (4,), (0, 1), (1, 2), (2, 3), (3, 4), (1, 3), (0, 1, 2), (1, 2, 3), (2, 3, 4)),
    *((5,), (6,), (7,), (5, 6), (6, 7), (6, 10), (2, 10), (8, 10), (9, 10)),
)
Sentence = tuple[str, ...]
# What `TextEncoder` makes of a text, and of several: arrays and tensors by name.
Encoded = Mapping[str, NDArray[Any]]
Batch = Mapping[str, Tensor]
_HASH_FACTOR, _HASH_SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)


@dataclass(frozen=True, eq=False)
class UnitText:
    """A text split into n units."""

    text: str
    units: NDArray[np.int32]  # start and end of each unit in characters, int32, shape (n, 2)
    sentences: tuple[tuple[str, ...], ...]  # the tokens of each sentence, whose vectors are computed together
    # Token number of each unit, counted through all sentences, or -1 without a token, int64, shape (n,)
    owners: NDArray[np.int64]
    places: NDArray[np.int64]  # place of each unit in its token, one of `PLACES`, int64, shape (n,)

    @property
    def tokens(self) -> list[str]:
        """The tokens of all sentences."""
        return list(chain.from_iterable(self.sentences))


class TextReader:
    """Splits texts into sentences and tokens like the model's training text, and finds the token of each unit."""

    def __init__(self, embedder: ElmoEmbedder, *, by_words: bool) -> None:
        """Prepare to read texts; units are characters or, with `by_words`, the segmenter's tokens."""
        self._embedder, self._by_words = embedder, by_words
        self._splits = embedder.bundle.text is not None and embedder.bundle.text.split_sentences
        self.known_form = TokenForms(embedder.bundle).known_form  # a word as the model's vocabulary spells it

    def read(self, text: str, units: NDArray[np.int32] | None = None) -> UnitText:
        """Split a raw text into sentences and tokens, and into units unless they are given."""
        aligned = align_sentences(
            text,
            self._embedder.prepare,
            split=self._splits,
            longest=LONGEST_SENTENCE,
            segmented=self._embedder.bundle.keeps_tokens,
        )
        lines = [line for line in aligned if line.tokens]
        sentences = tuple(tuple(line.tokens) for line in lines)
        tokens = np.concatenate([np.zeros((0, 2), np.int32), *(line.offsets for line in lines)])
        if units is None:
            units = tokens if self._by_words else identity_spans(len(text))
        owners, places = find_owners(units, tokens, len(text))
        return UnitText(text, units, sentences, owners, places)

    def read_example(self, example: Example) -> list[UnitText]:
        """Return an example's texts, split into its own units if it has any; given words form one sentence."""
        if example.words is None or example.units is None:
            return [self.read(text, example.units) for text in example.texts]
        tokens = tuple(self.known_form(word) for word in example.words)
        owners, places = np.arange(len(tokens), dtype=np.int64), np.full(len(tokens), ALONE, np.int64)
        return [UnitText(example.texts[0], example.units, (tokens,) if tokens else (), owners, places)]


# The texts of each example; a pair has two.
Texts = Sequence[Sequence[UnitText]]


def sentences_of(texts: Texts) -> Iterator[tuple[str, ...]]:
    """Yield every sentence in the texts of all examples, as a tuple of tokens."""
    return (sentence for example in texts for text in example for sentence in text.sentences)


def find_owners(
    units: NDArray[np.int32], tokens: NDArray[np.int32], num_characters: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the token of each unit's first character (-1 if none), and the unit's place in it; int64, shape (n,)."""
    token_of = np.full(num_characters, -1)
    lengths = tokens[:, 1] - tokens[:, 0]
    inside = np.arange(lengths.sum()) - (lengths.cumsum() - lengths).repeat(lengths)
    token_of[tokens[:, 0].repeat(lengths) + inside] = np.arange(len(tokens)).repeat(lengths)
    owners = token_of[units[:, 0]]
    starts, ends = (
        (units[:, 0] <= tokens[owners, 0], units[:, 1] >= tokens[owners, 1]) if len(tokens) else (False, False)
    )
    places = np.select([owners < 0, starts & ends, starts, ends], [NO_TOKEN, ALONE, FIRST, LAST], INSIDE)
    return owners.astype(np.int64), places.astype(np.int64)


def read_texts(examples: Sequence[Example], embedder: ElmoEmbedder, reporter: Reporter) -> Texts:
    """Segment the texts of examples, and return them in order."""
    reader = TextReader(embedder, by_words=True)
    texts = []
    with reporter.progress("segment", unit="texts", total=len(examples)) as progress:
        for example in examples:
            texts.append(reader.read_example(example))
            progress.update(1)
    return texts


@dataclass(frozen=True, eq=False)
class VectorCache:
    """The ELMo vectors of distinct sentences, in memory or memory-mapped."""

    first_rows: dict[Sentence, int]  # row of the first token of each sentence
    # All layers of all tokens, float16, shape (N + 1, L + 1, 2P); row 0 is zero for units without a token
    vectors: NDArray[np.float16]

    def rows(self, sentences: Iterable[Sentence]) -> NDArray[np.int64]:
        """Return the rows of all tokens in the sentences, int64, shape (m,)."""
        ranges = [np.arange(len(tokens)) + self.first_rows[tokens] for tokens in sentences]
        return np.concatenate([np.zeros(0, np.int64), *ranges]).astype(np.int64)

    def take(self, rows: NDArray[np.int64]) -> Tensor:
        """Return the vectors at the given rows, shape (B, T), as float32, shape (L + 1, B, T, 2P)."""
        return torch.from_numpy(self.vectors[rows]).movedim(2, 0).float()

    @classmethod
    def in_memory(cls, embedder: ElmoEmbedder, sentences: Iterable[Sentence]) -> "VectorCache":
        """Compute the vectors of a few sentences, without a file."""
        first_rows = _number_rows(sentences)
        zeros = np.zeros((1, embedder.num_layers, embedder.dimension), np.float16)
        return cls(first_rows, np.concatenate([zeros, *_float16_vectors(embedder, list(first_rows))]))

    @classmethod
    def on_disk(
        cls, work: Work, embedder: ElmoEmbedder, sentences: Iterable[Sentence], *, most_sentences: int = WINDOW_ITEMS
    ) -> "VectorCache":
        """Compute the vectors of distinct sentences, reusing those in `work`, which must be of the same sentences."""
        first_rows = _number_rows(sentences)
        num_tokens = sum(map(len, first_rows))
        shape = (num_tokens + 1, embedder.num_layers, embedder.dimension)
        joined = work.finished("join")
        if not joined:
            require_disk_space(work.path / "vectors", 4 * int(np.prod(shape)), advice="--limit N")
            step = Step(
                name="vectors", compute=partial(_write_vectors, embedder), unit="tokens", size=int, total=num_tokens
            )
            parts = list(work.run(step, iter_windows(first_rows, len, most_items=most_sentences)))
            files = [part.file("npy") for part in parts]
            joined = list(work.run(Step(name="join", compute=partial(_join, shape)), [files]))
            work.discard("vectors")
        vectors: Any = np.load(joined[0].file("npy"), mmap_mode="r", allow_pickle=False)
        return cls(first_rows, vectors)


def _number_rows(sentences: Iterable[Sentence]) -> dict[Sentence, int]:
    """Map each distinct sentence to the row of its first token; row 0 is for units without a token."""
    rows: dict[Sentence, int] = {}
    row = 1
    for tokens in dict.fromkeys(sentences):
        rows[tokens] = row
        row += len(tokens)
    return rows


def _write_vectors(embedder: ElmoEmbedder, window: Sequence[Sentence], files: Files) -> int:
    """Write the vectors of some sentences; return the number of tokens."""
    vectors = np.concatenate(_float16_vectors(embedder, window))
    with files.file("npy") as path:
        save_npy(path, vectors)
    return len(vectors)


def _join(shape: tuple[int, ...], parts: Sequence[Path], files: Files) -> None:
    """Write all vectors as one array, with the zeros of row 0 first."""
    with files.file("npy") as path, path.open("wb") as file:
        write_header(file, np.float16, shape)
        file.write(np.zeros(shape[1:], np.float16).data)
        for part in parts:
            file.write(load_npy(part).data)


def _float16_vectors(embedder: ElmoEmbedder, sentences: Sequence[Sentence]) -> list[NDArray[np.float16]]:
    """Return all layers of each sentence's tokens, float16, shape (n, L + 1, 2P)."""
    return [layers.transpose(1, 0, 2).astype(np.float16) for layers in embedder.compute_vectors(sentences)]


def num_units(example: Sequence[Encoded]) -> int:
    """Return the number of units in an example's longest text."""
    return max(len(text["places"]) for text in example)


def short_batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield the indexes of texts in batches, longest first; only a batch with one text can exceed `_BATCH_UNITS`."""
    return iter_length_sorted([max(1, length) for length in lengths], _BATCH_UNITS)


def known_characters(texts: Iterable[str]) -> str:
    """Return the characters that get their own vectors: those that occur at least twice, most frequent first."""
    counts = Counter(character for text in texts for character in text)
    frequent = [character for character, count in counts.items() if count > 1]
    return "".join(sorted(frequent, key=lambda character: (-counts[character], character)))


def hash_grams(text: UnitText) -> NDArray[np.int64]:
    """Return the hash of the n-gram that each of G templates makes around each of n units, int64, shape (n, G)."""
    count = len(text.owners)
    units = np.pad(_hashes(text.text[start:end] for start, end in text.units), 2)
    # A unit without a token has an empty word between empty words.
    words, owners = np.pad(_hashes(text.tokens), (2, 3)), np.where(text.owners < 0, len(text.tokens) + 1, text.owners)
    columns = [units[shift : shift + count] for shift in range(5)] + [words[owners + shift] for shift in (1, 2, 3)]
    columns += [_hashes([token[end] for token in (*text.tokens, " ")])[text.owners] for end in (0, -1)]
    columns.append(text.places.astype(np.uint64))
    hashes = np.zeros((count, len(_TEMPLATES)), np.uint64)
    for number, template in enumerate(_TEMPLATES):
        hashes[:, number] = number
        for column in template:
            hashes[:, number] = (hashes[:, number] ^ columns[column]) * _HASH_FACTOR
            hashes[:, number] ^= hashes[:, number] >> _HASH_SHIFT
    return (hashes >> _HASH_SHIFT).astype(np.int64)


def _hashes(strings: Iterable[str]) -> NDArray[np.uint64]:
    return np.array([crc32(string.encode("utf-8", "surrogatepass")) for string in strings], np.uint64)


@dataclass(frozen=True, eq=False)
class TextEncoder:
    """Turns texts into numbers and batches of tensors.

    A text with n units becomes int64 arrays with these names; the first always, the others if they are inputs:
        places: the place of each unit in its token, shape (n,)
        elmo, word2vec: the row of each unit's token in the cache and in the word2vec table, 0 for none, shape (n,)
        characters: the numbers of each unit's characters, 0 where padded, shape (n, C)
        grams: the hashes of the n-grams around each unit, shape (n, G)
    In training, there is also:
        target: the number of each unit's tag, shape (n,), or of the class, shape (1,); for regression, the
            standardised number, float32, shape (1,)

    A batch of B texts has tensors of the same names, padded with 0 to T units (at least 1), with two changes:
        mask: True where there is a unit, shape (B, T)
        elmo, word2vec: the vectors in place of the rows, float32, shapes (L + 1, B, T, 2P) and (B, T, P)
    """

    cache: VectorCache | None  # the ELMo vectors of all sentences; None without this input
    word2vec: Word2Vec | None  # None without this input
    alphabet: str | None  # the characters with their own vectors; None without this input
    has_grams: bool = False  # whether n-grams are read

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {character: number for number, character in enumerate(self.alphabet or "", start=FIRST_CHARACTER)}

    def encode(self, text: UnitText) -> Encoded:
        """Look up the numbers that a network reads for each unit of a text."""
        arrays = {"places": text.places}
        if self.cache is not None:
            arrays["elmo"] = _of_owners(self.cache.rows(text.sentences), text.owners)
        if self.word2vec is not None:
            arrays["word2vec"] = _of_owners(self.word2vec.rows(text.tokens), text.owners)
        if self.alphabet is not None:
            units = [text.text[start:end][:_MOST_CHARACTERS] for start, end in text.units]
            characters = np.zeros((len(units), max(map(len, units), default=1)), np.int64)
            for row, unit in enumerate(units):
                characters[row, : len(unit)] = [self._numbers.get(character, UNKNOWN_CHARACTER) for character in unit]
            arrays["characters"] = characters
        if self.has_grams:
            arrays["grams"] = hash_grams(text)
        return arrays

    def batches(self, examples: Sequence[Sequence[Encoded]]) -> list[Batch]:
        """Return one batch with the examples' texts; for pairs, one with the first texts and one with the second."""
        return [self.batch(texts) for texts in zip(*examples, strict=True)]

    def batch(self, texts: Sequence[Encoded]) -> Batch:
        """Pad texts, stack them into one batch, and look up their vectors."""
        padded = {name: _padded([text[name] for text in texts]) for name in texts[0]}
        batch = {name: torch.from_numpy(array) for name, array in padded.items()}
        lengths = torch.tensor([len(text["places"]) for text in texts])
        batch["mask"] = torch.arange(padded["places"].shape[1]) < lengths[:, None]
        if self.cache is not None:
            batch["elmo"] = self.cache.take(padded["elmo"])
        if self.word2vec is not None:
            batch["word2vec"] = torch.from_numpy(self.word2vec.table[padded["word2vec"]]).float()
        return batch


def _padded(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Stack arrays, padded with zeros to the length of the longest, at least 1."""
    longest, *widths = np.max([array.shape for array in arrays], axis=0)
    padded = np.zeros((len(arrays), max(1, longest), *widths), arrays[0].dtype)
    for place, array in enumerate(arrays):
        padded[place][tuple(slice(size) for size in array.shape)] = array
    return padded


def word2vec_digest(word2vec: Word2Vec | None) -> str | None:
    """Return the digest of all vectors, for the manifest of a job, or None without vectors."""
    if word2vec is None:
        return None
    return hashlib.sha256(np.ascontiguousarray(word2vec.table).tobytes()).hexdigest()


def read_alike(word2vec: Word2Vec, embedder: ElmoEmbedder, sentences: Iterable[Sequence[str]]) -> Word2Vec:
    """Return word2vec vectors for sentences, treating unknown words as the embedder does."""
    if embedder.unknown != "backoff":
        return word2vec
    return word2vec.of_words(token for sentence in sentences for token in sentence)


def load_vectors(path: Path, texts: Texts, settings: HeadSettings, reporter: Reporter) -> NDArray[Any] | Word2Vec:
    """Read vectors made by another program, one for each example (.npy) or one for each word.

    A word that the file lacks gets the mean vector of the words inside it, or else zeros.

    Raises:
        OptionError: If the vectors do not suit the data or the kind of task.
        RunError: If the file is not what its name says, is cut off, or (.npy) has a number that is not finite.
    """
    if settings.regression or (settings.kind == "tag" and path.suffix == ".npy"):
        raise OptionError.together(f"--vectors {path}", "--regression" if settings.regression else "tag")
    if path.suffix == ".npy":
        try:
            rows: NDArray[Any] = np.lib.format.open_memmap(path, mode="r")
        except (ValueError, TokenError) as error:
            raise RunError.damaged(path, error) from None
        if rows.ndim != 2 or len(rows) != len(texts) or rows.dtype.kind != "f":
            # In the order of the training, development and test files.
            raise OptionError.unexpected(f"--vectors {path}: {rows.dtype} {rows.shape}", f"float32 ({len(texts)}, N)")
        whole = np.isfinite(rows).all(axis=1)
        if not whole.all():
            row = whole.argmin()
            raise RunError.damaged(path, f"[{row}]: {rows[row][~np.isfinite(rows[row])][0]}")
        return rows
    words = {word for sentence in sentences_of(texts) for word in sentence}
    parts = {word[start:end] for word in words for start in range(len(word)) for end in range(start + 1, len(word) + 1)}
    entries, vocabulary = Entries(path, str), Vocabulary((*SPECIALS, *sorted(parts - set(SPECIALS))))
    vectors = read_given_vectors(entries, vocabulary, 0)
    entries.report(reporter)
    if not len(vectors.rows):
        message = _(
            "--vectors {path}: none of its words occur in the data. Use vectors for the data's language and script."
        )
        raise OptionError(message.format(path=path))
    known = Vocabulary((*SPECIALS, *(vocabulary.tokens[row] for row in vectors.rows)))
    rows = np.arange(len(SPECIALS), len(known))
    return Word2Vec(known, build_table(replace(vectors, rows=rows), len(known))).of_words(sorted(words))


def _of_owners(rows: NDArray[np.int64], owners: NDArray[np.int64]) -> NDArray[np.int64]:
    with_none = np.concatenate([rows, np.zeros(1, np.int64)])
    return with_none[owners]
