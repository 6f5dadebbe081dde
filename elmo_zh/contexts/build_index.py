"""Build an index of occurrences: vectors of words in their sentences, stored on disk for similarity search.

The tokens of all texts are written first, as `embed` keeps them; then the occurrences are chosen, which fixes their
number; then the model reads the lines that contain one; and at the end the vectors are joined.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from shutil import copyfile
from typing import Any, NamedTuple

import numpy as np

from elmo_zh.checks import check_path, check_paths
from elmo_zh.config import TextConfig
from elmo_zh.contexts.index_content import (
    KEPT_ROWS,
    WordNumbers,
    compute_vectors,
    count_words,
    write_index_text,
    write_vectors,
)
from elmo_zh.contexts.index_files import INDEX_FORMAT, VECTOR, IndexLayout
from elmo_zh.contexts.index_settings import IndexSettings, describe_missing_words
from elmo_zh.corpus.content import UnsuitableError
from elmo_zh.corpus.input_texts import InputText, input_text, opened_inputs
from elmo_zh.corpus.sources import Stamp
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.embed.text_tokens import TextTokens, TokenCounts, Tokeniser, hint_at_long_lines, require_sentences
from elmo_zh.embed.unknown_rate import describe_unknown_rate
from elmo_zh.errors import CorpusError, ElmoZhError
from elmo_zh.run.arrays import save_npy
from elmo_zh.run.files import file_digest, folder_bytes, link_or_copy, write_json
from elmo_zh.run.job import Files, Step, Work, run_job
from elmo_zh.run.mark import write_mark, written_as
from elmo_zh.run.reporter import Hints, Reporter, counted, format_bytes
from elmo_zh.text.sentences import LONGEST_SENTENCE
from elmo_zh.text.windows import WINDOW_ITEMS
from elmo_zh.vocabulary.vocabulary import is_word

# Bytes of an occurrence besides its vectors: itself, its posting, and its share of a line.
_OTHER_BYTES = 100
# The folder with the files that the step `choose` writes.
_FILES = "files"


@dataclass(frozen=True, kw_only=True)
class IndexReport:
    """The folder, counts and size of a finished index, and any requested words that do not occur as tokens."""

    path: Path
    counts: dict[str, int]
    num_bytes: int
    missing_words: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class IndexJob:
    """Writes an index of the words in texts.

    Memory grows with the number of distinct words, and by about 20 bytes for each chosen occurrence.
    """

    embedder: ElmoEmbedder
    texts: Sequence[InputText]
    output: Path
    settings: IndexSettings
    part_lines: int = WINDOW_ITEMS

    def __post_init__(self) -> None:
        """Raise ElmoZhError if the model cannot be used so."""
        if self.embedder.is_stateful:
            raise ElmoZhError(
                "The vectors in an index must not depend on previous sentences. Use an embedder that is not stateful."
            )
        if self.settings.options.split_sentences:
            require_sentences(self.embedder.bundle)

    @property
    def valuable(self) -> Sequence[str]:
        """The vectors, unless a command makes the index for itself."""
        return () if self.settings.made_by else ("index",)

    @property
    def inputs(self) -> list[Path]:
        """The texts and the model."""
        return [*(text.source.path for text in self.texts), self.embedder.bundle.path]

    def may_replace(self, path: Path) -> bool:
        """Return whether a path is an index without other files."""
        return written_as("index")(path)

    @cached_property
    def _read_from(self) -> list[tuple[Stamp, str]]:
        """The stamp and then the digest of each text."""
        return [(Stamp.of(text.source), file_digest(text.source.path)) for text in self.texts]

    @property
    def _tokeniser(self) -> Tokeniser:
        return Tokeniser(
            embedder=self.embedder,
            segmented=self.settings.segmented,
            split=self.settings.options.split_sentences,
            longest=LONGEST_SENTENCE,
            part_lines=self.part_lines,
        )

    def made_from(self) -> dict[str, Any]:
        """Return everything that the index depends on."""
        texts = [
            {"name": text.name, "digest": digest, "reading": text.reading}
            for text, (_, digest) in zip(self.texts, self._read_from, strict=True)
        ]
        settings = self.settings.described()
        return {"format": INDEX_FORMAT, **self._tokeniser.described(), "settings": settings, "texts": texts}

    def make(self, path: Path, work: Work) -> IndexReport:
        """Write the tokens of the texts, choose the occurrences, compute their vectors, and write all of it."""
        read = self._write_all_tokens(work)
        tokens = [text.tokens for text in read]
        choose = Step(name="choose", compute=self._choose, in_order=True)
        [chosen] = work.run(choose, [_ChooseFrom(read, work.reporter)])
        info = chosen.value()
        self._make_room(info["counts"], work)
        layers, kept = self.settings.layers, IndexLayout(chosen.file(_FILES))
        parts = compute_vectors(self.embedder, work, kept, tokens, layers, self.part_lines)
        path.mkdir()
        layout = IndexLayout(path)
        for file in kept.path.iterdir():
            if file.name != KEPT_ROWS:
                link_or_copy(file, path / file.name)
        write_vectors(layout, layout.arrays(info["counts"], layers, self.embedder.dimension), layers, parts)
        files = layout.files(layers) + [layout.user_dictionary] * layout.user_dictionary.exists()
        sizes = {file.name: file.stat().st_size for file in files}
        write_json(layout.info, {**info, "bytes": sizes, "digests": {file.name: file_digest(file) for file in files}})
        texts = {text["name"]: text["digest"] for text in info["texts"]}
        write_mark(path, "index", INDEX_FORMAT, {"model": info["model"]["model_digest"], "texts": texts})
        return IndexReport(
            path=self.output,
            counts=info["counts"],
            num_bytes=sum(sizes.values()) + layout.info.stat().st_size,
            missing_words=tuple(info["missing_words"]),
        )

    def _write_all_tokens(self, work: Work) -> list["_ReadText"]:
        """Write the tokens of the texts; skip non-text files found in folders."""
        read, hints = [], Hints(work.reporter)
        for number, (text, (stamp, digest)) in enumerate(zip(self.texts, self._read_from, strict=True)):
            own_work = work.within(f"text-{number:05d}")
            try:
                tokens = self._tokeniser.write(text, stamp, own_work)
            except UnsuitableError as error:
                own_work.remove()
                text.skip(error, work.reporter)
                continue
            hint_at_long_lines(text, tokens.counts, hints)
            read.append(_ReadText(text, digest, tokens))
        if not read:
            raise CorpusError("The folder contains no text files. Give text files, or a folder that contains some.")
        return read

    def _choose(self, given: "_ChooseFrom", files: Files) -> dict[str, Any]:
        """Choose the occurrences and write everything except the vectors; return the content of index.json."""
        read, reporter = given
        tokens = [text.tokens for text in read]
        words = count_words(tokens, reporter)
        counts = TokenCounts()
        for text_tokens in tokens:
            counts.add(text_tokens.counts)
        unit = "sentence" if self.settings.options.split_sentences else "line"
        reporter.note(f"{counted(len(read), 'text')}: {counted(counts.lines, unit)}, {counted(counts.tokens, 'token')}")
        self._hint_at_unknown_words(counts, words, reporter)
        with files.folder(_FILES) as folder:
            layout, settings = IndexLayout(folder), self.settings
            found, rows = write_index_text(layout, tokens, settings, words, reporter)
            self._require_words(found, words)
            found = {**counts.reported(), **found, "distinct_words": len(words.numbers)}
            if not counts.backed_off_tokens:
                found.pop("backed_off_tokens", None)
            save_npy(folder / KEPT_ROWS, rows)
            if dictionary := self.embedder.user_dictionary:
                copyfile(dictionary, layout.user_dictionary)
        missing = sorted(word for word in settings.words or () if word.encode() not in words.numbers)
        return {
            "format": INDEX_FORMAT,
            "model": {"path": str(self.embedder.bundle.path), **self.embedder.identity()},
            "dimension": self.embedder.dimension,
            "settings": settings.described(),
            "texts": [text.described() for text in read],
            "counts": found,
            "missing_words": missing,
        }

    def _hint_at_unknown_words(self, counts: TokenCounts, words: WordNumbers, reporter: Reporter) -> None:
        unknown = self._unknown_words(words)
        line = describe_unknown_rate(self.embedder.bundle, counts.tokens, counts.unknown_tokens, unknown)
        if line:
            reporter.warn(line)

    def _unknown_words(self, words: WordNumbers) -> dict[str, int]:
        spelled = words.words
        unknown = np.flatnonzero(self.embedder.find_unknown(spelled)).tolist()
        return {spelled[number]: int(words.counts[number]) for number in unknown}

    def _require_words(self, found: dict[str, int], words: WordNumbers) -> None:
        if found["occurrences"]:
            return
        names = ", ".join(text.name for text in self.texts[:3])
        if not any(map(is_word, words.words)):
            raise CorpusError(f"{names}: the text contains no words. Give a text with words.")
        distinct = counted(len(words.numbers), "distinct token")
        if (wanted := self.settings.words) is not None:
            raise CorpusError(
                f"{names}: none of the words in --words ({len(wanted):,} given) is a token of the text ({distinct})."
                " Write the words as the segmenter splits them, or leave out --words."
            )
        raise CorpusError(
            f"{names}: no word occurs at least {self.settings.options.min_count:,} times ({distinct} in total)."
            " Give more text, or lower --min-count."
        )

    def _make_room(self, counts: dict[str, int], work: Work) -> None:
        """Report the size of the vectors, and raise OutputError if the disk does not have enough space."""
        num_layers = len(self.settings.layers)
        vector_bytes = counts["occurrences"] * self.embedder.dimension * VECTOR.itemsize * num_layers
        # The vectors are written in parts and then joined.
        needed = 2 * vector_bytes + counts["occurrences"] * _OTHER_BYTES - folder_bytes(work.path / "index")
        advice = "--layers top, --max-per-word 100, --min-count 10"
        space = work.require_space(self.output, max(0, needed), advice=advice)
        work.reporter.note(
            f"Indexing {counted(counts['occurrences'], 'occurrence')} of {counted(counts['words'], 'word')} in"
            f" {counted(counts['kept_lines'], 'line')}; the vectors take {format_bytes(vector_bytes)}"
            f" ({counted(num_layers, 'layer')}, float16), {space}"
        )


class _ReadText(NamedTuple):
    text: InputText
    digest: str
    tokens: TextTokens

    def described(self) -> dict[str, Any]:
        """Return the entry of the text in index.json."""
        members = {"members": self.text.members.described()} if self.text.members.names else {}
        lines = self.tokens.counts.lines
        return {"name": self.text.name, "digest": self.digest, "lines": lines, **self.text.reading, **members}


class _ChooseFrom(NamedTuple):
    read: list[_ReadText]
    reporter: Reporter


def index_files(
    embedder: ElmoEmbedder, paths: object, output: object, settings: IndexSettings, *, force: bool, reporter: Reporter
) -> None:
    """Write an index of the files and folders given to a Python call, as `elmo-zh index` does."""
    from_name, segmented = settings.options.from_name, settings.segmented
    folder, given = check_path(output, "build", "path", "a folder"), check_paths(paths, "build", "texts")
    with opened_inputs(given, reporter) as sources:
        texts = [
            input_text(source, TextConfig(), segmented=segmented, from_name=from_name) for source in sources.sources
        ]
        job = IndexJob(embedder=embedder, texts=texts, output=folder, settings=settings)
        report = run_job(job, force=force, reporter=reporter)
    if report.missing_words:
        reporter.warn(describe_missing_words(report.missing_words, "words"))
