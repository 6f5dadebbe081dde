"""The tokens of a text on disk: `embed` and `index` write all of them before the first vector."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import compress, islice, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elmo_zh.bundle.read import Bundle
from elmo_zh.corpus.input_texts import InputText
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.errors import BundleError, CorpusError
from elmo_zh.language import _
from elmo_zh.run.arrays import load_arrays, save_arrays
from elmo_zh.run.job import Files, FinishedPart, Step, Work
from elmo_zh.run.reporter import Reporter, format_bytes
from elmo_zh.text.preparation import TokenisedLine
from elmo_zh.text.sentences import WINDOW_ITEMS, WINDOW_TOKENS, iter_pieces, iter_windows

# The fields of a `TextBlock` that are arrays, or None, and those that are lists of bytes.
_ARRAYS = ("line_offsets", "unknown", "character_offsets", "source_lines", "starts")
_STRINGS = ("tokens", "texts", "columns")

# Most bytes for the vectors of one line, which are in memory together.
_MOST_LINE_BYTES = 2**31


@dataclass(frozen=True, kw_only=True, eq=False)
class TextBlock:
    """Consecutive lines with N tokens in all, without vectors."""

    first_line: int  # Number of the first line in the text, from 0
    # Line i has the tokens from line_offsets[i] to line_offsets[i + 1], int64, shape (lines + 1,).
    line_offsets: NDArray[np.int64]
    tokens: list[bytes]  # The N tokens, each in UTF-8
    unknown: NDArray[np.bool_]  # True for each token outside the vocabulary, shape (N,)
    # First character of each token in its line, and the one after its last, int32, shape (N, 2); None for text that was
    # already segmented.
    character_offsets: NDArray[np.int32] | None
    # Number, from 0, of the line that each sentence or piece comes from, int64, shape (lines,); None for whole lines.
    source_lines: NDArray[np.int64] | None
    texts: list[bytes]
    # First character of each sentence or piece in that line, int32, shape (lines,); None as above.
    starts: NDArray[np.int32] | None = None
    columns: list[bytes] = field(default_factory=list)  # The other columns of each line's record, as a JSON object

    @property
    def num_lines(self) -> int:
        """The number of lines."""
        return len(self.line_offsets) - 1

    def save(self, path: Path) -> None:
        """Write the lines to a new .npz file."""
        arrays = {name: getattr(self, name) for name in _ARRAYS if getattr(self, name) is not None}
        arrays["first_line"] = np.array(self.first_line)
        for name in _STRINGS:
            strings = getattr(self, name)
            arrays[name] = np.frombuffer(b"".join(strings), np.uint8)
            arrays[f"{name}_ends"] = np.cumsum([len(string) for string in strings], dtype=np.int64)
        save_arrays(path, arrays)

    @classmethod
    def load(cls, path: Path) -> "TextBlock":
        """Read lines written by `save`."""
        arrays = load_arrays(path)
        fields: dict[str, Any] = {name: arrays.get(name) for name in _ARRAYS}
        fields |= {name: _strings(arrays[name], arrays[f"{name}_ends"]) for name in _STRINGS}
        return cls(first_line=int(arrays["first_line"]), **fields)

    def iter_lines(self) -> Iterator[tuple[int, slice]]:
        """Yield the number of each line and the slice of its tokens."""
        offsets = self.line_offsets.tolist()
        for line, (start, end) in enumerate(pairwise(offsets), start=self.first_line):
            yield line, slice(start, end)


def _strings(data: NDArray[np.uint8], ends: NDArray[np.int64]) -> list[bytes]:
    content = data.tobytes()
    return [content[start:end] for start, end in pairwise([0, *ends.tolist()])]


class _Row(NamedTuple):
    """A line, sentence or piece to embed, with its place and, once prepared, its tokens."""

    text: str
    line: int  # Number of its line in the text, from 0
    start: int  # Its first character in that line
    columns: Mapping[str, str]
    is_rest: bool = False  # Whether it is a piece of a long sentence, but not the first
    prepared: TokenisedLine = TokenisedLine.of_tokens([])


def require_sentences(bundle: Bundle) -> None:
    """Raise BundleError unless the model is known to have been trained on sentences."""
    if bundle.text is None or not bundle.text.split_sentences:
        message = _(
            "{path}: the model was not trained on split sentences, or does not say whether it was. Leave out"
            " --split-sentences."
        )
        raise BundleError(message.format(path=bundle.path))


@dataclass(kw_only=True)
class TokenCounts:
    """Counts of a text; if its lines are split or cut, each sentence or piece counts as a line."""

    lines: int = 0
    empty_lines: int = 0  # Lines without a token
    tokens: int = 0
    unknown_tokens: int = 0  # Tokens outside the vocabulary
    cut_tokens: int = 0  # Tokens longer than the character slots
    backed_off_tokens: int = 0  # Unknown tokens that were read as their parts (--unknown backoff)
    cut_lines: int = 0  # Pieces of sentences cut for their length, not counting the first piece

    def add(self, other: "TokenCounts") -> None:
        """Add the counts of another text."""
        for name, value in asdict(other).items():
            setattr(self, name, getattr(self, name) + value)

    def reported(self) -> dict[str, int]:
        """Return the counts that commands report, by name."""
        return {name: count for name, count in asdict(self).items() if name != "cut_lines"}


@dataclass(frozen=True)
class TextTokens:
    """A text's tokens in the work folder of a job, in the parts that a `Tokeniser` wrote, with their counts."""

    parts: Sequence[FinishedPart]
    counts: TokenCounts

    def blocks(self) -> Iterator[TextBlock]:
        """Yield the lines of the text, one block for each part."""
        return (TextBlock.load(part.file("npz")) for part in self.parts)


