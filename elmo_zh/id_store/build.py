"""Build an id store, in one task for each segmented file, or two in character mode."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.corpus.text_files import iter_blocks
from elmo_zh.engine.engine import Engine
from elmo_zh.errors import RunError
from elmo_zh.id_store.layout import ARRAYS, DESCRIPTION, KINDS, OTHER_WORDS, STORE_FORMAT, shard_name
from elmo_zh.invocation import command
from elmo_zh.run.arrays import read_numbers
from elmo_zh.run.files import atomic_path, link_or_copy, write_json, written_once
from elmo_zh.run.layout import documents_beside
from elmo_zh.run.reporter import Reporter, counted
from elmo_zh.run.work_folder import Figures, PartWriter, WorkFolder
from elmo_zh.vocabulary.lexicon import Lexicon
from elmo_zh.vocabulary.spelling import SpellingModel, load_spelling_model
from elmo_zh.vocabulary.vocabulary import SPECIALS, UNKNOWN_ID, Vocabulary, load_vocabulary

# Ids of a line end and of the empty string between two spaces. No vocabulary has that many rows.
_LINE_END, _EMPTY = 2**32 - 1, 2**32 - 2
# Number of ids that are renumbered at a time.
_CHUNK_IDS = 2**20


@dataclass(frozen=True, kw_only=True)
class ShardTask:
    """A segmented file to encode."""

    text: Path
    # File with the number of sentences in each document, little-endian uint32; None if the text is one document.
    documents: Path | None
    vocabulary: Path
    vocabulary_digest: str
    id_dtype: str
    reads_characters: bool  # Whether words outside the vocabulary get ids of their own
    split_unknown: bool  # Whether words outside the vocabulary are split, as in `Vocabulary.split`
    # File of the spelling model for unknown words, for held-out text; None for training text.
    character_counts: Path | None


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


@lru_cache(1)
def _load_ids(path: Path, digest: str) -> tuple[Vocabulary, _Ids]:
    """Return a vocabulary and the ids of its words, line ends and empty strings; cached for the next task."""
    vocabulary = load_vocabulary(path)
    if vocabulary.digest() != digest:
        raise RunError(f"{path} changed while text was being encoded with it. Run the command again.")
    words = {word: row for row, word in enumerate(vocabulary.tokens) if row >= len(SPECIALS)}
    return vocabulary, _Ids({**words, "\n": _LINE_END, "": _EMPTY})


def encode_shard(task: ShardTask, writer: PartWriter) -> Figures:
    """Write a segmented file's arrays and return its counts; in character mode, other words get provisional ids."""
    vocabulary, ids = _load_ids(task.vocabulary, task.vocabulary_digest)
    growing = _GrowingIds(ids, len(vocabulary)) if task.reads_characters else None
    figures = _write_ids(task, writer, ids if growing is None else growing, len(vocabulary))
    if growing is not None:
        with writer.file("words") as unfinished, unfinished.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{word}\n" for word in growing.others)
    if task.character_counts is not None:
        _measure(_iter_blocks(task), writer, vocabulary, load_spelling_model(task.character_counts))
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
        for block_ids, ends in _iter_encoded(_iter_blocks(task), ids):
            ids_file.write(block_ids.astype(task.id_dtype).tobytes())
            offsets_file.write((ends + num_tokens).astype("<u8").tobytes())
            num_tokens += len(block_ids)
            num_sentences += len(ends)
            num_unknown += int(np.count_nonzero((block_ids == UNKNOWN_ID) | (block_ids >= num_rows)))
    return {"tokens": num_tokens, "sentences": num_sentences, "unknown": num_unknown}


def _iter_blocks(task: ShardTask) -> Iterator[str]:
    """Yield the text in blocks of whole lines, with unknown words split if the task says so."""
    vocabulary, _ = _load_ids(task.vocabulary, task.vocabulary_digest)
    for block in iter_blocks(task.text):
        lines = (" ".join(vocabulary.split(line.split(" "))) for line in block.split("\n"))
        yield "\n".join(lines) if task.split_unknown else block


