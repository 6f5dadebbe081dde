"""ContextIndex: read an index of occurrences. Its files are memory-mapped and read on demand."""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elmo_zh.checks import check_path, check_string, check_vectors, check_whole_number
from elmo_zh.contexts import IndexOptions
from elmo_zh.contexts.index_files import (
    Column,
    IndexArrays,
    IndexedLine,
    IndexedTexts,
    IndexLayout,
    Neighbour,
    Occurrence,
    damaged,
    load_info,
    with_source,
)
from elmo_zh.contexts.index_settings import IndexSettings, describe_missing_word
from elmo_zh.contexts.nearest import nearest_among, nearest_of_each
from elmo_zh.errors import ElmoZhError
from elmo_zh.run.reporter import Reporter, WarningReporter

if TYPE_CHECKING:
    from elmo_zh.embed.embedder import ElmoEmbedder

_SHOWN_DIGITS = 12


class ContextIndex:
    """An index of words in their sentences, as written by `elmo-zh index`.

        index = ContextIndex.load("news.index")
        [first, *_] = index.occurrences("苹果")
        index.neighbours(index.vectors(2)[first], layer=2, top=5)

    Attributes:
        path: Folder of the index.
        model_digest: Digest of the bundle that computed the vectors.
        model: That bundle's path, model_digest, precision and unknown.
        layers: Numbers of the layers with vectors, ascending.
        dimension: Length of a vector, 2P.
        is_segmented: Whether its texts were already segmented when they were indexed.
        user_dictionary: File of additional words that the segmenter kept whole; None without one.
        info: Content of index.json.
        sources: Names of the indexed files; archives are listed by member, such as texts.zip/old/1.txt.
        archives: Names of the indexed archives.
    """

    def __init__(self, path: Path, info: dict[str, Any]) -> None:
        """Open the files of an index; `ContextIndex.load` reads the info and checks it."""
        self.path, self.info = path, info
        self.model: dict[str, str] = info["model"]
        self.model_digest = self.model["model_digest"]
        self.layers: tuple[int, ...] = tuple(info["settings"]["layers"])
        self.dimension: int = info["dimension"]
        self.is_segmented: bool = info["settings"]["segmented"] is True
        self._layout = IndexLayout(path)
        self._arrays = IndexArrays(self._layout, info, self.layers)
        self._array = self._arrays.read
        self.user_dictionary = self._arrays.user_dictionary(self.model)
        self._texts = IndexedTexts(info)
        self.sources, self.archives = self._texts.sources, self._texts.archives

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "ContextIndex":
        """Open an index.

        Args:
            path: Folder of the index.

        Raises:
            TypeError: If `path` is not a path.
            OutputError: If the folder is not an index, or the index is damaged or from a different version.
        """
        folder = check_path(path, "ContextIndex.load", "path", "the folder of an index")
        return cls(folder, load_info(folder))

    @classmethod
    def build(
        cls,
        embedder: "ElmoEmbedder",
        texts: str | PathLike[str] | Iterable[str | PathLike[str]],
        path: str | PathLike[str],
        *,
        split_sentences: bool = False,
        segmented: bool = False,
        from_name: str | None = None,
        layers: str | int | Sequence[int] = "all",
        min_count: int = 2,
        max_per_word: int = 1000,
        words: Iterable[str] | None = None,
        seed: int = 1,
        force: bool = False,
        reporter: Reporter | None = None,
    ) -> "ContextIndex":
        """Index the words in texts, producing the same bytes as `elmo-zh index`, and open the index.

            embedder = ElmoEmbedder.load("runs/latest/model")
            index = ContextIndex.build(embedder, "news/", "news.index", split_sentences=True)

        Repeat an interrupted call to resume it. docs/contexts.md describes the choice of words and the folder.

        Args:
            embedder: The model; it must not be stateful.
            texts: A file, a folder or a glob, or several of them, in any form that `segment` reads.
            path: The folder to write; it appears when the index is complete.
            split_sentences: Split lines into sentences as in training; each counts as a line.
            segmented: The texts have one sentence per line, its tokens separated by single spaces.
            from_name: Pattern that takes columns from file names, such as {year}_{author}.txt.
            layers: Layers whose vectors are kept: all, top, or one or more numbers; 0 is the token layer.
            min_count: Index only words that occur at least this often; has no effect with `words`.
            max_per_word: Keep at most this many occurrences of a word, chosen at random; 0 keeps all.
            words: Index only these words, however rare. Default: all but punctuation.
            seed: Seed of the samples.
            force: Replace an existing index, and do not resume an unfinished one.
            reporter: Receives messages and progress. Default: show only warnings, as Python warnings.

        Raises:
            TypeError, ValueError: If an argument is not as described above.
            ElmoZhError: If the embedder is stateful.
            CorpusError: If a text does not exist, cannot be read or changes, or no word occurs often enough.
            OutputError: If the folder exists, does not fit on its disk, or holds a different unfinished index.

        Warns:
            UserWarning: If a file is skipped, far more words are unknown than in training, or words do not occur.
        """
        from elmo_zh.contexts.build_index import index_files  # opening an index needs no torch

        options = IndexOptions(
            split_sentences=split_sentences,
            from_name=from_name,
            min_count=min_count,
            max_per_word=max_per_word,
            seed=seed,
        )
        settings = IndexSettings.checked(embedder, options, layers, words, segmented=segmented)
        index_files(embedder, texts, path, settings, force=force, reporter=reporter or WarningReporter())
        return cls.load(path)

    def __repr__(self) -> str:
        return (
            f"ContextIndex({str(self.path)!r}, {len(self):,} occurrences of {self.info['counts']['words']:,} words,"
            f" layers {', '.join(map(str, self.layers))}, dimension {self.dimension})"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle only the path; the files must still exist when the index is loaded again."""
        return ContextIndex.load, (self.path.absolute(),)

    def __len__(self) -> int:
        """The number of occurrences."""
        return int(self.info["counts"]["occurrences"])

    @cached_property
    def words(self) -> Sequence[str]:
        """The words that have occurrences with vectors, sorted by code points."""
        ends = self._array(self._layout.words)["postings_end"]
        return [self.distinct_tokens[number] for number in np.flatnonzero(np.diff(ends, prepend=0)).tolist()]

    @cached_property
    def distinct_tokens(self) -> Sequence[str]:
        """All distinct tokens, sorted by code points, including punctuation and tokens too rare for vectors."""
        self._arrays.check(self._layout.word_text)
        spelled = self._layout.word_text.read_bytes()
        try:
            ends = self._array(self._layout.words)["end"].tolist()
            return [spelled[start:end].decode() for start, end in pairwise([0, *ends])]
        except UnicodeDecodeError:
            raise damaged(self._layout.word_text) from None

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str) and self._number(word) is not None

    def count(self, word: str) -> int:
        """Count all occurrences of an indexed word in the texts, including any left out of its sample.

        Raises:
            ElmoZhError: If the word is not in the index.
        """
        return int(self._array(self._layout.words)["count"][self._require(word)])

    def occurrences(self, word: str) -> NDArray[np.int64]:
        """Return the numbers of a word's occurrences, ascending, int64, shape (n,).

        Raises:
            ElmoZhError: If the word is not in the index; the message names similar spellings.
            TypeError: If the word is not a string.
        """
        number = self._require(word)
        ends = self._array(self._layout.words)["postings_end"]
        found = np.array(self._array(self._layout.postings)[int(ends[number - 1]) if number else 0 : int(ends[number])])
        if len(found) == 0 or found.min() < 0 or found.max() >= len(self):
            raise damaged(self._layout.postings)
        return found

    def occurrence(self, number: int) -> Occurrence:
        """Return the occurrence with the given number: its word, line and offsets.

        Raises:
            TypeError, IndexError: If `number` is not a whole number, or there is no such occurrence.
        """
        number = _check_entry(number, len(self), "occurrence")
        word, line, token, start, end = self._array(self._layout.occurrences)[number].tolist()
        counts = self.info["counts"]
        if not (0 <= word < counts["distinct_words"] and 0 <= line < counts["lines"] and 0 <= start <= end):
            raise damaged(self._layout.occurrences)
        return Occurrence(number, self.distinct_tokens[word], line, token, start, end)

    def occurrences_beside(self, number: int) -> NDArray[np.int64]:
        """Return the numbers of the other occurrences on the same line, ascending, int64, shape (n,)."""
        number = _check_entry(number, len(self), "occurrence")
        first, last = np.searchsorted(self._lines, [self._lines[number], self._lines[number] + 1])
        return np.delete(np.arange(first, last), number - first)

    @cached_property
    def _lines(self) -> NDArray[np.int32]:
        """The line of each occurrence, ascending, int32, shape (N,)."""
        lines = np.ascontiguousarray(self._array(self._layout.occurrences)["line"])
        if (lines[1:] < lines[:-1]).any():
            raise damaged(self._layout.occurrences)
        return lines

    def line(self, number: int) -> IndexedLine:
        """Return the line with the given number, such as an `Occurrence.line`.

        Raises:
            TypeError, IndexError: If `number` is not a whole number, or there is no such line.
        """
        lines = self._array(self._layout.lines)
        number = _check_entry(number, len(lines), "line")
        start = int(lines["end"][number - 1]) if number else 0
        self._arrays.check(self._layout.line_text)
        with self._layout.line_text.open("rb") as file:
            file.seek(start)
            text = file.read(int(lines["end"][number]) - start)
        try:
            decoded = text.decode()
        except UnicodeDecodeError:
            raise damaged(self._layout.line_text) from None
        return self._texts.line(decoded, *lines[["source", "number", "start"]][number].tolist())

    @cached_property
    def columns(self) -> Mapping[str, Column]:
        """The columns of the lines by name; the first one, `source`, is the file that each line comes from."""
        lines = self._array(self._layout.lines)
        return with_source(self._texts.source_column(lines["source"], lines["number"]), self._arrays.columns())

    def line_numbers(self) -> NDArray[np.int64]:
        """Return each line's number in its text, from 0, shape (L,); sentences from one raw line share a number."""
        return np.asarray(self._array(self._layout.lines)["number"])

    def tokens(self) -> tuple[NDArray[np.void], NDArray[np.int64]]:
        """Return all tokens, memory-mapped, and the cumulative number of tokens at the end of each line.

        A token has a `word`, its place in `distinct_tokens`, and a `start` and `end` in the text of its line, int32.
        """
        return self._arrays.tokens(), self._array(self._layout.lines)["tokens_end"]

    def token_numbers(self) -> NDArray[np.int64]:
        """Return the token number of each occurrence, counted across all texts, ascending, int64, shape (N,)."""
        tokens, lines = self._array(self._layout.occurrences)["token"], self._lines
        return np.asarray(np.where(lines > 0, self._array(self._layout.lines)["tokens_end"][lines - 1], 0) + tokens)

    def vectors(self, layer: int) -> NDArray[np.float16]:
        """Return the vectors of all occurrences in a layer, memory-mapped, read-only, float16, shape (N, 2P).

        Raises:
            ElmoZhError: If the index does not have this layer.
        """
        return self._array(self._layout.vectors(self._check_layer(layer)))

    def vectors_of(self, numbers: NDArray[np.int64], layer: int) -> NDArray[np.float16]:
        """Return the vectors of some occurrences in a layer, in memory, float16, shape (n, 2P).

        Raises:
            ElmoZhError: If the index does not have this layer, or a vector is damaged.
        """
        found = self.vectors(layer)[numbers]
        if not np.isfinite(found).all():
            raise damaged(self._layout.vectors(layer))
        return found

    def norms(self, layer: int) -> NDArray[np.float32]:
        """Return the Euclidean norms of the vectors in a layer, memory-mapped, read-only, float32, shape (N,)."""
        return self._array(self._layout.norms(self._check_layer(layer)))

    def neighbours(self, vector: ArrayLike, layer: int, top: int = 10, word: str | None = None) -> list[Neighbour]:
        """Return the occurrences whose vectors are most similar to a given one, found by exact search.

        Args:
            vector: The vector to compare with, shape (2P,).
            layer: The layer that the vector comes from.
            top: How many to return, at most.
            word: Search only occurrences of this word.

        Returns:
            The neighbours in descending order of cosine; ties go to the earlier occurrence in the texts.

        Raises:
            ElmoZhError: If the index does not have this layer or this word.
            TypeError: If a word is given in place of a vector.
            ValueError: If the vector has the wrong shape or is not finite, or `top` is less than 1.
        """
        top = check_whole_number(top, "neighbours", "top", 1, kinds=(TypeError, ValueError))
        query = check_vectors(vector, (self.dimension,), "neighbours", "vector")
        vectors, norms = self.vectors(layer), self.norms(layer)
        if word is None:
            [(numbers, cosines)] = nearest_of_each(vectors, norms, query[None], top)
        else:
            numbers, cosines = nearest_among(self.occurrences(word), vectors, query, top)
        return self._neighbours(numbers, cosines)

    def neighbours_of_each(self, vectors: ArrayLike, layer: int, top: int = 10) -> list[list[Neighbour]]:
        """Find the `neighbours` of many vectors at once, several times faster than one by one.

        Args:
            vectors: The vectors to compare with, shape (Q, 2P).
            layer: The layer that the vectors come from.
            top: How many to return for each, at most.

        Raises:
            ElmoZhError: If the index does not have this layer.
            ValueError: If the vectors have the wrong shape or are not finite, or `top` is less than 1.
        """
        top = check_whole_number(top, "neighbours_of_each", "top", 1, kinds=(TypeError, ValueError))
        queries = check_vectors(vectors, (None, self.dimension), "neighbours_of_each", "vectors")
        return [
            self._neighbours(*found) for found in nearest_of_each(self.vectors(layer), self.norms(layer), queries, top)
        ]

    def _neighbours(self, numbers: NDArray[np.int64], cosines: NDArray[np.float64]) -> list[Neighbour]:
        pairs = zip(numbers.tolist(), cosines.tolist(), strict=True)
        return [Neighbour(self.occurrence(number), cosine) for number, cosine in pairs]

    def require_model(self, digest: str, path: Path) -> None:
        """Raise ElmoZhError unless the bundle with this digest computed the index; the message names its `path`."""
        if digest != self.model_digest:
            own, other = (each.removeprefix("sha256:")[:_SHOWN_DIGITS] for each in (self.model_digest, digest))
            raise ElmoZhError(
                f"{self.path} was made with the model {self.model['path']} ({own}), but {path} is a different model"
                f" ({other}). Give the model of the index with --model, or rebuild the index: index --model"
            )

    def _number(self, word: str) -> int | None:
        """Return the number of a word, or None if it has no vectors."""
        number = bisect_left(self.distinct_tokens, check_string(word, "ContextIndex", "word"))
        if number == len(self.distinct_tokens) or self.distinct_tokens[number] != word:
            return None
        ends = self._array(self._layout.words)["postings_end"]
        return number if ends[number] > (ends[number - 1] if number else 0) else None

    def _require(self, word: str) -> int:
        number = self._number(word)
        if number is None:
            raise ElmoZhError(describe_missing_word(word, self.words, self.path, is_token=word in self.distinct_tokens))
        return number

    def _check_layer(self, layer: int) -> int:
        if layer not in self.layers:
            known = ", ".join(map(str, self.layers))
            raise ElmoZhError(f"{self.path} has no vectors for layer {layer}. Choose one of its layers: {known}")
        return layer


def _check_entry(number: object, count: int, call: str) -> int:
    return check_whole_number(number, call, "number", 0, count - 1, kinds=(TypeError, IndexError))
