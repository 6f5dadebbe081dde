"""Turn a corpus into files of one segmented sentence per line, with training and held-out text kept apart.

Three steps of the segment stage consist of tasks that any worker can run: extract text shards of about equal size
(extract.py), find repeated lines (duplicates.py), and clean and segment each shard. The last step divides the text into
training and held-out text, chosen among the paragraphs of all shards, those without near copies first (heldout.py).

How the corpus is cut depends only on the corpus and the settings, so the files do not depend on the workers.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from elmo_zh.config import TextConfig, result_settings
from elmo_zh.corpus.cleaning import EMPTY, LineCleaner
from elmo_zh.corpus.counts import Tally, reasons_line
from elmo_zh.corpus.readers.formats import require_fields
from elmo_zh.corpus.sources import Sources
from elmo_zh.engine import EngineChoice
from elmo_zh.errors import CorpusError
from elmo_zh.language import N_
from elmo_zh.run.job import Files, FinishedPart, Json, Step, Work, run_job
from elmo_zh.run.reporter import Reporter, first_ten
from elmo_zh.segmenting.duplicates import RepeatedLines, find_repeated
from elmo_zh.segmenting.extract import Extract, NumberedSource, TextShard, cut
from elmo_zh.segmenting.heldout import (
    INDEX,
    choose_texts,
    divide_shard,
    find_near_copies,
    index_rows,
    iter_signatures,
    load_lowest_texts,
)
from elmo_zh.text.preparation import TextPreparation
from elmo_zh.text.segmenters import describe_segmenter
from elmo_zh.text.sentences import iter_windows

# The corpus is cut into this many shards, but not into shards so small that starting a task takes longer than the task,
# nor so large that workers wait long for the last one.
_WANTED_SHARDS = 64
_LEAST_SHARD_BYTES, _MOST_SHARD_BYTES = 2**20, 2**24
# This text is a key of the stage record, so its wording is fixed.
DUPLICATE = N_("duplicate lines")
# How many paragraphs and characters are written at a time.
_PARAGRAPHS, _CHARACTERS = 200, 2**18


@dataclass(frozen=True)
class CorpusPreparation:
    """Cleans raw corpus lines, and turns them into segmented sentences."""

    cleaner: LineCleaner
    preparation: TextPreparation

    @classmethod
    def build(cls, config: TextConfig, user_dictionary: Path | None = None) -> "CorpusPreparation":
        """Build the preparation that the settings describe, with a user dictionary if there is one."""
        return cls(LineCleaner.build(config), TextPreparation.build(config, user_dictionary))

    def sentences(self, line: str, tally: Tally) -> list[list[str]]:
        """Return the tokens of each sentence in a raw line, [] for a dropped line; count the line."""
        cleaned = self.cleaner.clean(line, tally)
        if cleaned is None:
            return []
        sentences = self.preparation.sentences(cleaned)
        if sentences:
            tally.keep(line)
        else:
            tally.drop_line(EMPTY, line)
        return sentences


@dataclass(frozen=True)
class SegmentShards:
    """Segments text shards, which are numbered over the whole corpus, from 0."""

    config: TextConfig
    user_dictionary: Path | None
    repeated: RepeatedLines

    @cached_property
    def preparation(self) -> CorpusPreparation:
        """The same preparation for all shards, because dictionaries take a long time to load."""
        return CorpusPreparation.build(self.config, self.user_dictionary)

    def __call__(self, numbered: tuple[int, TextShard], files: Files) -> Json:
        """Write a shard's paragraphs and their index; return its size and the tallies of its sources."""
        number, shard = numbered
        tallies: dict[int, Tally] = {}
        paragraphs = self._iter_paragraphs(number, shard, tallies)
        with (
            files.file("txt") as unfinished,
            unfinished.open("wb") as file,
            files.file("index") as unfinished_index,
            unfinished_index.open("wb") as index,
        ):
            for some in iter_windows(paragraphs, _length, most_items=_PARAGRAPHS, most_size=_CHARACTERS):
                file.write("".join(f"{sentence}\n" for sentences, _ in some for sentence in sentences).encode("utf-8"))
                index.write(index_rows(some).tobytes())
        sources = {str(source): tally for source, tally in tallies.items()}
        return {"bytes": shard.num_bytes, "tallies": msgspec.to_builtins(sources)}

    def _iter_paragraphs(
        self, number: int, shard: TextShard, tallies: dict[int, Tally]
    ) -> Iterator[tuple[list[str], int]]:
        """Yield the sentences of each kept line, and the number of its tokens."""
        left_out = self.repeated.in_shard(number)
        numbered = enumerate(shard.iter_lines())
        for source, num_lines in shard.load_runs().tolist():
            tally = tallies.setdefault(source, Tally())
            for line_number, line in islice(numbered, num_lines):
                if line_number in left_out:
                    tally.drop_line(DUPLICATE, line)
                elif segmented := self.preparation.sentences(line, tally):
                    yield list(map(" ".join, segmented)), sum(map(len, segmented))


