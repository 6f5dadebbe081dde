"""One segmented file to one shard of ids; what a worker does."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.corpus.segmented import iter_blocks
from elmo_zh.engine.parts import Figures, PartWriter
from elmo_zh.errors import RunError
from elmo_zh.vocabulary.spelling import SpellingModel, load_spelling_model
from elmo_zh.vocabulary.vocabulary import SPECIALS, UNKNOWN_ID, Vocabulary, load_vocabulary

# What stands for a line's end and for nothing, as between two spaces; no vocabulary has so many rows.
_LINE_END, _NOTHING = 2**32 - 1, 2**32 - 2
# Ids that are renumbered at a time.
_BLOCK_IDS = 2**20


@dataclass(frozen=True, kw_only=True)
class ShardTask:
    """A segmented file to be encoded.

    Attributes:
        text: The file.
        documents: How many sentences each of its documents has, little-endian uint32; None for one document.
        vocabulary: vocab.data.
        vocabulary_digest: What that has to be.
        id_dtype: Of the ids.
        reads_characters: Whether words outside the vocabulary get ids of their own.
        character_counts: For held-out text, the spelling model of unknown words; None for training text.
    """

    text: Path
    documents: Path | None
    vocabulary: Path
    vocabulary_digest: str
    id_dtype: str
    reads_characters: bool
    character_counts: Path | None


class _Ids(dict[str, int]):
    """Ids by word; words that have none get that of <UNK>."""

    def __missing__(self, word: str) -> int:
        return UNKNOWN_ID


class _GrowingIds(_Ids):
    """Ids by word; words that have none get the next ones above those of the vocabulary."""

    def __init__(self, known: dict[str, int], num_rows: int) -> None:
        super().__init__(known)
        self._num_rows = num_rows
        self.others: list[str] = []

    def __missing__(self, word: str) -> int:
        number = self[word] = self._num_rows + len(self.others)
        self.others.append(word)
        return number


@lru_cache(1)
def _load_ids(path: Path, digest: str) -> tuple[Vocabulary, _Ids]:
    """Return a vocabulary, and the ids of its words and of what else stands in a block; kept for the next task."""
    vocabulary = load_vocabulary(path)
    if vocabulary.digest() != digest:
        raise RunError(f"{path} was changed while text is encoded by it. Type the command again.")
    words = {word: row for row, word in enumerate(vocabulary.tokens) if row >= len(SPECIALS)}
    return vocabulary, _Ids({**words, "\n": _LINE_END, "": _NOTHING})


def encode_file(task: ShardTask, writer: PartWriter) -> Figures:
    """Write the arrays of a segmented file and return its counts.

    In character mode words outside the vocabulary get ids in the order in which they come first in this file, and are
    written to a file of their own: only with all files' words can they be numbered for good.
    """
    vocabulary, ids = _load_ids(task.vocabulary, task.vocabulary_digest)
    growing = _GrowingIds(ids, len(vocabulary)) if task.reads_characters else None
    figures = _write_ids(task, writer, ids if growing is None else growing, len(vocabulary))
    if growing is not None:
        with writer.file("words") as unfinished, unfinished.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{word}\n" for word in growing.others)
    if task.character_counts is not None:
        _measure(task.text, writer, vocabulary, load_spelling_model(task.character_counts))
    else:
        figures["documents"] = _write_documents(task, writer, figures["sentences"])
    return figures


def _write_ids(task: ShardTask, writer: PartWriter, ids: _Ids, num_rows: int) -> Figures:
    num_tokens = num_sentences = num_unknown = 0
    with ExitStack() as stack:
        ids_file, offsets_file = (
            stack.enter_context(stack.enter_context(writer.file(suffix)).open("wb"))
            for suffix in ("local" if task.reads_characters else "ids", "offsets")
        )
        offsets_file.write(np.zeros(1, "<u8").tobytes())
        for found, ends in _iter_encoded(task.text, ids):
            ids_file.write(found.astype(task.id_dtype).tobytes())
            offsets_file.write((ends + num_tokens).astype("<u8").tobytes())
            num_tokens += len(found)
            num_sentences += len(ends)
            num_unknown += int(np.count_nonzero((found == UNKNOWN_ID) | (found >= num_rows)))
    return {"tokens": num_tokens, "sentences": num_sentences, "unknown": num_unknown}


def _iter_encoded(path: Path, ids: _Ids) -> Iterator[tuple[NDArray[np.uint32], NDArray[np.int64]]]:
    """Yield the ids of a block's words and, for each of its lines, how many of them there are up to its end."""
    for block in iter_blocks(path):
        words = block.replace("\n", " \n ").split(" ")
        found = np.fromiter(map(ids.__getitem__, words), np.uint32, len(words))
        found = found[found != _NOTHING]
        is_end = found == _LINE_END
        ends = np.flatnonzero(is_end)
        yield found[~is_end], ends - np.arange(len(ends))