def _iter_encoded(blocks: Iterator[str], ids: _Ids) -> Iterator[tuple[NDArray[np.uint32], NDArray[np.int64]]]:
    for block in blocks:
        words = block.replace("\n", " \n ").split(" ")
        block_ids = np.fromiter(map(ids.__getitem__, words), np.uint32, len(words))
        block_ids = block_ids[block_ids != _EMPTY]
        is_end = block_ids == _LINE_END
        ends = np.flatnonzero(is_end)
        yield block_ids[~is_end], ends - np.arange(len(ends))


def _measure(blocks: Iterator[str], writer: PartWriter, vocabulary: Vocabulary, spelling: SpellingModel) -> None:
    """Write the number of characters in each sentence's words, and the cost of spelling the unknown ones."""
    with ExitStack() as stack:
        characters_file, spelling_file = (
            stack.enter_context(stack.enter_context(writer.file(suffix)).open("wb"))
            for suffix in ("characters", "spelling")
        )
        for block in blocks:
            sentences = [[word for word in line.split(" ") if word] for line in block.split("\n")[:-1]]
            characters = [sum(len(word) for word in words) for words in sentences]
            nats = [sum(spelling.nats(word) for word in words if word not in vocabulary) for words in sentences]
            characters_file.write(np.asarray(characters, "<u4").tobytes())
            spelling_file.write(np.asarray(nats, "<f8").tobytes())


