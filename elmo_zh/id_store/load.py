"""Open an id store."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.corpus.text_files import iter_lines
from elmo_zh.errors import RunError
from elmo_zh.id_store.encoded_sentences import EncodedSentences, HeldoutSentences, IdStore, ShardArrays, ShardSize
from elmo_zh.id_store.layout import ARRAYS, KINDS, OTHER_WORDS, Description, read_description, remedy, shard_name
from elmo_zh.run.arrays import read_numbers
from elmo_zh.vocabulary.lexicon import Lexicon
from elmo_zh.vocabulary.vocabulary import Vocabulary

_CHECKED_IDS = 2**22


def load_id_store(
    folder: Path, vocabulary: Vocabulary, num_slots: int | None = None, *, reads_all: bool = False
) -> IdStore:
    """Open an id store without reading it into memory; a shard is memory-mapped when it is first used.

    Args:
        folder: Folder of the store.
        vocabulary: Vocabulary of the run.
        num_slots: Number of character slots of each word; None in token mode.
        reads_all: Check all ids and offsets, for a store that no stage record vouches for.
    """
    description = read_description(folder)
    if description.vocabulary_digest != vocabulary.digest():
        raise RunError(
            f"{folder} was encoded with a different vocabulary ({description.vocabulary_digest[:19]}...,"
            f" vocab.data is {vocabulary.digest()[:19]}...). {remedy(folder)}"
        )
    if (description.other_words_bytes is not None) != (num_slots is not None):
        raise RunError(f"{folder} was encoded for the other model.mode. {remedy(folder)}")
    _require_sizes(folder, description)
    other_words = list(iter_lines(folder / OTHER_WORDS, drop_mark=False)) if num_slots is not None else []
    shards = {kind: _Shards(folder, kind, description) for kind in KINDS}
    if reads_all:
        for each in shards.values():
            each.require_sound(len(vocabulary) + len(other_words))
    heldout = shards["heldout"]
    return IdStore(
        EncodedSentences(shards["train"].sizes(), shards["train"].open),
        HeldoutSentences(heldout.sizes(), heldout.open, heldout.read("characters"), heldout.read("spelling")),
        Lexicon(vocabulary, num_slots, other_words),
    )


def _require_sizes(folder: Path, description: Description) -> None:
    """Raise RunError for the first file that does not have the expected length."""
    expected = {
        f"{shard_name(kind, number)}.{suffix}": (shard[count_name] + extra)
        * np.dtype(description.array_dtype(suffix)).itemsize
        for kind in KINDS
        for number, shard in enumerate(description.shards[kind])
        for suffix, (count_name, extra) in ARRAYS[kind].items()
    }
    if description.other_words_bytes is not None:
        expected[OTHER_WORDS] = description.other_words_bytes
    for name, size in expected.items():
        path = folder / name
        actual = path.stat().st_size if path.exists() else 0
        if actual != size or not path.exists():
            raise RunError(f"{path} has {actual} bytes, expected {size}. {remedy(folder)}")


class _Shards:
    """Opens the shards of one kind."""

    def __init__(self, folder: Path, kind: str, description: Description) -> None:
        self._folder, self._kind, self._description = folder, kind, description
        self._counts = description.shards[kind]

    def sizes(self) -> list[ShardSize]:
        return [
            ShardSize(tokens=shard["tokens"], sentences=shard["sentences"], documents=shard.get("documents", 0))
            for shard in self._counts
        ]

    def open(self, number: int) -> ShardArrays:
        arrays = {
            suffix: self._map(number, suffix) for suffix in ("ids", "offsets", "documents") if suffix in self._arrays
        }
        return ShardArrays(arrays["ids"], arrays["offsets"], arrays.get("documents", np.zeros(1, np.uint64)))

    @property
    def _arrays(self) -> Mapping[str, tuple[str, int]]:
        return ARRAYS[self._kind]

    def _map(self, number: int, suffix: str) -> NDArray[Any]:
        count_name, extra = self._arrays[suffix]
        length = self._counts[number][count_name] + extra
        dtype = self._description.array_dtype(suffix)
        if not length:  # an empty file cannot be mapped
            return np.zeros(0, dtype)
        path = self._folder / f"{shard_name(self._kind, number)}.{suffix}"
        # Slicing a plain array is several times as fast as slicing a memmap.
        return np.asarray(np.memmap(path, dtype, "r", shape=(length,)))

    def require_sound(self, num_words: int) -> None:
        """Raise RunError unless all ids are those of words, and offsets rise from 0 to what they divide."""
        for number in range(len(self._counts)):
            arrays = self.open(number)
            bounds = {"offsets": (arrays.offsets, len(arrays.ids))}
            if "documents" in self._arrays:
                bounds["documents"] = (arrays.documents, len(arrays.offsets) - 1)
            for suffix, (starts, end) in bounds.items():
                if starts[0] != 0 or starts[-1] != end or (starts[1:] < starts[:-1]).any():
                    raise self._damaged(number, suffix, f"does not rise from 0 to {end:,}")
            for start in range(0, len(arrays.ids), _CHECKED_IDS):
                if (largest := int(arrays.ids[start : start + _CHECKED_IDS].max())) >= num_words:
                    raise self._damaged(number, "ids", f"holds {largest:,}, but there are {num_words:,} words")

    def _damaged(self, number: int, suffix: str, problem: str) -> RunError:
        path = self._folder / f"{shard_name(self._kind, number)}.{suffix}"
        return RunError(f"{path} {problem}. {remedy(self._folder)}")

    def read(self, suffix: str) -> NDArray[Any]:
        """Return the arrays of all shards concatenated, in memory."""
        dtype = self._description.array_dtype(suffix)
        paths = (self._folder / f"{shard_name(self._kind, number)}.{suffix}" for number in range(len(self._counts)))
        return np.concatenate([np.zeros(0, dtype), *(read_numbers(path, dtype) for path in paths)])
