"""From a piece of lines to segmented sentences, those apart that may be held out."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from struct import Struct
from typing import Any

import numpy as np

from elmo_zh.config import TextConfig
from elmo_zh.corpus.cleaning.counts import LineCounts
from elmo_zh.corpus.tally import Tally
from elmo_zh.engine.parts import Figures, PartWriter
from elmo_zh.segmenting.duplicates import BOILERPLATE, DUPLICATE, RepeatedLines
from elmo_zh.segmenting.heldout import HeldoutChoice, Paragraph, paragraph_key, save_candidates
from elmo_zh.segmenting.pieces import SizedPiece
from elmo_zh.segmenting.preparation import CorpusPreparation
from elmo_zh.text.han import count_han

# Of each paragraph of a piece: key, bytes, sentences, tokens, and whether it starts a document.
INDEX = np.dtype([("key", "<u8"), ("bytes", "<u4"), ("sentences", "<u4"), ("tokens", "<u4"), ("starts", "?")])
_ROW = Struct("<QIII?")
REASONS = {DUPLICATE: "lines that stood before", BOILERPLATE: "lines that come too often"}
# Lines in which Chinese characters are counted together.
_HAN_LINES = 100


@dataclass(frozen=True, kw_only=True)
class SegmentTask:
    """One piece to be segmented; pieces are numbered over the whole corpus."""

    number: int
    piece: SizedPiece
    config: TextConfig
    user_dictionary: Path | None
    repeated: RepeatedLines | None


@dataclass(kw_only=True)
class PieceCounts:
    """What became of a piece: in all, and of each source in it."""

    lines: LineCounts = field(default_factory=LineCounts)
    han_characters: int = 0
    sentences: int = 0
    tallies: dict[int, Tally] = field(default_factory=dict)

    def described(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        tallies = {str(number): tally.described() for number, tally in self.tallies.items()}
        return {**asdict(self), "lines": self.lines.as_record(), "tallies": tallies}

    @classmethod
    def restored(cls, described: dict[str, Any]) -> "PieceCounts":
        """Return what `described` described."""
        tallies = {int(number): Tally.restored(tally) for number, tally in described["tallies"].items()}
        return cls(**{**described, "lines": LineCounts.from_record(described["lines"]), "tallies": tallies})


@lru_cache(maxsize=1)
def _preparation(config: TextConfig, user_dictionary: Path | None) -> CorpusPreparation:
    """Return the same object again and again: dictionaries take long to load."""
    return CorpusPreparation.build(config, user_dictionary)


def forget_dictionaries() -> None:
    """Free what a process that goes on with other work needs no more, large as it is."""
    _preparation.cache_clear()


def segment_piece(task: SegmentTask, writer: PartWriter) -> Figures:
    """Write a piece's segmented paragraphs, their index and which may be held out; figures: those of `PieceCounts`."""
    counts = PieceCounts()
    choice = HeldoutChoice(task.config)
    with (
        writer.file("txt") as unfinished,
        unfinished.open("wb") as file,
        writer.file("index") as unfinished_index,
        unfinished_index.open("wb") as index,
    ):
        for sentences, num_tokens, starts_document in _paragraphs(task, counts):
            paragraph = Paragraph(paragraph_key(sentences), len(sentences), num_tokens)
            choice.add(paragraph)
            data = ("\n".join(sentences) + "\n").encode("utf-8")
            file.write(data)
            index.write(_ROW.pack(paragraph.key, len(data), len(sentences), num_tokens, starts_document))
            counts.sentences += len(sentences)
    with writer.file("candidates") as unfinished:
        save_candidates(unfinished, choice)
    return counts.described()


def _paragraphs(task: SegmentTask, counts: PieceCounts) -> Iterator[tuple[list[str], int, bool]]:
    """Yield the sentences of each line, how many tokens they have, and whether the line starts a document."""
    preparation = _preparation(task.config, task.user_dictionary)
    left_out = task.repeated.in_piece(task.number) if task.repeated else {}
    numbered = enumerate(_iter_lines(task, counts))
    for source, runs in groupby(task.piece.piece.load_runs().tolist(), key=itemgetter(0)):
        lines = LineCounts()
        for _, num_lines, starts_document in runs:
            is_first = bool(starts_document)
            for number, line in islice(numbered, num_lines):
                if (reason := left_out.get(number)) is not None:
                    lines.drop(REASONS[reason], line)
                elif segmented := preparation.sentences(line, lines):
                    yield list(map(" ".join, segmented)), sum(map(len, segmented)), is_first
                    is_first = False
        counts.tallies.setdefault(source, Tally()).take(lines)
        counts.lines.merge(lines)


def _iter_lines(task: SegmentTask, counts: PieceCounts) -> Iterator[str]:
    lines = task.piece.piece.iter_lines()
    while some := list(islice(lines, _HAN_LINES)):
        counts.han_characters += count_han(some)
        yield from some