def _write_documents(task: ShardTask, writer: PartWriter, num_sentences: int) -> int:
    """Write the sentence number at which each non-empty document starts; return the number of these documents."""
    lengths = np.array([num_sentences], np.uint64)
    if task.documents is not None:
        content = task.documents.read_bytes()
        lengths = np.frombuffer(content[: len(content) // 4 * 4], "<u4").astype(np.uint64)
        if len(content) % 4 or int(lengths.sum()) != num_sentences:
            raise RunError(
                f"{task.documents} does not match {task.text.name}: it has {len(content)} bytes (expected a multiple"
                f" of 4) and lists {int(lengths.sum())} sentences (expected {num_sentences}). Recreate both files with:"
                f" {command('segment', 'CORPUS', '--run', task.text.parent.parent, '--force')}"
            )
    bounds = np.concatenate([np.zeros(1, np.uint64), np.cumsum(lengths[lengths > 0])])
    with writer.file("documents") as unfinished:
        unfinished.write_bytes(bounds.astype("<u8").tobytes())
    return len(bounds) - 1


@dataclass(frozen=True, kw_only=True)
class RenumberTask:
    """A shard in which words outside the vocabulary get their final ids."""

    local: Path  # Path of the ids that `encode_shard` has written
    numbers: Path  # Path of the final ids of the shard's other words in their order, uint32
    num_rows: int  # Number of vocabulary rows; ids below it do not change


def renumber_shard(task: RenumberTask, writer: PartWriter) -> Figures:
    """Replace the provisional ids in a shard with the final ones."""
    numbers = read_numbers(task.numbers, "<u4")
    with writer.file("ids") as unfinished, unfinished.open("wb") as output, task.local.open("rb") as local:
        while content := local.read(4 * _CHUNK_IDS):
            ids: NDArray[Any] = np.frombuffer(content, "<u4").copy()
            is_other = ids >= task.num_rows
            ids[is_other] = numbers[ids[is_other] - task.num_rows]
            output.write(ids.tobytes())
    return {}


Shards = Mapping[str, Sequence[str]]


def build_id_store(
    folder: Path,
    files: Mapping[str, Sequence[Path]],
    vocabulary: Path,
    character_counts: Path,
    lexicon: Lexicon,
    engine: Engine,
    parts: WorkFolder,
    reporter: Reporter,
    *,
    split_unknown: bool = False,
) -> dict[str, int]:
    """Encode segmented files, grouped by kind, into a new store that is the same on any engine; return its counts."""
    reads_characters = lexicon.num_slots is not None
    # In character mode the number of words outside the vocabulary is not known yet.
    id_dtype = "<u2" if len(lexicon.vocabulary) <= 2**16 and not reads_characters else "<u4"
    digest = lexicon.vocabulary.digest()
    tasks = {
        shard_name(kind, number): ShardTask(
            text=path.absolute(),
            documents=_documents(path) if kind == "train" else None,
            vocabulary=vocabulary.absolute(),
            vocabulary_digest=digest,
            id_dtype=id_dtype,
            reads_characters=reads_characters,
            split_unknown=split_unknown,
            character_counts=character_counts.absolute() if kind == "heldout" else None,
        )
        for kind in KINDS
        for number, path in enumerate(files[kind])
    }
    if num_encoded := parts.num_finished(tasks):
        reporter.note(f"Resuming with {num_encoded:,} of {counted(len(tasks), 'shard')} finished.")
    figures: dict[str, Figures] = {}
    with reporter.progress("encode", unit="tokens") as progress:
        for name, shard_figures in parts.run(engine, encode_shard, tasks):
            figures[name] = shard_figures
            progress.update(shard_figures["tokens"])
    if reads_characters:
        _renumber(lexicon, list(tasks), engine, parts)
    shards = {kind: [shard_name(kind, number) for number in range(len(files[kind]))] for kind in KINDS}
    return _assemble(folder, parts.path, shards, figures, lexicon, {"id_dtype": id_dtype, "vocabulary_digest": digest})


def _documents(text: Path) -> Path | None:
    path = documents_beside(text).absolute()
    return path if path.exists() else None


def _renumber(lexicon: Lexicon, names: Sequence[str], engine: Engine, parts: WorkFolder) -> None:
    """Give words outside the vocabulary ids that are the same in all shards, in order of first occurrence."""
    num_rows = len(lexicon.vocabulary)
    ids: dict[str, int] = {}
    tasks = {}
    for name in names:
        numbers = [ids.setdefault(word, num_rows + len(ids)) for word in _iter_words(parts.path / f"{name}.words")]
        path = (parts.path / f"{name}.numbers").absolute()
        with written_once(path) as unfinished:
            unfinished.write_bytes(np.array(numbers, "<u4").tobytes())
        local = (parts.path / f"{name}.local").absolute()
        tasks[f"{name}.final"] = RenumberTask(local=local, numbers=path, num_rows=num_rows)
    lexicon.other_words.extend(ids)
    for _ in parts.run(engine, renumber_shard, tasks):
        pass


def _iter_words(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8", newline="\n") as file:
        yield from (line.removesuffix("\n") for line in file)


def _assemble(
    folder: Path,
    parts: Path,
    shards: Shards,
    figures: Mapping[str, Figures],
    lexicon: Lexicon,
    description: Mapping[str, Any],
) -> dict[str, int]:
    """Move finished shards into the store and write its description; return the total counts."""
    counts: dict[str, int] = {}
    for kind, names in shards.items():
        for item in ("tokens", "sentences", "unknown", *(["documents"] if kind == "train" else [])):
            counts[f"{kind}_{item}"] = sum(figures[name][item] for name in names)
    with atomic_path(folder) as unfinished:
        unfinished.mkdir()
        for kind, names in shards.items():
            for name in names:
                for suffix in ARRAYS[kind]:
                    is_renumbered = suffix == "ids" and lexicon.num_slots is not None
                    part = f"{name}.final.ids" if is_renumbered else f"{name}.{suffix}"
                    link_or_copy(parts / part, unfinished / f"{name}.{suffix}")
        if lexicon.num_slots is not None:
            path = unfinished / OTHER_WORDS
            with path.open("w", encoding="utf-8", newline="\n") as file:
                file.writelines(f"{word}\n" for word in lexicon.other_words)
            counts |= {"other_words": len(lexicon.other_words), "other_words_bytes": path.stat().st_size}
        shards_counted = {kind: [figures[name] for name in names] for kind, names in shards.items()}
        write_json(unfinished / DESCRIPTION, {"format": STORE_FORMAT, **description, **counts, **shards_counted})
    return counts