@dataclass(frozen=True, kw_only=True)
class Tokeniser:
    """Writes the tokens of texts; settings say how a line is split and where it is cut.

    Attributes:
        embedder: The model, which knows how to normalise and segment.
        segmented: Whether lines are already segmented (`split_segmented`), and tokens are looked up as they are.
        split: Whether lines are split into sentences as in training.
        longest: Most characters of a piece of a line; 0 means that lines are not cut.
        part_lines: Most lines of a part.
        part_tokens: A part ends at the line that reaches this many tokens.
    """

    embedder: ElmoEmbedder
    segmented: bool
    split: bool
    longest: int = 0
    part_lines: int = WINDOW_ITEMS
    part_tokens: int = WINDOW_TOKENS

    def described(self) -> dict[str, Any]:
        """Return what the tokens of a text depend on besides the text and `longest`."""
        return {
            **self.embedder.identity(),
            "segmented": self.segmented,
            "split": self.split,
            "part_lines": self.part_lines,
            "part_tokens": self.part_tokens,
        }

    def write(self, text: InputText, work: Work) -> TextTokens:
        """Write the tokens of a text that are not yet in the work folder; return all of them."""
        parts = work.finished("tokens")
        num_lines = sum(part.value()["lines"] for part in parts)

        def iter_parts() -> Iterator[tuple[int, list[_Row]]]:
            first_line = num_lines
            for window in iter_windows(
                self._iter_prepared(text, islice(self._iter_rows(text, work.reporter), num_lines, None)),
                lambda row: len(row.prepared.tokens),
                most_items=self.part_lines,
                most_size=self.part_tokens,
            ):
                yield first_line, window
                first_line += len(window)

        step = Step(name="tokens", compute=self._compute, unit="lines", size=itemgetter("lines"), in_order=True)
        parts = [*parts, *work.run(step, iter_parts(), after=parts)]
        counts = TokenCounts()
        for part in parts:
            counts.add(TokenCounts(**part.value()))
        return TextTokens(parts, counts)

    def _iter_rows(self, text: InputText, reporter: Reporter) -> Iterator[_Row]:
        """Yield the lines of a text, or their sentences or pieces; a line without sentences is one row."""
        segmented = self.segmented or self.embedder.bundle.keeps_tokens
        for number, record in enumerate(text.records(reporter)):
            pieces = iter_pieces(record.line, split=self.split, longest=self.longest, segmented=segmented)
            # White space between sentences is not a sentence.
            rows = [
                _Row(piece, number, start, record.columns, is_rest)
                for start, piece, is_rest in pieces
                if not self.split or piece.strip()
            ]
            yield from rows or [_Row(record.line, number, 0, record.columns)]

    def _compute(self, part: tuple[int, Sequence[_Row]], files: Files) -> dict[str, int]:
        """Write the tokens of rows, with the rows' positions in the text if lines are split or cut; return counts."""
        (first_line, rows), is_part = part, self.split or self.longest > 0
        tokens = [token for row in rows for token in row.prepared.tokens]
        offsets = [row.prepared.offsets + np.int32(row.start) for row in rows]
        has_columns = any(row.columns for row in rows)
        unknown = self.embedder.find_unknown(tokens)
        block = TextBlock(
            first_line=first_line,
            line_offsets=np.cumsum([0, *(len(row.prepared.tokens) for row in rows)], dtype=np.int64),
            tokens=[token.encode() for token in tokens],
            unknown=unknown,
            character_offsets=None if self.segmented else np.concatenate(offsets),
            source_lines=np.array([row.line for row in rows], np.int64) if is_part else None,
            texts=[row.text.encode() for row in rows],
            starts=np.array([row.start for row in rows], np.int32) if is_part else None,
            columns=[json.dumps(row.columns, ensure_ascii=False).encode() for row in rows] if has_columns else [],
        )
        with files.file("npz") as path:
            block.save(path)
        unknown_words = Counter(compress(tokens, unknown))
        counts = TokenCounts(
            lines=len(rows),
            empty_lines=sum(not row.prepared.tokens for row in rows),
            tokens=len(tokens),
            unknown_tokens=unknown_words.total(),
            cut_tokens=self.embedder.count_cut(tokens),
            backed_off_tokens=sum(n for word, n in unknown_words.items() if known_parts(self.embedder, word)),
            cut_lines=sum(row.is_rest for row in rows),
        )
        return asdict(counts)

    def _iter_prepared(self, text: InputText, rows: Iterable[_Row]) -> Iterator[_Row]:
        """Tokenise the rows; raise CorpusError for a row that cannot be embedded."""
        for row in rows:
            line = self.embedder.prepare(row.text, segmented=self.segmented)
            num_bytes = len(line.tokens) * self.embedder.num_layers * self.embedder.dimension * 4
            if num_bytes > _MOST_LINE_BYTES:
                name, number = text.place(row.line)
                raise CorpusError(
                    _(
                        "{name}: line {number} has {tokens} tokens, whose vectors take {num_bytes} of memory;"
                        " the limit is {MOST_LINE_BYTES}. Put each sentence on a line of its own."
                    ).format(
                        name=name,
                        number=number + 1,
                        tokens=f"{len(line.tokens):,}",
                        num_bytes=format_bytes(num_bytes),
                        MOST_LINE_BYTES=format_bytes(_MOST_LINE_BYTES),
                    )
                )
            if "\0" in row.text and any("\0" in token for token in line.tokens):
                name, number = text.place(row.line)
                raise CorpusError(
                    _(
                        "{name}: line {number} has a token with a NUL character, which is not allowed. Remove the"
                        " character."
                    ).format(name=name, number=number + 1)
                )
            yield row._replace(prepared=line)


def known_parts(embedder: ElmoEmbedder, word: str) -> list[str]:
    """Return the known words that stand in for an unknown word; empty if the word itself or <UNK> is read instead."""
    vocabulary = embedder.bundle.vocabulary
    is_read = embedder.unknown == "backoff" and vocabulary is not None and embedder.find_unknown([word])[0]
    return vocabulary.find_subwords(word) if vocabulary is not None and is_read else []
