"""Build an id store, in one part for each segmented file, or two in character mode."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.corpus.text_files import iter_blocks
from elmo_zh.errors import RunError
from elmo_zh.id_store import ARRAYS, DESCRIPTION, KINDS, OTHER_WORDS, STORE_FORMAT, shard_name
from elmo_zh.invocation import command
from elmo_zh.run.arrays import read_numbers, write_numbers
from elmo_zh.run.files import file_digest, file_stamp, link_or_copy, write_json
from elmo_zh.run.job import Files, FinishedPart, Json, Step, Work
from elmo_zh.run.layout import documents_beside
from elmo_zh.text.segmenters import split_tokens
from elmo_zh.vocabulary.spelling import SpellingModel, load_spelling_model
from elmo_zh.vocabulary.vocabulary import SPECIALS, UNKNOWN_ID, Vocabulary, load_vocabulary

# Ids of a line end and of the empty string between two spaces. No vocabulary has that many rows.
_LINE_END, _EMPTY = 2**32 - 1, 2**32 - 2


class _Ids(dict[str, int]):
    """Ids by word; any other word gets the id of <UNK>."""

    def __missing__(self, word: str) -> int:
        return UNKNOWN_ID


class _GrowingIds(_Ids):
    """Ids by word; any other word is added with the next free id above the vocabulary."""

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
    id_dtype: str
    reads_characters: bool  # Whether words outside the vocabulary get ids of their own
    split_unknown: bool  # Whether words outside the vocabulary are split, as in `Vocabulary.split`

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        return load_vocabulary(self.vocabulary)

    @cached_property
    def _ids(self) -> _Ids:
        """The ids of words, line ends and empty strings."""
        words = {word: row for row, word in enumerate(self._vocabulary.tokens) if row >= len(SPECIALS)}
        return _Ids({**words, "\n": _LINE_END, "": _EMPTY})

    @cached_property
    def _spelling(self) -> SpellingModel:
        return load_spelling_model(self.character_counts)

    def __call__(self, shard: tuple[str, Path], files: Files) -> Json:
        """Write a segmented file's arrays and return its counts.

        In character mode, words outside the vocabulary get provisional ids.
        """
        kind, text = shard
        growing = _GrowingIds(self._ids, len(self._vocabulary)) if self.reads_characters else None
        encoded = [_encode(block, self._ids if growing is None else growing) for block in self._iter_blocks(text)]
        ids = np.concatenate([np.zeros(0, np.uint32), *(block_ids for block_ids, _ in encoded)])
        lengths = np.concatenate([np.zeros(0, np.int64), *(block_lengths for _, block_lengths in encoded)])
        is_unknown = (ids == UNKNOWN_ID) | (ids >= len(self._vocabulary))
        counts = {"tokens": len(ids), "sentences": len(lengths), "unknown": int(np.count_nonzero(is_unknown))}
        arrays = {
            "ids" if growing is None else "local": ids.astype(self.id_dtype),
            "offsets": np.cumsum([0, *lengths]).astype("<u8"),
        }
        if kind == "heldout":
            arrays |= self._measures(text)
        else:
            arrays["documents"] = _document_bounds(text, len(lengths)).astype("<u8")
            counts["documents"] = len(arrays["documents"]) - 1
        for suffix, array in arrays.items():
            with files.file(suffix) as unfinished:
                write_numbers(unfinished, array)
        if growing is not None:
            with files.file("words") as unfinished, unfinished.open("w", encoding="utf-8", newline="\n") as file:
                file.writelines(f"{word}\n" for word in growing.others)
        return counts

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


def _encode(block: str, ids: _Ids) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Return the ids of the words in a block of lines, and the number of words in each line."""
    words = block.replace("\n", " \n ").split(" ")
    block_ids = np.fromiter(map(ids.__getitem__, words), np.uint32, len(words))
    block_ids = block_ids[block_ids != _EMPTY]
    is_end = block_ids == _LINE_END
    return block_ids[~is_end], np.diff(np.flatnonzero(is_end), prepend=-1) - 1


