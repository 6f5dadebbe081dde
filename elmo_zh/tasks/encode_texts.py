"""Texts as networks read them: units and their tokens, as numbers in padded batches."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from zlib import crc32

import numpy as np
import torch
from numpy.typing import NDArray

from elmo_zh.bundle.word2vec_table import Word2Vec
from elmo_zh.corpus.readers.examples import Example
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.embed.unknown_rate import TokenForms
from elmo_zh.language import ngettext
from elmo_zh.run.reporter import Reporter
from elmo_zh.tasks.layers import ALONE, FIRST, FIRST_CHARACTER, INSIDE, LAST, NO_TOKEN, UNKNOWN_CHARACTER, Batch
from elmo_zh.tasks.vector_cache import LiveVectors, VectorCache
from elmo_zh.text.normalise import identity_spans
from elmo_zh.text.preparation import align_sentences
from elmo_zh.text.sentences import LONGEST_SENTENCE, split_between_tokens, split_sentences

# Only the first characters of a long word are read.
_MOST_CHARACTERS = 16
# The columns that each n-gram joins: 0 to 4 are units, from two before to two after; 5 to 7 are words, from one before
# to one after; 8 and 9 are the first and last character of the word, and 10 is the unit's place in it.
_TEMPLATES = (
    *((0,), (1,), (2,), (3,), (4,), (0, 1), (1, 2), (2, 3), (3, 4), (1, 3), (0, 1, 2), (1, 2, 3), (2, 3, 4)),
    *((5,), (6,), (7,), (5, 6), (6, 7), (6, 10), (2, 10), (8, 10), (9, 10)),
)
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
        self._forms = TokenForms(embedder.bundle)

    def read(self, text: str, units: NDArray[np.int32] | None = None) -> UnitText:
        """Split a raw text into sentences, tokens and units, or keep the units that are given."""
        found = align_sentences(
            text,
            self._embedder.prepare,
            split=self._splits,
            longest=LONGEST_SENTENCE,
            segmented=self._embedder.bundle.keeps_tokens,
        )
        lines = [line for line in found if line.tokens]
        sentences = tuple(tuple(line.tokens) for line in lines)
        tokens = np.concatenate([np.zeros((0, 2), np.int32), *(line.offsets for line in lines)])
        if units is None:
            units = tokens if self._by_words else identity_spans(len(text))
        owners, places = find_owners(units, tokens, len(text))
        return UnitText(text, units, sentences, owners, places)

    def sentences(self, text: str) -> list[str]:
        """Return the sentences of a text, or the whole text if the model was not trained on sentences."""
        split = split_between_tokens if self._embedder.bundle.keeps_tokens else split_sentences
        return split(text) if self._splits else [text]

    def read_example(self, example: Example) -> list[UnitText]:
        """Return an example's texts, split into the units that its labels belong to; given words form one sentence."""
        if example.words is None or example.units is None:
            return [self.read(text, example.units) for text in example.texts]
        tokens = tuple(self._forms.known_form(word) for word in example.words)
        owners, places = np.arange(len(tokens), dtype=np.int64), np.full(len(tokens), ALONE, np.int64)
        return [UnitText(example.texts[0], example.units, (tokens,) if tokens else (), owners, places)]


# The texts of each example; a pair has two.
Texts = Sequence[Sequence[UnitText]]


def sentences_of(texts: Texts) -> Iterator[tuple[str, ...]]:
    """Yield every sentence in the texts of all examples, as a tuple of tokens; a pair has two texts."""
    return (sentence for each in texts for text in each for sentence in text.sentences)


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
    """Segment the texts of examples, and return them in order; report sentences that are cut."""
    reader = TextReader(embedder, by_words=True)
    texts = []
    with reporter.progress("segment", unit="texts", total=len(examples)) as progress:
        for example in examples:
            texts.append(reader.read_example(example))
            progress.update(1)
    sentences = (sentence for example in examples for text in example.texts for sentence in reader.sentences(text))
    if num_cut := sum(len(sentence) > LONGEST_SENTENCE for sentence in sentences):
        reporter.note(
            ngettext(
                "Cut {number} sentence longer than {longest} characters into pieces.",
                "Cut {number} sentences longer than {longest} characters into pieces.",
                num_cut,
            ).format(number=f"{num_cut:,}", longest=f"{LONGEST_SENTENCE:,}")
        )
    return texts


@dataclass(frozen=True, eq=False)
class EncodedText:
    """The n units of a text, as numbers."""

    elmo_rows: NDArray[np.int64]  # row of each unit's token in the cache, 0 for none, int64, shape (n,)
    word2vec_rows: NDArray[np.int64]  # the token's row in the word2vec table, 0 for none, int64, shape (n,)
    characters: NDArray[np.int64]  # numbers of the unit's characters, 0 where padded, int64, shape (n, C)
    places: NDArray[np.int64]  # place of the unit in its token, int64, shape (n,)
    grams: NDArray[np.int64]  # hashes of the n-grams around the unit, int64, shape (n, G)

    def __len__(self) -> int:
        return len(self.places)


