"""A sample at work: its pieces read as `segment` reads files, and segmented as the settings say."""

import io
import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import BinaryIO

from elmo_zh.config import TextConfig
from elmo_zh.corpus.cleaning.counts import LineCounts
from elmo_zh.corpus.read import read_source
from elmo_zh.corpus.sources import Source
from elmo_zh.corpus.tally import PassedOver, Tally
from elmo_zh.errors import CorpusError
from elmo_zh.planning.pieces import Piece, Pieces
from elmo_zh.run.reporter import Reporter
from elmo_zh.segmenting.corpus_preparation import CorpusPreparation
from elmo_zh.segmenting.duplicates import key_rule

# Formats of which one file is one document, unless plain text is told to have more.
_ONE_DOCUMENT = ("text", "html", "markdown")


@dataclass(frozen=True, kw_only=True)
class _PieceSource(Source):
    """A piece in the guise of a file."""

    data: bytes

    def open_packed(self) -> BinaryIO:
        return io.BytesIO(self.data)


@dataclass(kw_only=True)
class Block:
    """What a piece holds.

    Attributes:
        piece: The piece.
        documents: How many; of files that are one document each, the part of it that the piece is.
        characters: Read, line ends not counted.
        kept_characters: Of lines that gave sentences.
        lines: As they were read.
        sentences: Each its tokens.
        is_one_document: Whether each file of the piece's kind is a document.
    """

    piece: Piece
    documents: float = 0.0
    characters: int = 0
    kept_characters: int = 0
    lines: list[str] = field(default_factory=list)
    sentences: list[list[str]] = field(default_factory=list)
    is_one_document: bool = False

    @property
    def num_tokens(self) -> int:
        """Tokens of all sentences."""
        return sum(map(len, self.sentences))

    def words(self) -> Counter[str]:
        """Return how often each word stands there."""
        return Counter(token for sentence in self.sentences for token in sentence)


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A sample of a corpus, read and segmented.

    Attributes:
        blocks: One for each piece.
        corpus_bytes: Of the corpus, unpacked.
        is_all: Whether the blocks are all of it.
        sampled_share: Share of the corpus that the blocks are.
        copied_share: Share of the characters in lines that are left out as copies of others in the sample.
        num_portions: Files, members of archives among them.
        num_unreached: Places that were not looked at for want of time.
        passed_over: What is no corpus.
        reading_seconds: Spent on reading, decoding and taking text out of its format.
        segmenting_seconds: Spent on sentences and words, in one process.
        starting_seconds: Spent until the segmenter had its dictionary.
    """

    blocks: Sequence[Block]
    corpus_bytes: float
    is_all: bool
    sampled_share: float
    copied_share: float
    num_portions: int
    num_unreached: int
    passed_over: PassedOver
    reading_seconds: float
    segmenting_seconds: float
    starting_seconds: float

    @property
    def num_tokens(self) -> int:
        """Tokens of all blocks."""
        return sum(block.num_tokens for block in self.blocks)

    @property
    def num_bytes(self) -> int:
        """Bytes of all pieces."""
        return sum(block.piece.num_bytes for block in self.blocks)


def segment_pieces(
    pieces: Pieces,
    num_portions: int,
    config: TextConfig,
    user_dictionary: Path | None,
    seconds: float,
    seed: int,
    reporter: Reporter,
) -> Sample:
    """Read the pieces, then clean and segment them, in an order of chance, until all are done or time is up.

    Raises:
        CorpusError: If a file that was named is no corpus, or nothing in the sample is text.
    """
    start = time.monotonic()
    passed_over = PassedOver()
    blocks = [_read_block(piece, config, passed_over) for piece in pieces.pieces]
    has_read = time.monotonic()
    left_out = find_copies([block.lines for block in blocks], config)
    preparation = CorpusPreparation.build(config, user_dictionary)
    preparation.sentences("开始。", LineCounts())
    begun = time.monotonic()
    order = list(range(len(blocks)))
    Random(seed).shuffle(order)  # noqa: S311
    done: list[int] = []
    with reporter.progress("plan", unit="pieces", total=len(order)) as progress:
        for number in order:
            if done and not pieces.is_all and time.monotonic() - begun > seconds:
                break
            # Where all of the corpus is known, so are all copies; of a sample their share is told.
            _segment_block(blocks[number], preparation, left_out[number] if pieces.is_all else frozenset())
            done.append(number)
            progress.update(1)
    ended = time.monotonic()
    copied = sum(len(blocks[number].lines[line]) for number in done for line in left_out[number])
    blocks = [blocks[number] for number in sorted(done)]
    _require_text(pieces, blocks, passed_over)
    share = sum(block.piece.num_bytes for block in blocks) / max(1.0, pieces.corpus_bytes)
    return Sample(
        blocks=blocks,
        corpus_bytes=pieces.corpus_bytes,
        is_all=pieces.is_all,
        sampled_share=1.0 if pieces.is_all else min(1.0, share),
        copied_share=copied / max(1, sum(block.characters for block in blocks)),
        num_portions=num_portions,
        num_unreached=pieces.num_unreached,
        passed_over=passed_over,
        reading_seconds=(has_read - start) * len(blocks) / max(1, len(order)),
        segmenting_seconds=ended - begun,
        starting_seconds=begun - has_read,
    )


def _read_block(piece: Piece, config: TextConfig, passed_over: PassedOver) -> Block:
    source = piece.portion.source
    as_file = _PieceSource(
        name=piece.portion.name,
        path=source.path,
        file_name=piece.portion.file_name,
        # The middle of a file may lack what tells its format or field, its start never does.
        is_named=source.is_named and not piece.is_cut and not piece.portion.member,
        data=piece.data,
    )
    block, tally = Block(piece=piece), Tally()
    try:
        block.lines += _lines(as_file, config, tally, passed_over)
    except CorpusError:
        # Where it was cut, a file may seem damaged; if there is nothing but such pieces, that is told.
        if not piece.is_cut:
            raise
        passed_over.add("pieces that cannot be read without the rest of their file", piece.portion.name)
    block.characters = tally.characters + sum(map(len, block.lines))
    kinds = {kind for kind, _, _ in tally.forms}
    block.is_one_document = kinds <= set(_ONE_DOCUMENT) and not (kinds == {"text"} and config.document != "file")
    block.documents = float(tally.documents)
    if block.is_one_document and piece.is_cut:
        size = piece.portion.num_bytes * (piece.expansion if piece.portion.compression else 1.0)
        block.documents = piece.num_bytes / size
    return block


def _segment_block(block: Block, preparation: CorpusPreparation, left_out: Collection[int]) -> None:
    counts = LineCounts()
    for number, line in enumerate(block.lines):
        if number not in left_out:
            block.sentences += preparation.sentences(line, counts)
    block.kept_characters = counts.kept_characters


def find_copies(texts: Sequence[Sequence[str]], config: TextConfig) -> list[set[int]]:
    """Return for each text the numbers of its lines that are left out as copies, as the segment stage does."""
    rule = key_rule(config)
    if rule is None:
        return [set() for _ in texts]
    keys = [[rule.key(line, line.encode("utf-8", "replace")) for line in lines] for lines in texts]
    copies = Counter(key for mine in keys for key in mine if key is not None)
    most = config.boilerplate_copies
    seen: set[int] = set()
    left_out: list[set[int]] = []
    for mine in keys:
        left_out.append(set())
        for number, key in enumerate(mine):
            if key is not None and ((key in seen and key & 1) or (most and copies[key] > most)):
                left_out[-1].add(number)
            if key is not None:
                seen.add(key)
    return left_out


def _lines(source: Source, config: TextConfig, tally: Tally, passed_over: PassedOver) -> Iterator[str]:
    for document in read_source(source, replace(config, bad_bytes=_lenient(config)), tally, passed_over):
        yield from document


def _lenient(config: TextConfig) -> str:
    """Return what to do with bytes that do not decode: a plan tells how much text there is, whatever is refused."""
    return "skip-line" if config.bad_bytes == "strict" else config.bad_bytes


def _require_text(pieces: Pieces, blocks: Sequence[Block], passed_over: PassedOver) -> None:
    if any(block.sentences for block in blocks):
        return
    names = ", ".join(dict.fromkeys(piece.portion.name for piece in pieces.pieces[:3]))
    other = "; ".join(f"{count:,} {reason}" for reason, count in sorted(passed_over.counts.items()))
    found = f"{len(blocks)} pieces of it, all empty" + (f"; left out: {other}" if other else "")
    raise CorpusError(f"{names or 'The corpus'} holds no text ({found}). Give a file with text.")
