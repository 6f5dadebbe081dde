"""Build an index of occurrences: the vectors of words in their sentences, on disk, so that similar ones can be found.

The texts are read as `embed` reads them. First all tokens are written; then occurrences are chosen, so that their
number is known; then the lines that hold one are computed, and their vectors written where they stay.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from elmo_zh.config import TextConfig
from elmo_zh.contexts.choice import Choice
from elmo_zh.contexts.index_text import Reading, WordNumbers, count_words, write_index_text
from elmo_zh.contexts.index_vectors import write_vectors
from elmo_zh.contexts.layout import INDEX_FORMAT, VECTOR, IndexLayout, array_kinds, is_index
from elmo_zh.contexts.unfinished_index import IndexParts
from elmo_zh.corpus.content import UnsuitableError
from elmo_zh.corpus.input_texts import InputText, input_text
from elmo_zh.corpus.sources import Sources, Stamp
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.embed.jobs import texts_to_embed
from elmo_zh.embed.text_tokens import TextTokens, TokenCounts, hint_at_long_lines, require_sentences
from elmo_zh.embed.unknown_rate import describe_unknown_rate
from elmo_zh.engine.engine import Engine, ThisProcess
from elmo_zh.errors import CorpusError, ElmoZhError
from elmo_zh.run.arrays import RowFile, save_npy
from elmo_zh.run.disk_space import require_disk_space
from elmo_zh.run.files import atomic_path, file_digest, link_or_copy, read_json, write_json
from elmo_zh.run.reporter import Hints, Reporter, counted, format_bytes
from elmo_zh.run.resumable import claimed_output
from elmo_zh.vocabulary.vocabulary import is_word

# Bytes of an occurrence besides its vectors: itself, its posting, and its share of a line.
_OTHER_BYTES = 100


@dataclass(frozen=True, kw_only=True)
class IndexSettings:
    """The choices that determine the content of an index.

    Attributes:
        layers: Numbers of the layers whose vectors are kept, ascending.
        segmented: Tokens are split at U+0020 and looked up as they are; else lines are normalised and segmented.
        split_sentences: Lines are split into sentences as in training.
        choice: Which occurrences are kept.
        made_by: The command that made the index for itself, without being asked for one; empty for `index`.
    """

    layers: tuple[int, ...]
    segmented: bool = False
    split_sentences: bool = False
    choice: Choice = field(default_factory=Choice)
    made_by: str = ""

    @property
    def reading(self) -> Reading:
        """The part of the settings that says how texts are read."""
        return Reading(segmented=self.segmented, split=self.split_sentences)

    def described(self) -> dict[str, Any]:
        """Return the settings as JSON values."""
        described = {
            "layers": list(self.layers),
            "segmented": self.segmented,
            "split_sentences": self.split_sentences,
            **asdict(self.choice),
        }
        if (words := self.choice.words) is not None:
            digest = sha256("\n".join(sorted(words)).encode()).hexdigest()
            described["words"] = {"count": len(words), "digest": f"sha256:{digest}"}
        if self.made_by:
            described["made_by"] = self.made_by
        return described


@dataclass(frozen=True, kw_only=True)
class IndexReport:
    """Report on a finished index.

    Attributes:
        path: Its folder.
        counts: Counts of lines, tokens and unknown tokens of the texts, and of words, occurrences and kept lines.
        num_bytes: Size of the folder.
        missing_words: Words of the given list that do not occur as a token.
    """

    path: Path
    counts: dict[str, int]
    num_bytes: int
    missing_words: tuple[str, ...]


def texts_to_index(sources: Sources, config: TextConfig, *, segmented: bool) -> list[InputText]:
    """Return the texts of sources, without those in folders that `embed` or `index` has written."""
    found = [source for source in texts_to_embed(sources) if source.is_named or not is_index(source.path.parent)]
    return [input_text(source, config, segmented=segmented) for source in found]


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
    """Write an index of the words of texts. An unfinished one is continued.

    Each text is read three times: its bytes for their digest, and its lines for their tokens and to write those kept.
    Memory grows with the number of distinct words, and by about 20 bytes for each chosen occurrence.

    Args:
        embedder: The model, not a stateful one.
        texts: The texts.
        output: The folder to write.
        settings: What the index holds.
        force: Replace an existing index, and do not resume an unfinished one.
        reporter: Receives messages and progress.
        engine: Runs the computation of the vectors; default this process.

    Raises:
        ElmoZhError: If the embedder is stateful.
        CorpusError: If a text cannot be read or changes, or no word occurs often enough.
        OutputError: If the output exists or does not fit on its disk; if an unfinished one is of other texts, another
            model or other settings.
    """
    if embedder.is_stateful:
        raise ElmoZhError("An index holds vectors of single sentences. Give an embedder that is not stateful.")
    if settings.split_sentences:
        require_sentences(embedder.bundle)
    inputs = [*(text.source.path for text in texts), embedder.bundle.path]
    with claimed_output(output, inputs, is_index, force=force):
        build = _Build(embedder, texts, output, settings, reporter)
        try:
            report = build.run(engine or ThisProcess(), force=force)
            build.parts.remove()
        finally:
            build.parts.remove(if_empty=True)
    return report


class _TextRead(NamedTuple):
    """The digest of a text's file, and the counts of its tokens."""

    digest: str
    counts: TokenCounts


