"""From a piece of lines to segmented sentences, those apart that may be held out."""

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from elmo_zh.config import TextConfig
from elmo_zh.files import write_json_once, written_once
from elmo_zh.text.heldout import HeldoutChoice, Paragraph, paragraph_key
from elmo_zh.text.preparation import TextPreparation
from elmo_zh.text.readers.tally import Tally
from elmo_zh.text.segmenting.candidates import save_candidates
from elmo_zh.text.segmenting.parts import SegmentParts, load_part
from elmo_zh.text.segmenting.pieces import SizedPiece
from elmo_zh.text.segmenting.repeated import BOILERPLATE, DUPLICATE, RepeatedLines
from elmo_zh.text.segmenting.sentence_writer import SentenceWriter

# Lines of white space and invisible characters only.
EMPTY = "lines without a word"
REASONS = {DUPLICATE: "lines that stood before", BOILERPLATE: "lines that come too often"}

_HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+")


@dataclass(frozen=True, kw_only=True)
class SegmentTask:
    """One piece to be segmented; pieces are numbered over the whole corpus."""

    number: int
    piece: SizedPiece
    config: TextConfig
    user_dictionary: Path | None
    repeated: RepeatedLines | None
    parts: SegmentParts


@dataclass(kw_only=True)
class PieceCounts:
    """What became of a piece: in all, and of each source in it."""

    characters: int = 0
    lines: int = 0
    han_characters: int = 0
    empty_lines: int = 0
    sentences: int = 0
    train_sentences: int = 0
    train_tokens: int = 0
    tallies: dict[int, Tally] = field(default_factory=dict)

    def described(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        tallies = {str(number): tally.described() for number, tally in self.tallies.items()}
        return {**asdict(self), "tallies": tallies}

    @classmethod
    def restored(cls, described: dict[str, Any]) -> "PieceCounts":
        """Return what `described` described."""
        tallies = {int(number): Tally.restored(tally) for number, tally in described["tallies"].items()}
        return cls(**{**described, "tallies": tallies})


@lru_cache(maxsize=1)
def _preparation(config: TextConfig, user_dictionary: Path | None) -> TextPreparation:
    """Return the same object again and again: dictionaries take long to load."""
    return TextPreparation.build(config, user_dictionary)


def segment_piece(task: SegmentTask) -> PieceCounts:
    """Write the training text of a piece and the candidates for held-out text, unless that was done before."""
    parts = task.parts
    if known := load_part(parts.segmented(task.number)):
        return PieceCounts.restored(known)
    counts = PieceCounts()
    choice = HeldoutChoice(task.config)
    # A piece fits into memory, and what is no candidate is to stay where it stands.
    paragraphs = list(_paragraphs(task, counts))
    for paragraph, _ in paragraphs:
        choice.add(paragraph)
        counts.sentences += len(paragraph.sentences)
    save_candidates(parts.candidates(task.number), choice)
    with written_once(parts.train(task.number)) as unfinished, SentenceWriter(unfinished) as train:
        for paragraph, starts_document in paragraphs:
            if starts_document:
                train.end_document()
            if not choice.keeps(paragraph):
                train.write(paragraph)
        train.end_document()
    train.save_documents(parts.documents(task.number))
    counts.train_sentences, counts.train_tokens = train.num_sentences, train.num_tokens
    write_json_once(parts.segmented(task.number), counts.described())
    task.piece.piece.forget_text()
    return counts


def _paragraphs(task: SegmentTask, counts: PieceCounts) -> Iterator[tuple[Paragraph, bool]]:
    """Yield the segmented lines, and whether each is the first of a document."""
    preparation = _preparation(task.config, task.user_dictionary)
    left_out = task.repeated.in_piece(task.number) if task.repeated else {}
    lines = task.piece.piece.iter_lines()
    number = 0
    for source, num_lines, starts_document in task.piece.piece.load_runs().tolist():
        tally = counts.tallies.setdefault(source, Tally())
        is_first = bool(starts_document)
        for _ in range(num_lines):
            line = next(lines)
            reason = left_out.get(number) if left_out else None
            number += 1
            counts.lines += 1
            counts.characters += len(line)
            counts.han_characters += sum(map(len, _HAN.findall(line)))
            if reason is not None:
                tally.drop(REASONS[reason], len(line))
                continue
            paragraph = _segment_line(preparation, line)
            if paragraph is None:
                tally.drop(EMPTY, len(line))
                counts.empty_lines += 1
                continue
            tally.keep(len(line))
            yield paragraph, is_first
            is_first = False


def _segment_line(preparation: TextPreparation, line: str) -> Paragraph | None:
    segmented = preparation.sentences(line)
    if not segmented:
        return None
    sentences = tuple(" ".join(tokens) for tokens in segmented)
    num_tokens = sum(map(len, segmented))
    return Paragraph(key=paragraph_key(sentences), sentences=sentences, num_tokens=num_tokens)
