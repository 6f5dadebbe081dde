"""Build an id store from parts, one for each segmented file."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.corpus.text_files import iter_blocks
from elmo_zh.id_store import ARRAYS, DESCRIPTION, OTHER_WORDS, STORE_FORMAT
from elmo_zh.run.arrays import read_numbers, write_numbers
from elmo_zh.run.files import file_digest, file_stamp, write_json
from elmo_zh.run.job import Files, FinishedPart, Json, Step, Work
from elmo_zh.text.segmenters import split_tokens
from elmo_zh.vocabulary.spelling import SpellingModel, load_spelling_model
from elmo_zh.vocabulary.vocabulary import SPECIALS, UNKNOWN_ID, Vocabulary, load_vocabulary

# Ids of a line end and of the empty string between two spaces. No vocabulary has that many rows.
_LINE_END, _EMPTY = 2**32 - 1, 2**32 - 2


class _GrowingIds(dict[str, int]):
    """Ids by word; looking up any other word adds it with the next free id above the vocabulary."""

    def __init__(self, known: dict[str, int], num_rows: int) -> None:
        super().__init__(known)
        self._num_rows = num_rows
        self.others: list[str] = []

    def __missing__(self, word: str) -> int:
        number = self[word] = self._num_rows + len(self.others)
        self.others.append(word)
        return number


@dataclass(frozen=True, kw_only=True)
class _EncodeShard:
    vocabulary: Path
    character_counts: Path
    split_unknown: bool  # Whether words outside the vocabulary are split, as in `Vocabulary.split`

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        return load_vocabulary(self.vocabulary)

    @cached_property
    def _ids(self) -> dict[str, int]:
        """The ids of words, line ends and empty strings."""
        words = {word: row for row, word in enumerate(self._vocabulary.tokens) if row >= len(SPECIALS)}
        return {**words, "\n": _LINE_END, "": _EMPTY}

    @cached_property
    def _spelling(self) -> SpellingModel:
        return load_spelling_model(self.character_counts)

    def __call__(self, shard: tuple[str, Path], files: Files) -> Json:
        """Write a segmented file's arrays and return its counts.

        Words outside the vocabulary get provisional ids.
        """
        kind, text = shard
        id_of_word = _GrowingIds(self._ids, len(self._vocabulary))
        encoded = [_encode(block, id_of_word) for block in self._iter_blocks(text)]
        ids = np.concatenate([np.zeros(0, "<u4"), *(block_ids for block_ids, _ in encoded)])
        lengths = np.concatenate([np.zeros(0, "<u8"), *(block_lengths for _, block_lengths in encoded)])
        num_unknown = int(np.count_nonzero(ids >= len(self._vocabulary)))
        measures = self._measures(text) if kind == "heldout" else {}
        for suffix, array in {"ids": ids, "lengths": lengths, **measures}.items():
            with files.file(suffix) as unfinished:
                write_numbers(unfinished, array)
        with files.file("words") as unfinished:
            unfinished.write_bytes(_lines(id_of_word.others))
        return {"tokens": len(ids), "sentences": len(lengths), "unknown": num_unknown}

    def _iter_blocks(self, text: Path) -> Iterator[str]:
        """Yield the text in blocks of whole lines, with unknown words split if the settings say so."""
        for block in iter_blocks(text):
            lines = (" ".join(self._vocabulary.split(line.split(" "))) for line in block.split("\n"))
            yield "\n".join(lines) if self.split_unknown else block

    def _measures(self, text: Path) -> dict[str, NDArray[Any]]:
        """Return the number of characters in each sentence's words, and the cost of spelling the unknown ones."""
        lines = (line for block in self._iter_blocks(text) for line in block.split("\n")[:-1])
        sentences = [split_tokens(line) for line in lines]
        nats = [sum(self._spelling.nats(word) for word in words if word not in self._vocabulary) for words in sentences]
        characters = [sum(map(len, words)) for words in sentences]
        return {"characters": np.asarray(characters, "<u4"), "spelling": np.asarray(nats, "<f8")}


def _encode(block: str, id_of_word: Mapping[str, int]) -> tuple[NDArray[np.uint32], NDArray[np.uint64]]:
    """Return the ids of the words in a block of lines, and the number of words in each line."""
    words = block.replace("\n", " \n ").split(" ")
    block_ids = np.fromiter(map(id_of_word.__getitem__, words), "<u4", len(words))
    block_ids = block_ids[block_ids != _EMPTY]
    is_end = block_ids == _LINE_END
    return block_ids[~is_end], (np.diff(np.flatnonzero(is_end), prepend=-1) - 1).astype("<u8")


def _lines(words: Iterable[str]) -> bytes:
    return "".join(f"{word}\n" for word in words).encode()


