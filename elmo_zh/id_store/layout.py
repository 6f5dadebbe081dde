"""Name the files of an id store, read its description in store.json, and open it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.corpus.text_files import iter_lines
from elmo_zh.errors import RunError
from elmo_zh.id_store.encoded_sentences import EncodedSentences, HeldoutSentences, IdStore, ShardArrays
from elmo_zh.invocation import command
from elmo_zh.run.files import read_json
from elmo_zh.vocabulary.lexicon import Lexicon
from elmo_zh.vocabulary.vocabulary import Vocabulary

STORE_FORMAT = 2
DESCRIPTION = "store.json"
OTHER_WORDS = "other_words.txt"
KINDS = ("train", "heldout")
ID_DTYPES = ("<u2", "<u4")
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


@dataclass(frozen=True, kw_only=True)
class Description:
    """The contents of store.json."""

    id_dtype: str
    vocabulary_digest: str
    shards: Mapping[str, Sequence[Mapping[str, int]]]
    other_words_bytes: int | None  # Size of other_words.txt; None in token mode

    def array_dtype(self, suffix: str) -> str:
        """Return the dtype of the arrays whose files have this suffix."""
        return _DTYPES.get(suffix, self.id_dtype)

    def file_bytes(self) -> dict[str, int]:
        """Return the expected size in bytes of each file except store.json, by file name."""
        sizes = {
            f"{shard_name(kind, number)}.{suffix}": (shard[count_name] + extra)
            * np.dtype(self.array_dtype(suffix)).itemsize
            for kind in KINDS
            for number, shard in enumerate(self.shards[kind])
            for suffix, (count_name, extra) in ARRAYS[kind].items()
        }
        return sizes if self.other_words_bytes is None else {**sizes, OTHER_WORDS: self.other_words_bytes}


def remedy(folder: Path) -> str:
    """Return a sentence that tells the user how to replace a store that cannot be used."""
    return f"Encode the text again with: {command('encode', '--run', folder.parent, '--force')}"


def read_description(folder: Path) -> Description:
    """Read store.json; raise RunError if it is missing, damaged or in a different format."""
    path = folder / DESCRIPTION
    try:
        found = read_json(path)
    except (OSError, ValueError) as error:
        raise RunError(f"{path} cannot be read ({error}). {remedy(folder)}") from None
    if not isinstance(found, dict) or found.get("format") != STORE_FORMAT or found.get("id_dtype") not in ID_DTYPES:
        raise RunError(f"{folder} is not an id store in format {STORE_FORMAT}. {remedy(folder)}")
    try:
        counts = [shard[name] for kind in KINDS for shard in found[kind] for name, _ in ARRAYS[kind].values()]
    except (KeyError, TypeError):
        counts = [None]
    counts.append(found.get("other_words_bytes", 0))
    if not all(type(count) is int and 0 <= count < 2**60 for count in counts):
        raise RunError(f"{path} does not list the sizes of the id store's files. {remedy(folder)}")
    return Description(
        id_dtype=found["id_dtype"],
        vocabulary_digest=str(found.get("vocabulary_digest")),
        shards={kind: found[kind] for kind in KINDS},
        other_words_bytes=found.get("other_words_bytes"),
    )


def store_files(folder: Path) -> list[Path]:
    """Return the paths of an id store's description and of the files that it lists."""
    return [folder / name for name in (*read_description(folder).file_bytes(), DESCRIPTION)]


_CHECKED_IDS = 2**22