def _length(paragraph: tuple[list[str], int]) -> int:
    return sum(map(len, paragraph[0]))


@dataclass(kw_only=True)
class SegmentCounts:
    """Counts of text in the segment stage; `characters` is the sum of `kept_characters` and `dropped`."""

    files: int = 0
    lines: int = 0
    characters: int = 0
    kept_characters: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    train_sentences: int = 0
    train_tokens: int = 0
    heldout_sentences: int = 0
    heldout_tokens: int = 0
    near_copies_heldout: int = 0  # Paragraphs that were held out although they have near copies


@dataclass(kw_only=True)
class SegmentedCorpus:
    """The result of the segment stage: total counts, a tally for each source in order, and a tally for all sources."""

    counts: SegmentCounts
    tallies: list[Tally]
    total: Tally = field(default_factory=Tally)

    def add(self, tallies: Mapping[str, Any]) -> None:
        """Add the tallies of sources, by number, that a worker has returned."""
        for number, tally in msgspec.convert(tallies, dict[int, Tally], strict=False).items():
            self.tallies[number].add(tally)
            self.total.add(tally)


def segment_corpus(
    corpus: Sources,
    output: Path,
    config: TextConfig,
    user_dictionary: Path | None,
    reporter: Reporter,
    engine_choice: EngineChoice | None = None,
    *,
    force: bool = False,
) -> SegmentedCorpus:
    """Segment a corpus into `output`/{train,heldout}-*.txt; the old folder is replaced at the end."""
    # Raise the error for a missing package or a bad dictionary here, once and with its name, not in each worker.
    LineCleaner.build(config)
    if user_dictionary is not None:
        TextPreparation.build(config, user_dictionary).report_dictionary(user_dictionary, reporter)
    job = SegmentJob(corpus, output, config, user_dictionary and user_dictionary.absolute())
    engine_choice = engine_choice or EngineChoice(num_workers=config.num_workers)
    with engine_choice.started(corpus.total_bytes()) as engine:
        return run_job(job, force=force, replace=True, reporter=reporter, engine=engine)