@dataclass(frozen=True, kw_only=True)
class EncodeJob:
    """Encodes segmented files, grouped by kind, into a store that is the same on any engine."""

    files: Mapping[str, Sequence[Path]]
    vocabulary: Path
    character_counts: Path
    num_slots: int | None  # as in `Lexicon`
    output: Path
    split_unknown: bool = False

    inputs = ()
    valuable = ()
    may_replace = staticmethod(Path.is_dir)

    @property
    def _shards(self) -> list[tuple[str, Path]]:
        return [(kind, path.absolute()) for kind in ARRAYS for path in self.files[kind]]

    def made_from(self) -> dict[str, Any]:
        """Return everything that the arrays depend on."""
        return {
            "format": STORE_FORMAT,
            "vocabulary": file_digest(self.vocabulary),
            "character_counts": file_digest(self.character_counts),
            "num_slots": self.num_slots,
            "split_unknown": self.split_unknown,
            "files": [file_stamp(path) for _, path in self._shards],
        }

    def make(self, path: Path, work: Work) -> dict[str, int]:
        """Encode all files and write the store; return the total counts."""
        # Loaded here too, so that a damaged file is reported at the start, and also if there is no held-out text.
        load_spelling_model(self.character_counts)
        vocabulary = load_vocabulary(self.vocabulary)
        encode = _EncodeShard(
            vocabulary=self.vocabulary.absolute(),
            character_counts=self.character_counts.absolute(),
            split_unknown=self.split_unknown,
        )
        step = Step(name="encode", compute=encode, unit="tokens", size=itemgetter("tokens"))
        parts: dict[str, list[FinishedPart]] = {kind: [] for kind in ARRAYS}
        for (kind, _), part in zip(self._shards, work.run(step, self._shards), strict=True):
            parts[kind].append(part)
        return self._write(path, parts, vocabulary)

    def _write(self, path: Path, parts: Mapping[str, Sequence[FinishedPart]], vocabulary: Vocabulary) -> dict[str, int]:
        other_ids: dict[str, int] | None = {} if self.num_slots is not None else None
        # In character mode there may be many ids above the vocabulary.
        id_dtype = "<u2" if len(vocabulary) <= 2**16 and other_ids is None else "<u4"
        path.mkdir()
        for kind, suffixes in ARRAYS.items():
            for suffix in suffixes:
                with (path / f"{kind}.{suffix}").open("wb") as file:
                    if suffix == "ids":
                        for ids in _iter_ids(parts[kind], len(vocabulary), other_ids):
                            file.write(ids.astype(id_dtype).tobytes())
                    elif suffix == "offsets":
                        file.writelines(offsets.tobytes() for offsets in _iter_offsets(parts[kind]))
                    else:
                        file.writelines(part.file(suffix).read_bytes() for part in parts[kind])
        counts = {
            f"{kind}_{item}": sum(part.value()[item] for part in parts[kind])
            for kind in ARRAYS
            for item in ("tokens", "sentences", "unknown")
        }
        if other_ids is not None:
            num_bytes = (path / OTHER_WORDS).write_bytes(_lines(other_ids))
            counts |= {"other_words": len(other_ids), "other_words_bytes": num_bytes}
        description = {"format": STORE_FORMAT, "id_dtype": id_dtype, "vocabulary_digest": vocabulary.digest()}
        write_json(path / DESCRIPTION, {**description, **counts})
        return counts


def _iter_ids(
    parts: Iterable[FinishedPart], num_rows: int, other_ids: dict[str, int] | None
) -> Iterator[NDArray[np.uint32]]:
    """Yield the ids of each part; words outside the vocabulary get the id of <UNK>.

    With `other_ids`, they get ids in order of first occurrence in all parts instead, and are added to `other_ids`.
    """
    for part in parts:
        ids = read_numbers(part.file("ids"), "<u4").copy()
        is_other = ids >= num_rows
        if other_ids is None:
            ids[is_other] = UNKNOWN_ID
        else:
            words = part.file("words").read_bytes().decode().split("\n")[:-1]
            numbers = [other_ids.setdefault(word, num_rows + len(other_ids)) for word in words]
            ids[is_other] = np.array(numbers, np.uint32)[ids[is_other] - num_rows]
        yield ids


def _iter_offsets(parts: Iterable[FinishedPart]) -> Iterator[NDArray[np.uint64]]:
    """Yield where the first sentence starts, and then where the sentences of each part end."""
    end = np.zeros(1, "<u8")
    yield end
    for part in parts:
        offsets = np.cumsum(np.append(end, read_numbers(part.file("lengths"), "<u8")), dtype="<u8")
        yield offsets[1:]
        end = offsets[-1:]
