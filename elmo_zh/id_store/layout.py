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
from elmo_zh.language import _
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


def _damaged(path: Path, problem: str) -> RunError:
    """Return the error for a file of a store that cannot be used."""
    message = _("{path} is damaged: {problem}. Encode the text again with: {value}")
    return _unusable(message, path.parent, path=path, problem=problem)


def _unusable(message: str, folder: Path, **gaps: object) -> RunError:
    """Return the error for a store that cannot be used; `value` in the message is the command that replaces it."""
    gaps = {"path": folder, "value": command("encode", "--run", folder.parent, "--force"), **gaps}
    return RunError(message.format(**gaps))


def read_description(folder: Path) -> Description:
    """Read store.json; raise RunError if it is missing, damaged or in a different format."""
    path = folder / DESCRIPTION
    try:
        values = read_json(path)
    except (OSError, ValueError) as error:
        raise _damaged(path, str(error)) from None
    if not isinstance(values, dict) or values.get("format") != STORE_FORMAT or values.get("id_dtype") not in ID_DTYPES:
        raise _damaged(path, _("it is not in format {number}").format(number=STORE_FORMAT))
    try:
        counts = [shard[name] for kind in KINDS for shard in values[kind] for name, _extra in ARRAYS[kind].values()]
    except (KeyError, TypeError):
        counts = [None]
    counts.append(values.get("other_words_bytes", 0))
    if not all(type(count) is int and 0 <= count < 2**60 for count in counts):
        raise _damaged(path, _("it does not list the sizes of the files"))
    return Description(
        id_dtype=values["id_dtype"],
        vocabulary_digest=str(values.get("vocabulary_digest")),
        shards={kind: values[kind] for kind in KINDS},
        other_words_bytes=values.get("other_words_bytes"),
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
        message = _("{path} was encoded with a different vocabulary. Encode the text again with: {value}")
        raise _unusable(message, folder)
    if (description.other_words_bytes is not None) != (num_slots is not None):
        message = _("{path} was encoded for another model.mode. Encode the text again with: {value}")
        raise _unusable(message, folder)
    for name, size in description.file_bytes().items():
        path = folder / name
        if not path.exists() or path.stat().st_size != size:
            raise _damaged(path, _("it should have {number} bytes").format(number=f"{size:,}"))
    other_words = list(iter_lines(folder / OTHER_WORDS, drop_mark=False)) if num_slots is not None else []
    shards = {kind: _Shards(folder, kind, description) for kind in KINDS}
    if reads_all:
        for arrays in shards.values():
            arrays.require_sound(len(vocabulary) + len(other_words))
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
        # Slicing a plain array is several times faster than slicing a memmap.
        return np.asarray(np.memmap(self._path(number, suffix), dtype, "r", shape=(length,)))

    def require_sound(self, num_words: int) -> None:
        """Raise RunError unless all ids belong to words, and offsets rise from 0 to the number of items they divide."""
        for number in range(len(self.counts)):
            arrays = self.open(number)
            bounds = {"offsets": (arrays.offsets, len(arrays.ids))}
            if "documents" in self._arrays:
                bounds["documents"] = (arrays.documents, len(arrays.offsets) - 1)
            for suffix, (starts, end) in bounds.items():
                if starts[0] != 0 or starts[-1] != end or (starts[1:] < starts[:-1]).any():
                    raise _damaged(
                        self._path(number, suffix), _("its values do not rise from 0 to {end}").format(end=f"{end:,}")
                    )
            for start in range(0, len(arrays.ids), _CHECKED_IDS):
                if (largest := int(arrays.ids[start : start + _CHECKED_IDS].max())) >= num_words:
                    problem = _("it has id {largest}, but ids must be below {num_words}").format(
                        largest=f"{largest:,}", num_words=f"{num_words:,}"
                    )
                    raise _damaged(self._path(number, "ids"), problem)

    def _path(self, number: int, suffix: str) -> Path:
        return self._folder / f"{shard_name(self._kind, number)}.{suffix}"

    def read(self, suffix: str) -> NDArray[Any]:
        """Return the arrays of all shards concatenated, in memory."""
        dtype = self._description.array_dtype(suffix)
        return np.concatenate([np.zeros(0, dtype), *(self._map(number, suffix) for number in range(len(self.counts)))])
