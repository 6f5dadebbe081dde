"""The first half of a dump: the lines of a text become tokens, all of them before the first vector.

Then the number of tokens is known, so that the vectors can be written where they stay.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress, islice
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from elmo_zh.corpus.input_texts import InputText
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.embed.formats import hdf5_packed
from elmo_zh.embed.line_blocks import Contents, TextBlock
from elmo_zh.embed.rows import iter_rows
from elmo_zh.embed.survey import Survey, count_lines_and_tokens
from elmo_zh.embed.unfinished import DumpCounts, Parts
from elmo_zh.errors import CorpusError
from elmo_zh.run.files import atomic_path, file_digest
from elmo_zh.run.reporter import Reporter
from elmo_zh.text.alignment import TokenisedLine

# A file of tokens ends after so many lines or tokens: little is lost by an interruption, and memory stays bounded.
TEXT_LINES = 50_000
TEXT_TOKENS = 500_000
# Attributes of a file of tokens: how many of them are longer than the character slots, and how many unknown ones read
# as their parts.
_CUT_TOKENS, _BACKED_OFF_TOKENS = "cut_tokens", "backed_off_tokens"


def describe_model(embedder: ElmoEmbedder) -> dict[str, str]:
    """Return which model computes the vectors, and how."""
    return {
        "model_digest": embedder.bundle.digest,
        "precision": embedder.precision,
        "unknown": embedder.unknown,
    }


def open_parts(
    parts: Parts,
    embedder: ElmoEmbedder,
    text: InputText,
    identity: Mapping[str, Any],
    *,
    segmented: bool,
    split: bool,
    force: bool,
    reporter: Reporter,
) -> Survey:
    """Create the folder of an unfinished output, or keep what is finished in it, and return the size of the text.

    Args:
        parts: The folder.
        embedder: The model.
        text: The text.
        identity: What the output depends on, besides the bytes of the text.
        segmented: The text is segmented.
        split: Its lines are split into sentences.
        force: Start over in any case.
        reporter: Receives how the text is read.

    Raises:
        CorpusError: If the text cannot be read.
        OutputError: If the folder holds vectors of another text, model or settings.
    """
    survey = None if force else parts.survey(identity)
    if survey is None or survey.source_digest != file_digest(text.source.path):
        survey = count_lines_and_tokens(embedder, text, segmented=segmented, split=split, reporter=reporter)
    parts.open({"source_digest": survey.source_digest, **identity}, survey, force=force)
    return survey


def write_text_files(
    embedder: ElmoEmbedder,
    text: InputText,
    lines: range,
    parts: Parts,
    describe: Callable[..., Contents],
    reporter: Reporter,
) -> None:
    """Write the tokens of those lines that are not in finished files of tokens.

    Args:
        embedder: The model.
        text: The text.
        lines: The lines to take: of the sentences, if lines are split.
        parts: The unfinished output.
        describe: Returns the description of `num_lines` lines with `num_tokens` tokens from `first_line` on.
        reporter: Receives the progress.

    Raises:
        CorpusError: If the text cannot be read, holds a NUL character in a token, or has changed since its survey.
    """
    kind = describe(num_lines=0, num_tokens=0)
    if parts.remove_text_files(from_damaged=True):
        reporter.warn(f"Some files of tokens in {parts.path} are damaged, so that part of the text is read again.")
    done = sum(_count(path).lines for path in parts.text_files())
    if done:
        reporter.note(f"Resuming: {done:,} of {len(lines):,} lines have their tokens.")
    with reporter.progress("tokens", unit="lines", total=len(lines), initial=done) as progress:
        for block_lines in _iter_prepared(embedder, text, range(lines.start + done, lines.stop), kind):
            tokens = [token for line in block_lines for token in line.tokens]
            contents = describe(first_line=lines.start + done, num_lines=len(block_lines), num_tokens=len(tokens))
            counted = {_CUT_TOKENS: embedder.count_cut(tokens), _BACKED_OFF_TOKENS: _count_backed_off(embedder, tokens)}
            block = _build_block(embedder, block_lines, tokens, contents)
            with atomic_path(parts.text_file(contents.first_line)) as unfinished:
                described = contents.with_attributes(counted)
                hdf5_packed.write_text(unfinished, described, [block], with_vectors=False)
            parts.finish_text_file(contents.first_line)
            done += len(block_lines)
            progress.update(len(block_lines))
    if done != len(lines):
        parts.remove()
        raise CorpusError(f"{text.name} has changed while it was read. Type the same command again.")


@dataclass(frozen=True, eq=False)
class _PreparedRow(TokenisedLine):
    """The tokens of a row, its text, and the number of its line; the offsets are those in that line."""

    text: str
    line: int


def _iter_prepared(
    embedder: ElmoEmbedder, text: InputText, lines: range, kind: Contents
) -> Iterator[list[_PreparedRow]]:
    """Yield the rows as tokens, as many at a time as go into one file."""
    chosen: list[_PreparedRow] = []
    num_tokens = 0
    for row in islice(iter_rows(text, split=kind.has_source_lines), lines.start, lines.stop):
        line = embedder.prepare(row.text, segmented=not kind.has_offsets)
        if "\0" in row.text and any("\0" in token for token in line.tokens):
            name, number = text.place(row.line)
            raise CorpusError(f"{name}: line {number + 1} holds a NUL character, which HDF5 cannot store. Remove it.")
        chosen.append(_PreparedRow(line.tokens, line.offsets + np.int32(row.start), row.text, row.line))
        num_tokens += len(line.tokens)
        if len(chosen) >= TEXT_LINES or num_tokens >= TEXT_TOKENS:
            yield chosen
            chosen, num_tokens = [], 0
    if chosen:
        yield chosen


def _count_backed_off(embedder: ElmoEmbedder, tokens: Sequence[str]) -> int:
    """Return how many tokens are outside the vocabulary and read as their parts; 0 unless `unknown` is backoff."""
    vocabulary = embedder.bundle.vocabulary
    if embedder.unknown != "backoff" or vocabulary is None:
        return 0
    unknown = Counter(compress(tokens, embedder.find_unknown(tokens)))
    return sum(count for token, count in unknown.items() if vocabulary.find_subwords(token))


def _build_block(
    embedder: ElmoEmbedder, lines: Sequence[_PreparedRow], tokens: list[str], contents: Contents
) -> TextBlock:
    return TextBlock(
        first_line=contents.first_line,
        line_offsets=np.cumsum([0, *(len(line.tokens) for line in lines)], dtype=np.int64),
        tokens=[token.encode() for token in tokens],
        unknown=embedder.find_unknown(tokens),
        character_offsets=np.concatenate([line.offsets for line in lines]) if contents.has_offsets else None,
        source_lines=np.array([line.line for line in lines], np.int64) if contents.has_source_lines else None,
        texts=[line.text.replace("\0", "\ufffd").encode() for line in lines] if contents.has_text else None,
    )


def count_text(parts: Parts) -> DumpCounts:
    """Return the counts of all files of tokens."""
    counts = DumpCounts()
    for path in parts.text_files():
        counts.add(_count(path))
    return counts


def _count(path: Path) -> DumpCounts:
    with h5py.File(path, "r") as file:
        offsets = file["line_offsets"][()]
        return DumpCounts(
            lines=len(offsets) - 1,
            empty_lines=int((np.diff(offsets) == 0).sum()),
            tokens=int(offsets[-1]),
            unknown_tokens=int(file["unknown"][()].sum()),
            cut_tokens=int(file.attrs[_CUT_TOKENS]),
            # Unfinished outputs of earlier versions lack it.
            backed_off_tokens=int(file.attrs.get(_BACKED_OFF_TOKENS, 0)),
        )


def write_packed(parts: Parts, contents: Contents, counts: DumpCounts) -> None:
    """Write the packed file of all lines, with room for their vectors, and remove the files of tokens."""
    parts.remove_records()
    text_files = parts.text_files()
    with atomic_path(parts.packed) as unfinished:
        blocks = hdf5_packed.iter_text_blocks(text_files)
        hdf5_packed.write_text(unfinished, contents, blocks, with_vectors=True)
    parts.save_counts(counts, hdf5_packed.VectorFile(parts.packed).region)
    parts.remove_text_files()