def _measure(path: Path, writer: PartWriter, vocabulary: Vocabulary, spelling: SpellingModel) -> None:
    """Write the characters of each sentence's words and what it costs to spell those outside the vocabulary."""
    with ExitStack() as stack:
        characters_file, spelling_file = (
            stack.enter_context(stack.enter_context(writer.file(suffix)).open("wb"))
            for suffix in ("characters", "spelling")
        )
        for block in iter_blocks(path):
            sentences = [[word for word in line.split(" ") if word] for line in block.split("\n")[:-1]]
            characters = [sum(len(word) for word in words) for words in sentences]
            nats = [sum(spelling.nats(word) for word in words if word not in vocabulary) for words in sentences]
            characters_file.write(np.asarray(characters, "<u4").tobytes())
            spelling_file.write(np.asarray(nats, "<f8").tobytes())


def _write_documents(task: ShardTask, writer: PartWriter, num_sentences: int) -> int:
    """Write where each document of a file begins and return how many there are; those without a sentence are none."""
    lengths = np.array([num_sentences], np.uint64)
    if task.documents is not None:
        content = task.documents.read_bytes()
        lengths = np.frombuffer(content[: len(content) // 4 * 4], "<u4").astype(np.uint64)
        if len(content) % 4 or int(lengths.sum()) != num_sentences:
            raise RunError(
                f"{task.documents} ({len(content)} bytes) counts {int(lengths.sum())} sentences, but {task.text.name}"
                f" has {num_sentences}. Make both again with: elmo-zh segment CORPUS"
                f" --run {task.text.parent.parent} --force"
            )
    bounds = np.concatenate([np.zeros(1, np.uint64), np.cumsum(lengths[lengths > 0])])
    with writer.file("documents") as unfinished:
        unfinished.write_bytes(bounds.astype("<u8").tobytes())
    return len(bounds) - 1


@dataclass(frozen=True, kw_only=True)
class RenumberTask:
    """Ids of a shard whose words outside the vocabulary are to have the numbers that they have in all shards.

    Attributes:
        local: The ids as `encode_file` wrote them.
        numbers: The final ids of its other words in their order, uint32.
        num_rows: Rows of the vocabulary, whose ids stay as they are.
    """

    local: Path
    numbers: Path
    num_rows: int


def renumber_file(task: RenumberTask, writer: PartWriter) -> Figures:
    """Write the final ids of a shard."""
    numbers = np.fromfile(task.numbers, "<u4")
    with writer.file("ids") as unfinished, unfinished.open("wb") as output, task.local.open("rb") as local:
        while content := local.read(4 * _BLOCK_IDS):
            ids: NDArray[Any] = np.frombuffer(content, "<u4").copy()
            is_other = ids >= task.num_rows
            ids[is_other] = numbers[ids[is_other] - task.num_rows]
            output.write(ids.tobytes())
    return {}
