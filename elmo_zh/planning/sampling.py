"""The sample of a plan: blocks of a corpus that was read, segmented as the settings say, and the corpus's totals."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.config import TextConfig
from elmo_zh.corpus.cleaning.counts import LineCounts
from elmo_zh.corpus.sources import Source
from elmo_zh.errors import CorpusError
from elmo_zh.planning.block_picker import Block
from elmo_zh.planning.estimates import Estimate, estimate_total, product_of
from elmo_zh.planning.reading import CorpusReading, SampleSize, find_copies, read_corpus
from elmo_zh.run.reporter import Reporter
from elmo_zh.segmenting.corpus_preparation import CorpusPreparation

# If more of what was read is copies, too little is left to tell the corpus by.
_MOST_COPIED = 0.8
# How many more copies chance may have kept out of what was read.
_CHANCE_OF_COPIES = 1.25
# Lines of a kind that is dropped may be too rare for the sample.
_UNSURE_KEPT = 0.002


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A sample of a corpus, segmented.

    Attributes:
        reading: The part of the corpus that was read.
        blocks: The segmented blocks.
        is_all: Whether the blocks are all of the corpus.
        copied: Fraction of the corpus's characters in lines that are copies of others.
        segmenting_seconds: Time spent on sentences and words, in one process.
        starting_seconds: Time until the segmenter had its dictionary.
    """

    reading: CorpusReading
    blocks: Sequence[Block]
    is_all: bool
    copied: Estimate
    segmenting_seconds: float
    starting_seconds: float

    @property
    def corpus_bytes(self) -> float:
        """Bytes of the corpus's text in UTF-8."""
        return self.reading.total("line_bytes").value

    @property
    def fraction(self) -> float:
        """Fraction of the corpus that the blocks are."""
        num_bytes = sum(block.num_bytes for block in self.blocks)
        return 1.0 if self.is_all else min(1.0, num_bytes / max(1.0, self.corpus_bytes))

    def described(self) -> dict[str, Any]:
        """Return the size of the sample and of the corpus for JSON."""
        return {
            "pieces": len(self.blocks),
            "files": self.reading.num_files,
            "corpus_bytes": round(self.corpus_bytes),
            "bytes": sum(block.num_bytes for block in self.blocks),
            "share": round(self.fraction, 6),
            "is_all": self.is_all,
            "places_not_reached": self.reading.num_unreached,
        }

    def totals(self) -> dict[str, Estimate]:
        """Return documents, characters, kept characters, sentences and tokens of the whole corpus."""
        totals = {name: self.reading.total(name) for name in ("documents", "characters")}
        originals = Estimate(value=1 - self.copied.value, low=1 - self.copied.high, high=1 - self.copied.low)
        characters = product_of(self.reading.total("line_characters"), originals)
        sizes = [block.weight * block.counts["characters"] for block in self.blocks]
        for name in ("kept_characters", "sentences", "tokens"):
            counts = [block.weight * block.counts[name] for block in self.blocks]
            each = estimate_total(counts, sizes, 1.0, self.fraction)
            if name == "kept_characters":
                low, high = each.low - _UNSURE_KEPT, min(1.0, each.high + _UNSURE_KEPT)
                each = Estimate(value=each.value, low=low, high=high)
            totals[name] = Estimate.exact(sum(counts)) if self.is_all else product_of(characters, each)
        return totals


def take_sample(
    sources: Sequence[Source], config: TextConfig, user_dictionary: Path | None, size: SampleSize, reporter: Reporter
) -> Sample:
    """Read a corpus, then clean and segment blocks of it in random order until all are done or time is over.

    Raises:
        CorpusError: If a file that was named is no corpus, or nothing in the sample is text.
    """
    reading = read_corpus(sources, config, size)
    is_copy = find_copies(np.frombuffer(reading.keys, np.uint64), config)
    has_read_at = time.monotonic()
    preparation = CorpusPreparation.build(config, user_dictionary)
    preparation.sentences("开始。", LineCounts())
    started_at = time.monotonic()
    is_all = reading.is_complete and sum(block.num_bytes for block in reading.blocks) == reading.counts["line_bytes"]
    blocks: list[Block] = []
    with reporter.progress("plan", unit="blocks", total=len(reading.blocks)) as progress:
        for block in Random(size.seed).sample(reading.blocks, len(reading.blocks)):  # noqa: S311
            if not blocks or is_all or time.monotonic() - started_at <= size.seconds:
                _segment(block, preparation, is_copy)
                blocks.append(block)
                progress.update(1)
    blocks.sort(key=lambda block: block.first_line)
    if not any(block.sentences for block in blocks):
        names = ", ".join(source.name for source in sources[:3])
        other = "; ".join(f"{count:,} {reason}" for reason, count in sorted(reading.passed_over.counts.items()))
        raise CorpusError(f"{names} holds no text{f' (passed over: {other})' if other else ''}. Give a file with text.")
    return Sample(
        reading=reading,
        blocks=blocks,
        is_all=is_all,
        copied=_copied(reading, is_copy),
        segmenting_seconds=time.monotonic() - started_at,
        starting_seconds=started_at - has_read_at,
    )


def _segment(block: Block, preparation: CorpusPreparation, is_copy: NDArray[np.bool_]) -> None:
    counts = LineCounts()
    for number, line in enumerate(block.lines, start=block.first_line):
        if not is_copy[number]:
            block.sentences += preparation.sentences(line, counts)
            block.counts["characters"] += len(line)
    block.counts["kept_characters"] = counts.kept_characters
    block.counts["sentences"] = len(block.sentences)
    block.counts["tokens"] = sum(map(len, block.sentences))


def _copied(reading: CorpusReading, is_copy: NDArray[np.bool_]) -> Estimate:
    """Return which fraction of the corpus's characters is in copies.

    Of a line with two copies, both were read as often as the square of the fraction read says; of a line with very many
    copies, those that were read have as large a part of their copies there as of anything. The truth lies between, or
    below where the rest has no copies.
    """
    seen = float(np.frombuffer(reading.lengths, np.uint32)[is_copy].sum()) / max(1.0, reading.counts["line_characters"])
    if reading.is_complete:
        return Estimate.exact(seen)
    read = min(1.0, reading.counts["line_bytes"] / max(1.0, reading.total("line_bytes").value))
    most = min(_MOST_COPIED, _CHANCE_OF_COPIES * seen / max(read, 1e-9))
    return Estimate(value=min(_MOST_COPIED, seen / max(read, 1e-9) ** 0.5), low=read * seen, high=max(seen, most))
