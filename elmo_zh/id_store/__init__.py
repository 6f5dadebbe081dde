"""The token id store: segmented text as numbers on disk, in shards that are read through memory maps.

A folder of raw little-endian arrays, and `store.json` with their lengths and the vocabulary's digest. Each segmented
file becomes one shard; shards are numbered from 0 in the order of the files. The files of shard 00000:

- `train-00000.ids`, `heldout-00000.ids`: input ids of the words without <S> and </S>, uint16 if they fit, otherwise
  uint32.
- `train-00000.offsets`, `heldout-00000.offsets`: uint64, one more than there are sentences; sentence s of the shard is
  ids[offsets[s]:offsets[s+1]].
- `train-00000.documents`: uint64, one more than there are documents; document d of the shard consists of the sentences
  from documents[d] up to but excluding documents[d+1]. No document is empty.
- `heldout-00000.characters`: uint32, number of characters in the words of each held-out sentence.
- `heldout-00000.spelling`: float64, cost in nats of spelling the unknown words of each sentence.

Files for all shards together:

- `other_words.txt`: in character mode, the words outside the vocabulary, one per line, in order of first occurrence,
  training text before held-out text; the first has id V.
- `store.json`: `format` (2), `id_dtype` (<u2 or <u4), `vocabulary_digest`, totals, and under `train` and `heldout` the
  numbers of `tokens`, `sentences`, `unknown` words and (for training text) `documents` of each shard.
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from elmo_zh.corpus.text_files import iter_lines
from elmo_zh.errors import RunError
from elmo_zh.invocation import command
from elmo_zh.run.files import read_json
from elmo_zh.vocabulary.lexicon import Lexicon
from elmo_zh.vocabulary.vocabulary import Vocabulary

# A memory map keeps its file open, and a process may usually open 1,024. The least recently used shards are closed. A
# shard has three files, so there is room for all other files.
OPEN_SHARDS = 200

STORE_FORMAT = 2
DESCRIPTION = "store.json"
OTHER_WORDS = "other_words.txt"
KINDS = ("train", "heldout")
# For each array of a shard, by kind and suffix: the count in store.json that gives its length, and a number to add.
ARRAYS: Mapping[str, Mapping[str, tuple[str, int]]] = {
    "train": {"ids": ("tokens", 0), "offsets": ("sentences", 1), "documents": ("documents", 1)},
    "heldout": {
        "ids": ("tokens", 0),
        "offsets": ("sentences", 1),
        "characters": ("sentences", 0),
        "spelling": ("sentences", 0),
    },
}
_DTYPES = {"offsets": "<u8", "documents": "<u8", "characters": "<u4", "spelling": "<f8"}


def shard_name(kind: str, number: int) -> str:
    """Return the file name of a shard, without a suffix."""
    return f"{kind}-{number:05d}"


@dataclass(frozen=True)
class ShardArrays:
    """The ids of one shard, and the bounds of its sentences and documents."""

    ids: NDArray[Any]  # Ids of all sentences, concatenated, shape (num_tokens,)
    offsets: NDArray[np.uint64]  # Start of each sentence, and the end of the last, shape (num_sentences + 1,)
    # First sentence of each document, and the end of the last, shape (num_documents + 1,).
    documents: NDArray[np.uint64]


class EncodedSentences:
    """Sentences as word ids without <S> and </S>, in shards that are opened on demand."""

    def __init__(self, counts: Sequence[Mapping[str, int]], open_shard: Callable[[int], ShardArrays]) -> None:
        """Describe the shards by their numbers of `tokens`, `sentences` and, for training text, `documents`."""
        # Number of the first sentence, and of the first document, of each shard, and the totals.
        self._sentence_starts = [0, *accumulate(shard["sentences"] for shard in counts)]
        self._document_starts = [0, *accumulate(shard.get("documents", 0) for shard in counts)]
        self.num_tokens = sum(shard["tokens"] for shard in counts)
        self._shard = lru_cache(OPEN_SHARDS)(open_shard)

    @classmethod
    def in_memory(cls, ids: NDArray[Any], offsets: NDArray[np.uint64], *measures: NDArray[Any]) -> Self:
        """Use arrays in memory as the only shard; all sentences are one document."""
        documents = np.unique([0, len(offsets) - 1]).astype(np.uint64)
        counts = {"tokens": len(ids), "sentences": len(offsets) - 1, "documents": len(documents) - 1}
        return cls([counts], lambda _: ShardArrays(ids, offsets, documents), *measures)

    def __len__(self) -> int:
        return self._sentence_starts[-1]

    def __getitem__(self, index: int) -> NDArray[Any]:
        """Return the ids of one sentence."""
        number = bisect_right(self._sentence_starts, index) - 1
        shard, row = self._shard(number), index - self._sentence_starts[number]
        return shard.ids[int(shard.offsets[row]) : int(shard.offsets[row + 1])]

    def document(self, index: int) -> range:
        """Return the sentence numbers of one document."""
        number = bisect_right(self._document_starts, index) - 1
        first, number_in_shard = self._sentence_starts[number], index - self._document_starts[number]
        bounds = self._shard(number).documents
        return range(first + int(bounds[number_in_shard]), first + int(bounds[number_in_shard + 1]))

    def lengths(self, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of words in each chosen sentence; `chosen` may be in any order."""
        order = np.argsort(chosen, kind="stable")
        lengths = np.empty(len(chosen), np.int64)
        lengths[order] = np.concatenate([np.diff(spans).ravel() for _, spans in self._spans(chosen[order])])
        return lengths

    def read(self, chosen: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return the concatenated ids of sentences, given in ascending order, and the length of each sentence."""
        read, lengths = [], []
        for ids, spans in self._spans(chosen):
            own = np.diff(spans).ravel()
            within = np.arange(own.sum()) - np.repeat(np.cumsum(own) - own, own)
            read.append(ids[np.repeat(spans[:, 0], own) + within])
            lengths.append(own)
        return np.concatenate(read), np.concatenate(lengths)

    def _spans(self, chosen: NDArray[np.int64]) -> Sequence[tuple[NDArray[Any], NDArray[np.int64]]]:
        """Return each shard's ids, with the start and end there of each chosen sentence; `chosen` is ascending."""
        spans = [(np.zeros(0, np.uint16), np.zeros((0, 2), np.int64))]
        bounds = np.searchsorted(chosen, self._sentence_starts)
        for number, (begin, end) in enumerate(pairwise(bounds.tolist())):
            if begin < end:
                shard = self._shard(number)
                rows = chosen[begin:end] - self._sentence_starts[number]
                spans.append((shard.ids, np.stack([shard.offsets[rows], shard.offsets[rows + 1]], 1).astype(np.int64)))
        return spans

    @property
    def num_documents(self) -> int:
        """Number of non-empty documents."""
        return self._document_starts[-1]

    @property
    def num_predictions(self) -> int:
        """Number of predictions in one direction: one for each word and each sentence end."""
        return self.num_tokens + len(self)


class HeldoutSentences(EncodedSentences):
    """Held-out sentences, each with its number of characters and the cost in nats of spelling its unknown words."""

    def __init__(
        self,
        counts: Sequence[Mapping[str, int]],
        open_shard: Callable[[int], ShardArrays],
        characters: NDArray[np.uint32],
        spelling_nats: NDArray[np.float64],
    ) -> None:
        super().__init__(counts, open_shard)
        self.characters, self.spelling_nats = characters, spelling_nats


@dataclass(frozen=True)
class IdStore:
    """The training and held-out sentences of a run, and the lexicon that their ids refer to."""

    train: EncodedSentences
    heldout: HeldoutSentences
    lexicon: Lexicon


Count = Annotated[int, Meta(ge=0, lt=2**60)]


class Description(Struct):
    """The contents of store.json; under each kind, the counts of each shard."""

    format: Literal[2]
    id_dtype: Literal["<u2", "<u4"]
    vocabulary_digest: str
    train: list[dict[str, Count]]
    heldout: list[dict[str, Count]]
    other_words_bytes: Count | None = None  # Size of other_words.txt; None in token mode

    def shards(self, kind: str) -> list[dict[str, int]]:
        """Return the counts of the shards of a kind."""
        return self.train if kind == "train" else self.heldout

    def array_dtype(self, suffix: str) -> str:
        """Return the dtype of the arrays whose files have this suffix."""
        return _DTYPES.get(suffix, self.id_dtype)

    def file_bytes(self) -> dict[str, int]:
        """Return the expected size in bytes of each file except store.json, by file name."""
        sizes = {
            f"{shard_name(kind, number)}.{suffix}": (shard[count_name] + extra)
            * np.dtype(self.array_dtype(suffix)).itemsize
            for kind in KINDS
            for number, shard in enumerate(self.shards(kind))
            for suffix, (count_name, extra) in ARRAYS[kind].items()
        }
        return sizes if self.other_words_bytes is None else {**sizes, OTHER_WORDS: self.other_words_bytes}


def _again(folder: Path) -> str:
    """Return the command that writes a store again."""
    return command("encode", "--run", folder.parent, "--force")


def read_description(folder: Path) -> Description:
    """Read store.json; raise RunError if it is missing, damaged or in a different format."""
    try:
        description: Description = read_json(folder / DESCRIPTION, Description)
        description.file_bytes()
    except (OSError, ValueError, KeyError) as error:
        raise RunError.damaged(folder / DESCRIPTION, error, _again(folder)) from None
    return description


def store_files(folder: Path) -> list[Path]:
    """Return the paths of an id store's description and of the files that it lists."""
    return [folder / name for name in (*read_description(folder).file_bytes(), DESCRIPTION)]


def load_id_store(folder: Path, vocabulary: Vocabulary, num_slots: int | None = None) -> IdStore:
    """Open an id store, whose shards are memory-mapped on use.

    `num_slots` is None in token mode.

    Raises:
        RunError: If the store is damaged, or was encoded with a different vocabulary or for the other mode.
    """
    description = read_description(folder)
    if description.vocabulary_digest != vocabulary.digest():
        raise RunError.unfit(folder, "vocab.data", _again(folder))
    if (description.other_words_bytes is not None) != (num_slots is not None):
        raise RunError.unfit(folder, "model.mode", _again(folder))
    for name, size in description.file_bytes().items():
        path = folder / name
        if not path.exists() or path.stat().st_size != size:
            raise RunError.damaged(path, f"it should have {size:,} bytes", _again(folder))
    other_words = list(iter_lines(folder / OTHER_WORDS, drop_mark=False)) if num_slots is not None else []
    train, heldout = (_Shards(folder, kind, description) for kind in KINDS)
    return IdStore(
        EncodedSentences(train.counts, train.open),
        HeldoutSentences(heldout.counts, heldout.open, heldout.read("characters"), heldout.read("spelling")),
        Lexicon(vocabulary, num_slots, other_words),
    )


class _Shards:
    def __init__(self, folder: Path, kind: str, description: Description) -> None:
        self._folder, self._kind, self._description = folder, kind, description
        self.counts = description.shards(kind)

    def open(self, number: int) -> ShardArrays:
        has_documents = "documents" in ARRAYS[self._kind]
        documents = self._map(number, "documents") if has_documents else np.zeros(1, np.uint64)
        return ShardArrays(self._map(number, "ids"), self._map(number, "offsets"), documents)

    def _map(self, number: int, suffix: str) -> NDArray[Any]:
        count_name, extra = ARRAYS[self._kind][suffix]
        length = self.counts[number][count_name] + extra
        dtype = self._description.array_dtype(suffix)
        if not length:  # an empty file cannot be mapped
            return np.zeros(0, dtype)
        # Slicing a plain array is several times faster than slicing a memmap.
        path = self._folder / f"{shard_name(self._kind, number)}.{suffix}"
        return np.asarray(np.memmap(path, dtype, "r", shape=(length,)))

    def read(self, suffix: str) -> NDArray[Any]:
        """Return the arrays of all shards concatenated, in memory."""
        dtype = self._description.array_dtype(suffix)
        return np.concatenate([np.zeros(0, dtype), *(self._map(number, suffix) for number in range(len(self.counts)))])