def load_id_store(
    folder: Path, vocabulary: Vocabulary, num_slots: int | None = None, *, reads_all: bool = False
) -> IdStore:
    """Open an id store, whose shards are memory-mapped on use.

    `num_slots` is None in token mode. `reads_all` checks every id and offset, and not only the sizes of the files.

    Raises:
        RunError: If the store is damaged, or was encoded with a different vocabulary or for the other mode.
    """
    description = read_description(folder)
    if description.vocabulary_digest != vocabulary.digest():
        raise RunError(
            f"{folder} was encoded with a different vocabulary (digest {description.vocabulary_digest[:19]}...,"
            f" but vocab.data has {vocabulary.digest()[:19]}...). {remedy(folder)}"
        )
    if (description.other_words_bytes is not None) != (num_slots is not None):
        raise RunError(f"{folder} was encoded for a model in a different mode (model.mode). {remedy(folder)}")
    for name, size in description.file_bytes().items():
        path = folder / name
        actual = path.stat().st_size if path.exists() else 0
        if actual != size or not path.exists():
            raise RunError(f"{path} is missing or has {actual} bytes instead of {size}. {remedy(folder)}")
    other_words = list(iter_lines(folder / OTHER_WORDS, drop_mark=False)) if num_slots is not None else []
    shards = {kind: _Shards(folder, kind, description) for kind in KINDS}
    if reads_all:
        for each in shards.values():
            each.require_sound(len(vocabulary) + len(other_words))
    heldout = shards["heldout"]
    return IdStore(
        EncodedSentences(shards["train"].counts, shards["train"].open),
        HeldoutSentences(heldout.counts, heldout.open, heldout.read("characters"), heldout.read("spelling")),
        Lexicon(vocabulary, num_slots, other_words),
    )


class _Shards:
    def __init__(self, folder: Path, kind: str, description: Description) -> None:
        self._folder, self._kind, self._description = folder, kind, description
        self.counts = description.shards[kind]
        self._arrays = ARRAYS[kind]

    def open(self, number: int) -> ShardArrays:
        arrays = {
            suffix: self._map(number, suffix) for suffix in ("ids", "offsets", "documents") if suffix in self._arrays
        }
        return ShardArrays(arrays["ids"], arrays["offsets"], arrays.get("documents", np.zeros(1, np.uint64)))

    def _map(self, number: int, suffix: str) -> NDArray[Any]:
        count_name, extra = self._arrays[suffix]
        length = self.counts[number][count_name] + extra
        dtype = self._description.array_dtype(suffix)
        if not length:  # an empty file cannot be mapped
            return np.zeros(0, dtype)
        path = self._folder / f"{shard_name(self._kind, number)}.{suffix}"
        # Slicing a plain array is several times faster than slicing a memmap.
        return np.asarray(np.memmap(path, dtype, "r", shape=(length,)))

    def require_sound(self, num_words: int) -> None:
        """Raise RunError unless all ids belong to words, and offsets rise from 0 to the number of items they divide."""
        for number in range(len(self.counts)):
            arrays = self.open(number)
            bounds = {"offsets": (arrays.offsets, len(arrays.ids))}
            if "documents" in self._arrays:
                bounds["documents"] = (arrays.documents, len(arrays.offsets) - 1)
            for suffix, (starts, end) in bounds.items():
                if starts[0] != 0 or starts[-1] != end or (starts[1:] < starts[:-1]).any():
                    raise self._damaged(number, suffix, f"its values do not rise from 0 to {end:,}")
            for start in range(0, len(arrays.ids), _CHECKED_IDS):
                if (largest := int(arrays.ids[start : start + _CHECKED_IDS].max())) >= num_words:
                    raise self._damaged(number, "ids", f"it has id {largest:,}, but ids must be below {num_words:,}")

    def _damaged(self, number: int, suffix: str, problem: str) -> RunError:
        path = self._folder / f"{shard_name(self._kind, number)}.{suffix}"
        return RunError(f"{path} is damaged: {problem}. {remedy(self._folder)}")

    def read(self, suffix: str) -> NDArray[Any]:
        """Return the arrays of all shards concatenated, in memory."""
        dtype = self._description.array_dtype(suffix)
        return np.concatenate([np.zeros(0, dtype), *(self._map(number, suffix) for number in range(len(self.counts)))])
