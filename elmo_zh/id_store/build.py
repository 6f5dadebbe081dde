"""Build an id store: one task for each segmented file, and in character mode a second one."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from elmo_zh.engine.engine import Engine
from elmo_zh.id_store.encode_shard import RenumberTask, ShardTask, encode_shard, renumber_shard
from elmo_zh.id_store.layout import ARRAYS, DESCRIPTION, KINDS, OTHER_WORDS, STORE_FORMAT, shard_name
from elmo_zh.run.files import atomic_path, link_or_copy, write_json, written_once
from elmo_zh.run.layout import documents_beside
from elmo_zh.run.reporter import Reporter, counted
from elmo_zh.run.work_folder import Figures, WorkFolder
from elmo_zh.vocabulary.lexicon import Lexicon

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
) -> dict[str, int]:
    """Encode segmented files into a new store, which is written atomically; return its counts.

    The files are the same with every engine.

    Args:
        folder: Folder of the store.
        files: Segmented files by kind, "train" and "heldout".
        vocabulary: Path of vocab.data, which the workers read.
        character_counts: Path of the spelling model of unknown words, which the workers read for held-out text.
        lexicon: Lexicon of that vocabulary. In character mode the words outside the vocabulary are added to it.
        engine: Engine that runs the tasks.
        parts: Folder for finished shards; those that already exist are reused.
        reporter: Receives progress.
    """
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
            character_counts=character_counts.absolute() if kind == "heldout" else None,
        )
        for kind in KINDS
        for number, path in enumerate(files[kind])
    }
    if num_encoded := parts.num_finished(tasks):
        reporter.note(f"Resuming: {num_encoded:,} of {counted(len(tasks), 'shard')} are finished.")
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
    """Give the words outside the vocabulary ids that are the same in all shards, in order of first occurrence."""
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
