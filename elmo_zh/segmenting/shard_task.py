"""Third step of the segment stage: clean and segment the lines of a text shard, and index its paragraphs."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path

from elmo_zh.config import TextConfig
from elmo_zh.corpus.cleaning import CLEANING_STEPS, EMPTY, LineCleaner
from elmo_zh.corpus.counts import LineCounts
from elmo_zh.language import N_
from elmo_zh.run.job import Files, Json
from elmo_zh.segmenting.duplicates import BOILERPLATE, DUPLICATE, RepeatedLines
from elmo_zh.segmenting.heldout import index_rows
from elmo_zh.segmenting.text_shards import TextShard
from elmo_zh.text.han import count_han
from elmo_zh.text.preparation import TextPreparation

# All steps that may change a line, in the order in which they run.
STEPS = (*CLEANING_STEPS, "fold_fullwidth", "remove_control", "unicode_form", "script", "collapse_whitespace")
# These texts are keys of the stage record, so their wording is fixed.
REASONS = {DUPLICATE: N_("duplicate lines"), BOILERPLATE: N_("boilerplate lines")}
# Chinese characters are counted in this many lines at a time, and this many paragraphs are written.
_HAN_LINES, _PARAGRAPHS = 100, 200


@dataclass(frozen=True)
class CorpusPreparation:
    """Turns raw corpus lines into segmented sentences: cleans them, then prepares them as embedding does."""

    cleaner: LineCleaner
    preparation: TextPreparation

    @classmethod
    def build(cls, config: TextConfig, user_dictionary: Path | None = None) -> "CorpusPreparation":
        """Build the preparation that the settings describe, using the run's copy of the user dictionary."""
        return cls(LineCleaner.build(config), TextPreparation.build(config, user_dictionary))

    def sentences(self, line: str, counts: LineCounts) -> list[list[str]]:
        """Return the tokens of each sentence in a raw line, [] for a dropped line; count the line and its changes."""
        cleaned = self.cleaner.clean(line, counts)
        if cleaned is None:
            return []
        texts = self.preparation.sentence_texts(cleaned, counts.change)
        segment = self.preparation.segment
        sentences = [tokens for text in texts if (tokens := segment(text))]
        if sentences:
            counts.keep(line, sum(map(len, texts)))
        else:
            counts.drop(EMPTY, line)
        return sentences


@dataclass(frozen=True)
class SegmentShards:
    """Segments text shards, which are numbered over the whole corpus, from 0."""

    config: TextConfig
    user_dictionary: Path | None
    repeated: RepeatedLines | None

    @cached_property
    def preparation(self) -> CorpusPreparation:
        """The same preparation for all shards, because dictionaries take a long time to load."""
        return CorpusPreparation.build(self.config, self.user_dictionary)

    def __call__(self, numbered: tuple[int, TextShard], files: Files) -> Json:
        """Write a shard's paragraphs and their index; return its counts."""
        number, shard = numbered
        counts: dict[int, LineCounts] = {}
        paragraphs = self._iter_paragraphs(number, shard, counts)
        with (
            files.file("txt") as unfinished,
            unfinished.open("wb") as file,
            files.file("index") as unfinished_index,
            unfinished_index.open("wb") as index,
        ):
            while some := list(islice(paragraphs, _PARAGRAPHS)):
                file.write("".join(f"{sentence}\n" for sentences, *_ in some for sentence in sentences).encode("utf-8"))
                index.write(index_rows(some).tobytes())
        lines = shard.iter_lines()
        return {
            "bytes": shard.num_bytes,
            "sources": {source: lines_of_source.as_record() for source, lines_of_source in counts.items()},
            "han_characters": sum(map(count_han, iter(lambda: list(islice(lines, _HAN_LINES)), []))),
        }

    def _iter_paragraphs(
        self, number: int, shard: TextShard, counts: dict[int, LineCounts]
    ) -> Iterator[tuple[list[str], int, bool]]:
        """Yield the sentences of each kept line, the number of its tokens, and whether it starts a document."""
        left_out = self.repeated.in_shard(number) if self.repeated else {}
        numbered = enumerate(shard.iter_lines())
        for source, num_lines in shard.load_runs().tolist():
            lines = counts.setdefault(source, LineCounts())
            is_first = True
            for line_number, line in islice(numbered, num_lines):
                if (reason := left_out.get(line_number)) is not None:
                    lines.drop(REASONS[reason], line)
                elif segmented := self.preparation.sentences(line, lines):
                    yield list(map(" ".join, segmented)), sum(map(len, segmented)), is_first
                    is_first = False