@dataclass(frozen=True)
class SegmentJob:
    """Segments a corpus into a folder."""

    corpus: Sources
    output: Path
    config: TextConfig
    user_dictionary: Path | None = None

    inputs = ()  # the stage has made sure that no source is in its run
    valuable = ()
    may_replace = staticmethod(Path.is_dir)

    @cached_property
    def sources(self) -> list[NumberedSource]:
        """The sources as they are when the job begins."""
        return [NumberedSource.of(number, source) for number, source in enumerate(self.corpus.sources)]

    @property
    def shard_bytes(self) -> int:
        """The size that text shards should have, in bytes."""
        wanted = min(max(self.corpus.total_bytes() // _WANTED_SHARDS, _LEAST_SHARD_BYTES), _MOST_SHARD_BYTES)
        return self.config.shard_bytes or wanted

    def made_from(self) -> dict[str, Any]:
        """Return what the result depends on, such as the settings and the size and modification time of each source."""
        version = describe_segmenter(self.config, self.user_dictionary)
        settings = {**result_settings(self.config), "segmenter_version": version}
        sources = [[part.source.name, part.stamp.num_bytes, part.stamp.modified_ns] for part in self.sources]
        return {"index_row": INDEX.itemsize, "shard_bytes": self.shard_bytes, "settings": settings, "sources": sources}

    def make(self, path: Path, work: Work) -> SegmentedCorpus:
        """Segment the corpus, and divide it into training and held-out text."""
        num_files = len(self.sources)
        result = SegmentedCorpus(
            counts=SegmentCounts(files=num_files), tallies=[Tally() for _source in range(num_files)]
        )
        shards = self._extract_shards(work, result)
        require_fields(self.config.field, [source.name for source in self.corpus.sources], result.total.read_as)
        segmented = self._segment_shards(work, shards, result)
        if not result.counts.kept_characters:
            raise _no_text_error(self.corpus, result)
        path.mkdir()
        self._write(path, [part.file("txt") for part in segmented], result.counts)
        return result

    def _extract_shards(self, work: Work, result: SegmentedCorpus) -> list[TextShard]:
        tasks = list(cut(self.sources, self.config, self.shard_bytes, work))
        extract = Extract(self.config, self.shard_bytes)
        total = sum(task.num_bytes for task in tasks)
        step = Step(name="read", compute=extract, unit="bytes", size=itemgetter("bytes"), total=total)
        shards = []
        for part in work.run(step, tasks):
            extracted = part.value()
            for number, num_bytes in enumerate(extracted["shard_sizes"]):
                shards.append(TextShard(part.file(f"{number:05d}"), num_bytes))
            result.add(extracted["tallies"])
        return shards

    def _segment_shards(self, work: Work, shards: list[TextShard], result: SegmentedCorpus) -> list[FinishedPart]:
        """Clean and segment all shards, and add up their counts."""
        repeated = find_repeated(shards, work) if self.config.drop_duplicates else RepeatedLines(())
        segment = SegmentShards(self.config, self.user_dictionary, repeated)
        total = sum(shard.num_bytes for shard in shards)
        step = Step(name="segment", compute=segment, unit="bytes", size=itemgetter("bytes"), total=total)
        parts = []
        for shard, part in zip(shards, work.run(step, enumerate(shards)), strict=True):
            shard.remove_text()
            result.add(part.value()["tallies"])
            parts.append(part)
        _add_up(result)
        return parts

    def _write(self, folder: Path, shards: list[Path], counts: SegmentCounts) -> None:
        """Write the held-out file, if any text is held out, and a training file for each shard with training text."""
        chosen = self._choose_heldout(shards, counts)
        heldout: list[tuple[int, Path, int, str]] = []
        num_files = 0
        for shard in shards:
            train = folder / f"train-{num_files:05d}.txt"
            num_sentences, num_tokens, paragraphs = divide_shard(shard, chosen, train)
            if num_sentences:
                num_files += 1
            else:
                train.unlink()
            counts.train_sentences += num_sentences
            counts.train_tokens += num_tokens
            for place_in_shard, (key, text, num_heldout) in enumerate(paragraphs):
                heldout.append((key, shard, place_in_shard, text))
                counts.heldout_sentences += text.count("\n")
                counts.heldout_tokens += num_heldout
        if heldout:
            text = "".join(text for *_, text in sorted(heldout))
            (folder / "heldout-00000.txt").write_text(text, encoding="utf-8", newline="\n")

    def _choose_heldout(self, shards: list[Path], counts: SegmentCounts) -> NDArray[np.uint64]:
        """Choose the held-out paragraphs of all shards, and return their keys."""
        texts, num_sentences = load_lowest_texts(shards, self.config)
        near_copies = find_near_copies(texts["key"], texts["signature"], iter_signatures(shards))
        chosen = choose_texts(texts, num_sentences, self.config, near_copies)
        counts.near_copies_heldout = len(near_copies.intersection(chosen.tolist()))
        return chosen


def _add_up(result: SegmentedCorpus) -> None:
    for name in ("lines", "characters", "kept_characters"):
        setattr(result.counts, name, getattr(result.total, name))
    dropped = sorted(result.total.dropped.items())
    result.counts.dropped = {reason: found.characters for reason, found in dropped if found.characters}


def _no_text_error(corpus: Sources, result: SegmentedCorpus) -> CorpusError:
    names = first_ten([source.name for source in corpus.sources])
    left_out = sorted((result.total.passed_over | result.total.dropped).items())
    reasons = reasons_line({reason: found.count for reason, found in left_out})
    return CorpusError.no_text(f"{names} ({reasons})" if reasons else names)
