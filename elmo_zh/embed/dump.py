"""Vectors of a whole file to HDF5, in parts, so that a dump that was stopped goes on where it stopped."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from elmo_zh.embed.embedder import ElmoEmbedder, check_layers, select_layers
from elmo_zh.errors import CorpusError, OutputError
from elmo_zh.files import atomic_path, file_digest, locked, remove, write_json
from elmo_zh.hdf5 import create_hdf5
from elmo_zh.reporter import Progress, Reporter
from elmo_zh.text.corpus import iter_lines
from elmo_zh.text.segmenters import split_tokens

# A part ends after so many lines or tokens: little is lost, few files are joined, and memory stays bounded.
PART_LINES = 2000
PART_TOKENS = 20_000


@dataclass(frozen=True, kw_only=True)
class DumpSettings:
    """How a file becomes vectors.

    Attributes:
        segmented: Tokens are split at U+0020 and looked up as they are; else lines are normalised and segmented.
        layers: all, average, top or a number.
        dtype: float32 or float16.
        sentence_index: Add AllenNLP's sentence_to_index.
        stateful: The state is carried from line to line.
    """

    segmented: bool
    layers: str
    dtype: str
    sentence_index: bool
    stateful: bool = False


@dataclass(kw_only=True)
class DumpCounts:
    """What a dump holds."""

    lines: int = 0
    empty_lines: int = 0
    tokens: int = 0
    unknown_tokens: int = 0
    cut_tokens: int = 0


def dump_vectors(
    embedder: ElmoEmbedder, source: Path, output: Path, settings: DumpSettings, *, force: bool, reporter: Reporter
) -> DumpCounts:
    """Write the vectors of each line of a text file to HDF5.

    Dataset "0", "1", ... is the line's vectors, (L + 1, n, 2P) for all layers, else (n, 2P); tokens/<line> its tokens.
    An empty line has n = 0. Root attributes: model digest, layers, dtype, segmenter.

    Args:
        embedder: The model.
        source: One sentence a line, UTF-8, plain or compressed.
        output: The HDF5 file, complete or not there at all.
        settings: What to write.
        force: Replace an existing output, and do not continue an unfinished one.
        reporter: Where to tell.

    Raises:
        OutputError: If the output exists, or an unfinished one is of another text, model or settings.
        CorpusError: If the text cannot be read.
    """
    check_layers(settings.layers, embedder.num_layers)
    parts = output.with_name(output.name + ".parts")
    refusal = f"{output} is being written by another elmo-zh process. Wait for it, or choose another --output."
    with locked(output.with_name(output.name + ".lock"), refusal):
        if output.exists() and not force:
            raise OutputError(f"{output} exists already. Choose another --output, or replace it with --force.")
        counts = _prepare_parts(embedder, source, parts, settings, force=force)
        try:
            with reporter.progress("embed", unit="lines", initial=counts.lines) as progress:
                for sentences in _iter_part_sentences(embedder, source, counts.lines, segmented=settings.segmented):
                    _write_part(embedder, sentences, parts, settings, counts, progress)
            _join_parts(parts, output, embedder, settings)
            remove(parts)
        finally:
            if not _finished_parts(parts):
                remove(parts)  # nothing to go on from
    return counts


def _prepare_parts(
    embedder: ElmoEmbedder, source: Path, parts: Path, settings: DumpSettings, *, force: bool
) -> DumpCounts:
    """Open or make the folder of parts; return what the finished ones hold."""
    manifest = {
        "source_digest": file_digest(source),
        "model_digest": embedder.bundle.digest,
        **asdict(settings),
    }
    known = parts / "manifest.json"
    if force or not _finished_parts(parts):
        remove(parts)
    elif json.loads(known.read_text(encoding="utf-8")) != manifest:
        raise OutputError(
            f"{parts} holds an unfinished output of another text, model or settings."
            " Give the same ones to continue it, or --force to start anew."
        )
    write_json(known, manifest)
    latest = max(parts.glob("part-*.json"), default=None)
    if settings.stateful:
        _restore_state(embedder, latest)
    return DumpCounts(**json.loads(latest.read_text(encoding="utf-8"))) if latest else DumpCounts()


def _restore_state(embedder: ElmoEmbedder, latest: Path | None) -> None:
    """Let the state be what it was after the latest finished part, or zeros."""
    embedder.reset_state()
    if latest is not None:
        with h5py.File(latest.with_suffix(".hdf5"), "r") as part:
            embedder.restore_state({name: array[()] for name, array in part["state"].items()})


def _iter_part_sentences(
    embedder: ElmoEmbedder, source: Path, first: int, *, segmented: bool
) -> Iterator[list[list[str]]]:
    """Yield the tokens of the lines from `first` on, as many at a time as make a part."""
    sentences: list[list[str]] = []
    num_tokens = 0
    for number, line in enumerate(islice(iter_lines(source), first, None), start=first + 1):
        tokens = split_tokens(line) if segmented else embedder.tokens(line)
        if any("\0" in token for token in tokens):
            raise CorpusError(f"{source}: line {number} holds a NUL character, which HDF5 cannot store. Remove it.")
        sentences.append(tokens)
        num_tokens += len(tokens)
        if len(sentences) >= PART_LINES or num_tokens >= PART_TOKENS:
            yield sentences
            sentences, num_tokens = [], 0
    if sentences:
        yield sentences


def _write_part(
    embedder: ElmoEmbedder,
    sentences: list[list[str]],
    parts: Path,
    settings: DumpSettings,
    counts: DumpCounts,
    progress: Progress,
) -> None:
    """Write one closed HDF5 file and then the running counts, which say that it is whole."""
    vectors = embedder.embed_tokens(sentences)
    first = counts.lines
    name = f"part-{first:012d}"
    with atomic_path(parts / f"{name}.hdf5") as unfinished, create_hdf5(unfinished) as file:
        tokens_group = file.create_group("tokens")
        for number, (tokens, vector) in enumerate(zip(sentences, vectors, strict=True), start=first):
            file.create_dataset(str(number), data=select_layers(vector, settings.layers).astype(settings.dtype))
            tokens_group.create_dataset(str(number), data=np.array(tokens, object), dtype=h5py.string_dtype())
            counts.tokens += len(tokens)
            counts.unknown_tokens += embedder.count_unknown(tokens)
            counts.cut_tokens += embedder.count_cut(tokens)
            counts.empty_lines += not tokens
            progress.update(1)
        for part, array in embedder.state_arrays().items() if settings.stateful else ():
            file.create_dataset(f"state/{part}", data=array)
    counts.lines += len(sentences)
    write_json(parts / f"{name}.json", asdict(counts))


def _attributes(embedder: ElmoEmbedder, settings: DumpSettings) -> dict[str, Any]:
    segmenter = json.dumps(embedder.bundle.info["segmenter"], ensure_ascii=False)
    stateful = {"stateful": True} if settings.stateful else {}
    return {
        **stateful,
        "model_digest": embedder.bundle.digest,
        "layers": settings.layers,
        "dtype": settings.dtype,
        "segmenter": "as given" if settings.segmented else segmenter,
    }


def _finished_parts(parts: Path) -> list[Path]:
    return [record.with_suffix(".hdf5") for record in sorted(parts.glob("part-*.json"))]


def _join_parts(parts: Path, output: Path, embedder: ElmoEmbedder, settings: DumpSettings) -> None:
    with atomic_path(output) as unfinished, create_hdf5(unfinished) as joined:
        joined.attrs.update(_attributes(embedder, settings))
        tokens = joined.create_group("tokens")
        for path in _finished_parts(parts):
            with h5py.File(path, "r") as part:
                for name in _line_names(part):
                    part.copy(part[name], joined, name)
                    part.copy(part["tokens"][name], tokens, name)
        if settings.sentence_index:
            _write_sentence_index(joined)


def _line_names(file: Any) -> Iterator[str]:
    return (name for name in file if name not in ("tokens", "state"))


def _write_sentence_index(file: Any) -> None:
    """Add AllenNLP's dataset: a JSON object from sentence to line, of which it keeps the last of equal ones."""
    index = {
        " ".join(token.decode("utf-8") for token in file["tokens"][name][()]): name
        for name in sorted(_line_names(file), key=int)
    }
    file.create_dataset("sentence_to_index", data=[json.dumps(index, ensure_ascii=False)], dtype=h5py.string_dtype())
