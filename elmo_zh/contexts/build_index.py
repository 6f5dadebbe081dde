"""Build an index of occurrences: vectors of words in their sentences, stored on disk for similarity search.

The tokens of all texts are written first, as `embed` keeps them; then the occurrences are chosen, which fixes their
number; then the model reads the lines that contain one, and their vectors are written to their final place. INDEX.parts
is filled in this order: `text-NNNNN/`, `manifest.json`, `index/` with space for all vectors and with `rows.npy` (the
lines to compute), `computed-*` by other machines, and a `part-*.json` after each part of the vectors.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import copyfile
from typing import Any

import numpy as np

from elmo_zh.checks import check_path, check_paths
from elmo_zh.config import TextConfig
from elmo_zh.contexts.index_content import KEPT_ROWS, WordNumbers, count_words, write_index_text, write_vectors
from elmo_zh.contexts.index_files import INDEX_FORMAT, VECTOR, IndexLayout, is_index
from elmo_zh.contexts.index_settings import IndexSettings, describe_missing_words
from elmo_zh.corpus.content import UnsuitableError
from elmo_zh.corpus.input_texts import InputText, input_text, opened_inputs
from elmo_zh.corpus.sources import Stamp
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.embed.text_tokens import TextTokens, TokenCounts, hint_at_long_lines, require_sentences
from elmo_zh.embed.unknown_rate import describe_unknown_rate
from elmo_zh.engine.engine import Engine, ThisProcess
from elmo_zh.errors import CorpusError, ElmoZhError
from elmo_zh.run.arrays import RowFile, save_npy
from elmo_zh.run.disk_space import require_disk_space
from elmo_zh.run.files import atomic_path, claimed_output, file_digest, link_or_copy, read_json, remove, write_json
from elmo_zh.run.reporter import Hints, Reporter, counted, format_bytes
from elmo_zh.run.work_folder import WorkFolder
from elmo_zh.text.sentences import LONGEST_SENTENCE
from elmo_zh.vocabulary.vocabulary import is_word

# Bytes of an occurrence besides its vectors: itself, its posting, and its share of a line.
_OTHER_BYTES = 100


@dataclass(frozen=True, kw_only=True)
class IndexReport:
    """The folder, counts and size of a finished index, and any requested words that do not occur as tokens."""

    path: Path
    counts: dict[str, int]
    num_bytes: int
    missing_words: tuple[str, ...]


def build_index(
    embedder: ElmoEmbedder,
    texts: Sequence[InputText],
    output: Path,
    settings: IndexSettings,
    *,
    force: bool,
    reporter: Reporter,
    engine: Engine | None = None,
) -> IndexReport:
    """Write an index of the words in texts to a claimed output; resume an unfinished index unless `force` is given.

    Memory grows with the number of distinct words, and by about 20 bytes for each chosen occurrence.
    """
    if embedder.is_stateful:
        raise ElmoZhError(
            "The vectors in an index must not depend on previous sentences. Use an embedder that is not stateful."
        )
    if settings.options.split_sentences:
        require_sentences(embedder.bundle)
    build = _Build(embedder, texts, output, settings, reporter)
    try:
        report = build.run(engine or ThisProcess(), force=force)
        build.work.remove()
    finally:
        build.work.remove_unless("index", "text-*/text-*.npz")
    return report


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
        inputs = [*(source.path for source in sources.sources), embedder.bundle.path]
        with claimed_output(folder, inputs, is_index, force=force):
            report = build_index(embedder, texts, folder, settings, force=force, reporter=reporter)
    if report.missing_words:
        reporter.warn(describe_missing_words(report.missing_words, "words"))


class _Build:
    """An index in progress; it reads a text again only if the file's digest or the settings differ."""

    def __init__(
        self,
        embedder: ElmoEmbedder,
        texts: Sequence[InputText],
        output: Path,
        settings: IndexSettings,
        reporter: Reporter,
    ) -> None:
        self._embedder, self._texts, self._output, self._settings = embedder, texts, output, settings
        self._reporter, self._hints = reporter, Hints(reporter)
        self.work = WorkFolder.of(output)
        # The folder appears when all but the vectors are finished.
        self._layout = IndexLayout(self.work.path / "index")

    def run(self, engine: Engine, *, force: bool) -> IndexReport:
        read = self._write_all_tokens(force=force)
        refusal = "an unfinished index with different texts, a different model or different settings"
        self.work.open(self._manifest(read), force=force, refusal=refusal, discard=self._discard_index)
        tokens = [self._tokens(number) for number in range(len(read))]
        if not self._layout.path.is_dir():
            self._write_text(read, tokens)
        layers = self._settings.layers
        write_vectors(self._embedder, self.work, self._layout, tokens, layers, engine, self._reporter)
        return self._finish()

    def _tokens(self, number: int) -> TextTokens:
        return TextTokens(WorkFolder(self.work.path / f"text-{number:05d}"))

    def _discard_index(self) -> None:
        remove(self._layout.path)
        for pattern in ("part-*.json", "computed-*"):
            for path in self.work.path.glob(pattern):
                remove(path)

    def _write_all_tokens(self, *, force: bool) -> list[tuple[str, TokenCounts]]:
        """Write the tokens of the texts; skip non-text files found in folders."""
        texts: list[InputText] = []
        read: list[tuple[str, TokenCounts]] = []
        for text in self._texts:
            try:
                read.append(self._write_tokens(text, self._tokens(len(read)), force=force))
                texts.append(text)
            except UnsuitableError as error:
                text.skip(error, self._reporter)
        if not texts:
            raise CorpusError("The folder contains no text files. Give text files, or a folder that contains some.")
        self._texts = texts
        return read

    def _write_tokens(self, text: InputText, tokens: TextTokens, *, force: bool) -> tuple[str, TokenCounts]:
        reading = {"segmented": self._settings.segmented, "split": self._settings.options.split_sentences}
        stamp, digest = Stamp.of(text.source), file_digest(text.source.path)
        made_from = {"format": INDEX_FORMAT, "source_digest": digest, **self._embedder.identity()}
        made_from |= {**reading, "reading": text.reading}
        tokens.folder.open(made_from, force=force)
        counts = tokens.write(
            self._embedder, text, **reading, longest=LONGEST_SENTENCE, stamp=stamp, reporter=self._reporter
        )
        hint_at_long_lines(text, counts, self._hints)
        return digest, counts

    def _manifest(self, read: Sequence[tuple[str, TokenCounts]]) -> dict[str, Any]:
        texts = [
            {"name": text.name, "digest": digest, "lines": counts.lines, **text.reading}
            for text, (digest, counts) in zip(self._texts, read, strict=True)
        ]
        return {
            "format": INDEX_FORMAT,
            "model": {"path": str(self._embedder.bundle.path), **self._embedder.identity()},
            "dimension": self._embedder.dimension,
            "settings": self._settings.described(),
            "texts": texts,
        }

    def _write_text(self, read: Sequence[tuple[str, TokenCounts]], tokens: Sequence[TextTokens]) -> None:
        """Choose the occurrences and write everything except the vectors; reserve space for them."""
        self._discard_index()
        words = count_words(tokens, self._reporter)
        counts = TokenCounts()
        for _, each in read:
            counts.add(each)
        unit = "sentence" if self._settings.options.split_sentences else "line"
        self._reporter.note(
            f"{counted(len(self._texts), 'text')}: {counted(counts.lines, unit)}, {counted(counts.tokens, 'token')}"
        )
        self._hint_at_unknown_words(counts, words)
        with atomic_path(self._layout.path) as unfinished:
            unfinished.mkdir()
            layout, settings = IndexLayout(unfinished), self._settings
            found, rows = write_index_text(layout, tokens, settings, words, self._reporter)
            self._require_words(found, words)
            found = {**counts.reported(), **found, "distinct_words": len(words.numbers)}
            if not counts.backed_off_tokens:
                found.pop("backed_off_tokens", None)
            self._make_room(layout, found)
            save_npy(unfinished / KEPT_ROWS, rows)
            files = layout.files(settings.layers)
            if dictionary := self._embedder.user_dictionary:
                copyfile(dictionary, layout.user_dictionary)
                files.append(layout.user_dictionary)
            sizes = {path.name: path.stat().st_size for path in files}
            missing = sorted(word for word in settings.words or () if word.encode() not in words.numbers)
            made_of = self._manifest(read)
            for described, text in zip(made_of["texts"], self._texts, strict=True):
                if text.members.names:
                    described["members"] = text.members.described()
            write_json(layout.info, {**made_of, "counts": found, "missing_words": missing, "bytes": sizes})

    def _hint_at_unknown_words(self, counts: TokenCounts, words: WordNumbers) -> None:
        unknown = self._unknown_words(words)
        line = describe_unknown_rate(self._embedder.bundle, counts.tokens, counts.unknown_tokens, unknown)
        if line:
            self._hints.give("unknown words", line)

    def _unknown_words(self, words: WordNumbers) -> dict[str, int]:
        spelled = words.words
        unknown = np.flatnonzero(self._embedder.find_unknown(spelled)).tolist()
        return {spelled[number]: int(words.counts[number]) for number in unknown}

    def _require_words(self, found: dict[str, int], words: WordNumbers) -> None:
        if found["occurrences"]:
            return
        self.work.remove()
        names = ", ".join(text.name for text in self._texts[:3])
        if not any(map(is_word, words.words)):
            raise CorpusError(f"{names}: the text contains no words. Give a text with words.")
        distinct = counted(len(words.numbers), "distinct token")
        if (wanted := self._settings.words) is not None:
            raise CorpusError(
                f"{names}: none of the words in --words ({len(wanted):,} given) is a token of the text ({distinct})."
                " Write the words as the segmenter splits them, or leave out --words."
            )
        raise CorpusError(
            f"{names}: no word occurs at least {self._settings.options.min_count:,} times ({distinct} in total)."
            " Give more text, or lower --min-count."
        )

    def _make_room(self, layout: IndexLayout, found: dict[str, int]) -> None:
        """Create the vector files; raise OutputError if the disk does not have enough space."""
        num_layers = len(self._settings.layers)
        vector_bytes = found["occurrences"] * self._embedder.dimension * VECTOR.itemsize * num_layers
        needed = vector_bytes + found["occurrences"] * _OTHER_BYTES
        advice = "--layers top, --max-per-word 100, --min-count 10"
        space = require_disk_space(self._output, needed, advice=advice)
        self._reporter.note(
            f"Indexing {counted(found['occurrences'], 'occurrence')} of {counted(found['words'], 'word')} in"
            f" {counted(found['kept_lines'], 'line')}; the vectors take {format_bytes(vector_bytes)}"
            f" ({counted(num_layers, 'layer')}, float16), {space}"
        )
        kinds = layout.arrays(found, self._settings.layers, self._embedder.dimension)
        for layer in self._settings.layers:
            for path in (layout.vectors(layer), layout.norms(layer)):
                RowFile.create(path, *kinds[path])

    def _finish(self) -> IndexReport:
        layout = self._layout
        info = read_json(layout.info)
        with atomic_path(self._output) as unfinished:
            unfinished.mkdir()
            for name in info["bytes"]:
                link_or_copy(layout.path / name, unfinished / name)
            digests = {name: file_digest(unfinished / name) for name in info["bytes"]}
            write_json(IndexLayout(unfinished).info, {**info, "digests": digests})
        num_bytes = sum(info["bytes"].values()) + IndexLayout(self._output).info.stat().st_size
        return IndexReport(
            path=self._output, counts=info["counts"], num_bytes=num_bytes, missing_words=tuple(info["missing_words"])
        )