def _recorded(counts: TokenCounts) -> dict[str, int]:
    """Return counts as an index has them: without backed-off tokens if there are none, as ever."""
    return {name: count for name, count in counts.reported().items() if count or name != "backed_off_tokens"}


class _Build:
    """An index in progress."""

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
        self.parts = IndexParts.of(output)

    def run(self, engine: Engine, *, force: bool) -> IndexReport:
        """Write the index."""
        stamped = [(Stamp.of(text.source), text.source) for text in self._texts]
        read = self._write_all_tokens(force=force)
        self.parts.open(self._manifest(read), force=force)
        if not self.parts.layout.path.is_dir():
            self._write_text(read)
            for stamp, source in stamped:
                stamp.require(source)
        write_vectors(self._embedder, self.parts, len(self._texts), self._settings.layers, engine, self._reporter)
        return self._finish()

    def _write_all_tokens(self, *, force: bool) -> list[_TextRead]:
        """Write the tokens of the texts; files found in folders that are no text are skipped."""
        texts: list[InputText] = []
        read: list[_TextRead] = []
        for text in self._texts:
            try:
                read.append(self._write_tokens(text, self.parts.text(len(read)), force=force))
                texts.append(text)
            except UnsuitableError as error:
                text.skip(error, self._reporter)
        if not texts:
            raise CorpusError("None of the files in the folder is text. Give files by name, or a folder with text.")
        self._texts = texts
        return read

    def _write_tokens(self, text: InputText, tokens: TextTokens, *, force: bool) -> _TextRead:
        """Write the tokens of a text, unless they are there."""
        reading = self._settings.reading
        stamp, digest = Stamp.of(text.source), file_digest(text.source.path)
        made_from = {"source_digest": digest, **self._embedder.identity(), **asdict(reading), "reading": text.reading}
        tokens.folder.open(made_from, force=force)
        counts = tokens.write(
            self._embedder,
            text,
            segmented=reading.segmented,
            split=reading.split,
            stamp=stamp,
            reporter=self._reporter,
        )
        hint_at_long_lines(text, counts, self._hints)
        return _TextRead(digest, counts)

    def _manifest(self, read: Sequence[_TextRead]) -> dict[str, Any]:
        texts = [
            {"name": text.name, "digest": each.digest, "lines": each.counts.lines, **text.reading}
            for text, each in zip(self._texts, read, strict=True)
        ]
        return {
            "format": INDEX_FORMAT,
            "model": {"path": str(self._embedder.bundle.path), **self._embedder.identity()},
            "dimension": self._embedder.dimension,
            "settings": self._settings.described(),
            "texts": texts,
        }

    def _write_text(self, read: Sequence[_TextRead]) -> None:
        """Choose the occurrences, and write everything but the vectors, for which there is room then."""
        self.parts.discard_index()
        words = count_words(self.parts, len(self._texts), self._reporter)
        counts = TokenCounts()
        for each in read:
            counts.add(each.counts)
        unit = "sentence" if self._settings.split_sentences else "line"
        self._reporter.note(
            f"{counted(len(self._texts), 'text')}: {counted(counts.lines, unit)}, {counted(counts.tokens, 'token')}"
        )
        self._hint_at_unknown_words(counts, words)
        with atomic_path(self.parts.layout.path) as unfinished:
            unfinished.mkdir()
            layout, settings = IndexLayout(unfinished), self._settings
            found, rows = write_index_text(
                layout, self.parts, self._texts, settings.reading, words, settings.choice, self._reporter
            )
            self._require_words(found, words)
            found = {**_recorded(counts), **found, "distinct_words": len(words.numbers)}
            self._make_room(layout, found)
            save_npy(unfinished / self.parts.rows.name, rows)
            sizes = {path.name: path.stat().st_size for path in layout.files(settings.layers)}
            missing = sorted(word for word in settings.choice.words or () if word.encode() not in words.numbers)
            made_of = self._manifest(read)
            for described, text in zip(made_of["texts"], self._texts, strict=True):
                if text.members.names:
                    described["members"] = text.members.described()
            write_json(layout.info, {**made_of, "counts": found, "missing_words": missing, "bytes": sizes})

    def _hint_at_unknown_words(self, counts: TokenCounts, words: WordNumbers) -> None:
        line = describe_unknown_rate(
            self._embedder.bundle,
            counts.tokens,
            counts.unknown_tokens,
            lambda: self._unknown_words(words),
            segmented=self._settings.segmented,
        )
        if line:
            self._hints.give("unknown words", line)

    def _unknown_words(self, words: WordNumbers) -> dict[str, int]:
        """Return the unknown words among those of the texts, each with its count."""
        spelled = words.words
        unknown = np.flatnonzero(self._embedder.find_unknown(spelled)).tolist()
        return {spelled[number]: int(words.counts[number]) for number in unknown}

    def _require_words(self, found: dict[str, int], words: WordNumbers) -> None:
        """Raise CorpusError if no occurrence is chosen."""
        if found["occurrences"]:
            return
        self.parts.remove()
        names = ", ".join(text.name for text in self._texts[:3])
        choice = self._settings.choice
        if not any(map(is_word, words.words)):
            raise CorpusError(f"{names}: there is no word in the text. Give text with words.")
        distinct = counted(len(words.numbers), "distinct token")
        if choice.words is not None:
            raise CorpusError(
                f"{names}: none of the {len(choice.words):,} words of --words is among its {distinct}."
                " Write them as the segmenter cuts them, or leave out --words."
            )
        raise CorpusError(
            f"{names}: none of its {distinct} is a word that occurs {choice.min_count:,} times."
            " Give more text, or lower --min-count."
        )

    def _make_room(self, layout: IndexLayout, found: dict[str, int]) -> None:
        """Create the files of the vectors.

        Raises:
            OutputError: If the disk has not enough space.
        """
        num_layers = len(self._settings.layers)
        vector_bytes = found["occurrences"] * self._embedder.dimension * VECTOR.itemsize * num_layers
        needed = vector_bytes + found["occurrences"] * _OTHER_BYTES
        advice = "--layers top, --max-per-word 100, --min-count 10"
        space = require_disk_space(self._output, needed, advice=advice)
        self._reporter.note(
            f"{counted(found['occurrences'], 'occurrence')} of {counted(found['words'], 'word')} chosen, in"
            f" {counted(found['kept_lines'], 'line')}; {format_bytes(vector_bytes)} of vectors"
            f" ({counted(num_layers, 'layer')}, float16), {space}"
        )
        kinds = array_kinds(layout, found, self._settings.layers, self._embedder.dimension)
        for layer in self._settings.layers:
            for path in (layout.vectors(layer), layout.norms(layer)):
                RowFile.create(path, *kinds[path])

    def _finish(self) -> IndexReport:
        """Make the index of its files."""
        layout = self.parts.layout
        info = read_json(layout.info)
        with atomic_path(self._output) as unfinished:
            unfinished.mkdir()
            for name in (layout.info.name, *info["bytes"]):
                link_or_copy(layout.path / name, unfinished / name)
        num_bytes = sum(info["bytes"].values()) + layout.info.stat().st_size
        return IndexReport(
            path=self._output, counts=info["counts"], num_bytes=num_bytes, missing_words=tuple(info["missing_words"])
        )
