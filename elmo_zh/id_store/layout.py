"""The files of an id store, and its description in store.json."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmo_zh.errors import RunError
from elmo_zh.invocation import command
from elmo_zh.run.files import read_json

STORE_FORMAT = 2
DESCRIPTION = "store.json"
OTHER_WORDS = "other_words.txt"
KINDS = ("train", "heldout")
ID_DTYPES = ("<u2", "<u4")
# The arrays of a shard by kind and suffix: the count in store.json that gives its length, and a number to add to it.
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
    """Return the name that the files of a shard have before their suffixes."""
    return f"{kind}-{number:05d}"


@dataclass(frozen=True, kw_only=True)
class Description:
    """The contents of store.json.

    Attributes:
        id_dtype: dtype of the ids.
        vocabulary_digest: Digest of the vocabulary that the text was encoded with.
        shards: Counts of each shard, by kind.
        other_words_bytes: Size of other_words.txt; None in token mode.
    """

    id_dtype: str
    vocabulary_digest: str
    shards: Mapping[str, Sequence[Mapping[str, int]]]
    other_words_bytes: int | None

    def array_dtype(self, suffix: str) -> str:
        """Return the dtype of the arrays with a suffix."""
        return _DTYPES.get(suffix, self.id_dtype)

    def file_names(self) -> Iterator[str]:
        """Yield the names of all files except store.json."""
        for kind in KINDS:
            for number in range(len(self.shards[kind])):
                yield from (f"{shard_name(kind, number)}.{suffix}" for suffix in ARRAYS[kind])
        if self.other_words_bytes is not None:
            yield OTHER_WORDS


def remedy(folder: Path) -> str:
    """Return what the user should do about a store that cannot be used."""
    return f"Make it again with: {command('encode', '--run', folder.parent, '--force')}"


def read_description(folder: Path) -> Description:
    """Read store.json."""
    path = folder / DESCRIPTION
    try:
        found = read_json(path)
    except (OSError, ValueError) as error:
        raise RunError(f"{path} cannot be read ({error}). {remedy(folder)}") from None
    if not isinstance(found, dict) or found.get("format") != STORE_FORMAT or found.get("id_dtype") not in ID_DTYPES:
        raise RunError(f"{folder} is not an id store of format {STORE_FORMAT}. {remedy(folder)}")
    shards: dict[str, Any] = {kind: found.get(kind) for kind in KINDS}
    other_words_bytes = found.get("other_words_bytes")
    if not all(_are_shards(kind, shards[kind]) for kind in KINDS) or not (
        other_words_bytes is None or _is_count(other_words_bytes)
    ):
        raise RunError(f"{path} does not give the lengths of the store's files. {remedy(folder)}")
    return Description(
        id_dtype=found["id_dtype"],
        vocabulary_digest=str(found.get("vocabulary_digest")),
        shards=shards,
        other_words_bytes=other_words_bytes,
    )


def _are_shards(kind: str, shards: Any) -> bool:
    names = {name for name, _ in ARRAYS[kind].values()}
    return isinstance(shards, list) and all(
        isinstance(shard, dict) and all(_is_count(shard.get(name)) for name in names) for shard in shards
    )


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**60


def store_files(folder: Path) -> list[Path]:
    """Return the files of an id store according to its description."""
    return [folder / name for name in (*read_description(folder).file_names(), DESCRIPTION)]