class KnownCharacters:
    """The characters that get their own vectors: those that occur more than once in the training texts."""

    def __init__(self, characters: str) -> None:
        self.characters = characters
        self._numbers = {character: number for number, character in enumerate(characters, start=FIRST_CHARACTER)}

    @classmethod
    def of(cls, texts: Iterable[str]) -> "KnownCharacters":
        """Return the characters that occur at least twice, most frequent first."""
        counts = Counter(character for text in texts for character in text)
        frequent = [character for character, count in counts.items() if count > 1]
        return cls("".join(sorted(frequent, key=lambda character: (-counts[character], character))))

    def __len__(self) -> int:
        return FIRST_CHARACTER + len(self.characters)

    def spell(self, units: Sequence[str]) -> NDArray[np.int64]:
        """Return the numbers of each unit's characters, padded with 0, int64, shape (n, C)."""
        width = min(max(map(len, units), default=1), _MOST_CHARACTERS)
        found = np.zeros((len(units), max(width, 1)), np.int64)
        for row, unit in enumerate(units):
            for place, character in enumerate(unit[:width]):
                found[row, place] = self._numbers.get(character, UNKNOWN_CHARACTER)
        return found


def hash_grams(text: UnitText) -> NDArray[np.int64]:
    """Return the hash of the n-gram that each of G templates makes around each of n units, int64, shape (n, G)."""
    count = len(text.owners)
    units = np.pad(_hashes(text.text[start:end] for start, end in text.units), 2)
    # A unit without a token has an empty word between empty words.
    words, owners = np.pad(_hashes(text.tokens), (2, 3)), np.where(text.owners < 0, len(text.tokens) + 1, text.owners)
    columns = [units[shift : shift + count] for shift in range(5)] + [words[owners + shift] for shift in (1, 2, 3)]
    columns += [_hashes([token[end] for token in (*text.tokens, " ")])[text.owners] for end in (0, -1)]
    columns.append(text.places.astype(np.uint64))
    found = np.zeros((count, len(_TEMPLATES)), np.uint64)
    for number, template in enumerate(_TEMPLATES):
        found[:, number] = number
        for column in template:
            found[:, number] = (found[:, number] ^ columns[column]) * _HASH_FACTOR
            found[:, number] ^= found[:, number] >> _HASH_SHIFT
    return (found >> _HASH_SHIFT).astype(np.int64)


def _hashes(strings: Iterable[str]) -> NDArray[np.uint64]:
    return np.array([crc32(each.encode("utf-8", "surrogatepass")) for each in strings], np.uint64)


@dataclass(frozen=True, eq=False)
class TextEncoder:
    """Turns texts into numbers and batches of tensors."""

    # The ELMo vectors of all sentences, or a biLM that computes them; None without this input
    cache: VectorCache | LiveVectors | None
    word2vec: Word2Vec | None  # None without this input
    characters: KnownCharacters | None  # the characters with their own vectors; None without this input
    has_grams: bool = False  # whether n-grams are read

    def encode(self, text: UnitText) -> EncodedText:
        """Look up the numbers that a network reads for each unit of a text."""
        nothing = np.zeros(len(text.owners), np.int64)
        elmo_rows = word2vec_rows = nothing
        characters = np.zeros((len(text.owners), 1), np.int64)
        if self.cache is not None:
            elmo_rows = _of_owners(self.cache.rows(text.sentences), text.owners)
        if self.word2vec is not None:
            word2vec_rows = _of_owners(self.word2vec.rows(text.tokens), text.owners)
        if self.characters is not None:
            characters = self.characters.spell([text.text[start:end] for start, end in text.units])
        grams = hash_grams(text) if self.has_grams else np.zeros((len(text.owners), 0), np.int64)
        return EncodedText(elmo_rows, word2vec_rows, characters, text.places, grams)

    def batch(self, texts: Sequence[EncodedText]) -> Batch:
        """Pad texts to one batch, and look up their vectors."""
        shape = (len(texts), max(1, *map(len, texts)))
        mask = np.arange(shape[1]) < np.array([len(text) for text in texts])[:, None]
        elmo = word2vec = torch.zeros(0)
        characters = np.zeros(0, np.int64)
        if self.cache is not None:
            elmo = self.cache.take(_padded([text.elmo_rows for text in texts], shape))
        if self.word2vec is not None:
            rows = _padded([text.word2vec_rows for text in texts], shape)
            word2vec = torch.from_numpy(self.word2vec.table[rows]).float()
        if self.characters is not None:
            width = max(text.characters.shape[1] for text in texts)
            characters = _padded([text.characters for text in texts], (*shape, width))
        return Batch(
            mask=torch.from_numpy(mask),
            elmo=elmo,
            word2vec=word2vec,
            characters=torch.from_numpy(characters),
            places=torch.from_numpy(_padded([text.places for text in texts], shape)),
            grams=torch.from_numpy(_padded([text.grams for text in texts], (*shape, texts[0].grams.shape[1]))),
        )


def _padded(arrays: Sequence[NDArray[np.int64]], shape: tuple[int, ...]) -> NDArray[np.int64]:
    found = np.zeros(shape, np.int64)
    for place, each in enumerate(arrays):
        found[place][tuple(slice(size) for size in each.shape)] = each
    return found


def word2vec_digest(word2vec: Word2Vec | None) -> str | None:
    """Return the digest of all vectors, for the manifest of a job."""
    if word2vec is None:
        return None
    return hashlib.sha256(np.ascontiguousarray(word2vec.table).tobytes()).hexdigest()


def read_alike(word2vec: Word2Vec, embedder: ElmoEmbedder, sentences: Iterable[Sequence[str]]) -> Word2Vec:
    """Return word2vec vectors for sentences, treating unknown words as the embedder does."""
    if embedder.unknown != "backoff":
        return word2vec
    return word2vec.of_words(token for sentence in sentences for token in sentence)


def _of_owners(rows: NDArray[np.int64], owners: NDArray[np.int64]) -> NDArray[np.int64]:
    with_none = np.concatenate([rows, np.zeros(1, np.int64)])
    return with_none[owners]