def _document_bounds(text: Path, num_sentences: int) -> NDArray[np.uint64]:
    """Return the sentence number at which each non-empty document starts, and the end of the last."""
    lengths = np.array([num_sentences], np.uint64)
    documents = documents_beside(text)
    if documents.exists():  # otherwise the text is one document
        content = documents.read_bytes()
        lengths = np.frombuffer(content[: len(content) // 4 * 4], "<u4").astype(np.uint64)
        if len(content) % 4 or int(lengths.sum()) != num_sentences:
            again = command("segment", "CORPUS", "--run", text.parent.parent, "--force")
            raise RunError.unfit(documents, text.name, again)
    return np.concatenate([np.zeros(1, np.uint64), np.cumsum(lengths[lengths > 0])])


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
        return [(kind, path.absolute()) for kind in KINDS for path in self.files[kind]]

    def made_from(self) -> dict[str, Any]:
        """Return everything that the arrays depend on."""
        texts = [path for _, path in self._shards]
        documents = filter(Path.exists, map(documents_beside, texts))
        return {
            "format": STORE_FORMAT,
            "vocabulary": file_digest(self.vocabulary),
            "character_counts": file_digest(self.character_counts),
            "num_slots": self.num_slots,
            "split_unknown": self.split_unknown,
            "files": list(map(file_stamp, chain(texts, documents))),
        }

    def make(self, path: Path, work: Work) -> dict[str, int]:
        """Encode all files and write the store; return the total counts."""
        # Loaded here too, so that a damaged file is reported at the start, and also if there is no held-out text.
        load_spelling_model(self.character_counts)
        vocabulary = load_vocabulary(self.vocabulary)
        reads_characters = self.num_slots is not None
        encode = _EncodeShard(
            vocabulary=self.vocabulary.absolute(),
            character_counts=self.character_counts.absolute(),
            # In character mode the number of words outside the vocabulary is not known yet.
            id_dtype="<u2" if len(vocabulary) <= 2**16 and not reads_characters else "<u4",
            reads_characters=reads_characters,
            split_unknown=self.split_unknown,
        )
        step = Step(name="encode", compute=encode, unit="tokens", size=itemgetter("tokens"))
        parts = list(work.run(step, self._shards))
        return self._assemble(path, parts, vocabulary, encode.id_dtype)

    def _assemble(
        self, folder: Path, parts: Sequence[FinishedPart], vocabulary: Vocabulary, id_dtype: str
    ) -> dict[str, int]:
        """Move finished shards into the store and write its description; return the total counts."""
        folder.mkdir()
        counts: dict[str, int] = {}
        shards: dict[str, list[Any]] = {kind: [] for kind in KINDS}
        other_ids: dict[str, int] = {}
        for (kind, _text), part in zip(self._shards, parts, strict=True):
            name = shard_name(kind, len(shards[kind]))
            for suffix in ARRAYS[kind]:
                if suffix == "ids" and self.num_slots is not None:
                    _renumber(part, folder / f"{name}.ids", len(vocabulary), other_ids)
                else:
                    link_or_copy(part.file(suffix), folder / f"{name}.{suffix}")
            shards[kind].append(part.value())
        for kind in KINDS:
            for item in ("tokens", "sentences", "unknown", *(["documents"] if kind == "train" else [])):
                counts[f"{kind}_{item}"] = sum(shard[item] for shard in shards[kind])
        if self.num_slots is not None:
            path = folder / OTHER_WORDS
            with path.open("w", encoding="utf-8", newline="\n") as file:
                file.writelines(f"{word}\n" for word in other_ids)
            counts |= {"other_words": len(other_ids), "other_words_bytes": path.stat().st_size}
        description = {"format": STORE_FORMAT, "id_dtype": id_dtype, "vocabulary_digest": vocabulary.digest()}
        write_json(folder / DESCRIPTION, {**description, **counts, **shards})
        return counts


def _renumber(part: FinishedPart, path: Path, num_rows: int, other_ids: dict[str, int]) -> None:
    """Write a shard's ids; words outside the vocabulary get ids in order of first occurrence in all shards."""
    with part.file("words").open(encoding="utf-8", newline="\n") as file:
        words = (line.removesuffix("\n") for line in file)
        numbers = np.array([other_ids.setdefault(word, num_rows + len(other_ids)) for word in words], np.uint32)
    ids = read_numbers(part.file("local"), "<u4").copy()
    is_other = ids >= num_rows
    ids[is_other] = numbers[ids[is_other] - num_rows]
    write_numbers(path, ids)
