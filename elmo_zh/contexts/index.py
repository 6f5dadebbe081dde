"""ContextIndex: read an index of occurrences.

Arrays are memory-mapped. The digest of a file is checked when the file is first read. `contexts.build_index` writes the
files; docs/indexes.md describes them.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from operator import index
from os import PathLike
from pathlib import Path
from tokenize import TokenError
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elmo_zh.bundle.find_bundle import find_same_bundle, other_model
from elmo_zh.bundle.read import load_text_settings
from elmo_zh.checks import check_top, check_vectors, refusal
from elmo_zh.config import TextConfig
from elmo_zh.contexts import index_files as layout
from elmo_zh.contexts.index_files import Column, IndexedLine, Neighbour, Occurrence
from elmo_zh.contexts.nearest import nearest_among, nearest_rows
from elmo_zh.corpus.content import shown
from elmo_zh.corpus.input_texts import Members, member_name
from elmo_zh.errors import ElmoZhError, OutputError
from elmo_zh.language import N_, _
from elmo_zh.run.files import file_digest, read_json
from elmo_zh.run.reporter import Reporter
from elmo_zh.text.normalise import build_normaliser

if TYPE_CHECKING:
    from elmo_zh.embed.embedder import ElmoEmbedder

NOT_IN_TEXTS = N_("{word} is not in {path}. Use a word that occurs in its texts, exactly as they are segmented.")
NO_VECTORS = N_(
    "{path} has no vectors for {word}. An index leaves out punctuation, rare words and some occurrences of frequent"
    " words, or has only the words in --words FILE. Rebuild it with --max-per-word 0 and either a lower --min-count"
    " (without --words) or a file that lists the word: --words FILE"
)


class ContextIndex:
    """An index of words in their sentences, as written by `elmo-zh index`.

        index = ContextIndex.load("news.index")
        [first, *_] = index.occurrences("苹果")
        index.neighbours(index.vectors(2)[first], layer=2, top=5)

    Attributes:
        path: Folder of the index.
        model_digest: Digest of the bundle that computed the vectors.
        model: That bundle's path and model_digest, the precision and `unknown` that were used, and the digest of
            `user_dictionary`, if any.
        layers: Numbers of the layers with vectors, ascending.
        dimension: Length of a vector, 2P.
        is_segmented: Whether its texts were already segmented when they were indexed.
        user_dictionary: File of additional words that the segmenter kept whole; None without one.
        info: Content of index.json.
        sources: Names of the indexed files; archives are listed by member, such as texts.zip/old/1.txt.
    """

    def __init__(self, path: Path, info: dict[str, Any]) -> None:
        """Check that the files of an index are there and have the right size; `ContextIndex.load` reads the info."""
        self.path, self.info = path, info
        self.model: dict[str, str] = info["model"]
        self.model_digest = self.model["model_digest"]
        self.layers: tuple[int, ...] = tuple(info["settings"]["layers"])
        self.dimension: int = info["dimension"]
        self.is_segmented: bool = info["settings"]["segmented"] is True
        # Indexes of early versions have no digests.
        self._unchecked = dict(info.get("digests", {}))
        self._kinds = layout.index_files(info["counts"], self.layers, self.dimension)
        self._opened: dict[str, NDArray[Any]] = {}
        self._require_files()
        self._texts = [(text["name"], Members.restored(text.get("members", []))) for text in info["texts"]]
        self.sources = [
            source
            for name, members in self._texts
            for source in ([member_name(name, member.name) for member in members] or [name])
        ]

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "ContextIndex":
        """Open an index.

        Args:
            path: Folder of the index.

        Raises:
            TypeError: If `path` is not a path.
            OutputError: If the folder is not an index, or the index is damaged or from a different version.
        """
        folder = Path(path)
        info = layout.load_info(folder)
        try:
            return cls(folder, info)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise OutputError.damaged(folder / layout.INFO, error) from None

    @classmethod
    def build(
        cls,
        embedder: "ElmoEmbedder",
        texts: str | PathLike[str] | Iterable[str | PathLike[str]],
        path: str | PathLike[str],
        *,
        layers: str | int | Sequence[int] = "all",
        words: Iterable[str] | None = None,
        segmented: bool = False,
        force: bool = False,
        reporter: Reporter | None = None,
        **options: Any,
    ) -> "ContextIndex":
        """Index the words in texts, producing the same bytes as `elmo-zh index`, and open the index.

            embedder = ElmoEmbedder.load("runs/latest/model")
            index = ContextIndex.build(embedder, "news/", "news.index", split_sentences=True)

        Repeat an interrupted call to resume it. docs/indexes.md describes the choice of words and the folder.

        Args:
            embedder: The model; it must not be stateful.
            texts: A file, a folder or a glob, or several of them, in any form that `segment` reads.
            path: The folder to write; it appears when the index is complete.
            layers: Layers whose vectors are kept: all, top, or one or more numbers; 0 is the token layer.
            words: Index only these words, however rare. Default: all that reach `min_count`, except punctuation.
            segmented: The texts have one sentence per line, with spaces between its tokens.
            force: Replace an existing index, and do not resume an unfinished one.
            reporter: Receives messages and progress. Default: show only warnings, as Python warnings.
            options: Other options of the command: split_sentences, from_name, min_count, max_per_word, seed.

        Raises:
            TypeError, ValueError: If an argument is not as described above, or segmented text is to be split.
            ElmoZhError: If the embedder is stateful, or `split_sentences` does not suit the model.
            CorpusError: If a text does not exist, cannot be read or changes, or there is no word to index.
            OutputError: If the folder must not be replaced, its disk is too full, or its work folder has parts of a
                different index.

        Warns:
            UserWarning: For example, if a file is skipped, a long line is cut, far more words are unknown than in
                training, or a word of `words` does not occur.
        """
        from elmo_zh.contexts import IndexOptions
        from elmo_zh.contexts.build_index import build_index  # reading an index needs no model

        build_index(
            embedder, texts, path, IndexOptions(**options), layers, words,
            segmented=segmented, force=force, reporter=reporter,
        )  # fmt: skip
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

    def _require_files(self) -> None:
        """Raise OutputError if a file is missing or does not have its recorded size, before reading any of them."""
        for name in self._kinds:
            if not (self.path / name).is_file():
                raise OutputError.missing(self.path / name)
            num_bytes, recorded = (self.path / name).stat().st_size, self.info["bytes"][name]
            if num_bytes != recorded:
                raise OutputError.damaged(self.path / name, f"{num_bytes:,} != {recorded:,} {_('bytes')}")

    def _check(self, name: str) -> Path:
        """Return the path of a file; the first time, raise OutputError if its digest is not the recorded one."""
        path, digest = self.path / name, self._unchecked.get(name)
        if digest is not None and file_digest(path) != digest:
            raise OutputError.damaged(path, f"!= {digest}")
        self._unchecked.pop(name, None)
        return path

    def _array(self, name: str) -> NDArray[Any]:
        """Return the array in a file, memory-mapped."""
        if name not in self._opened:
            try:
                array = np.load(self._check(name), mmap_mode="r", allow_pickle=False)
            except (ValueError, EOFError, TokenError) as error:
                raise OutputError.damaged(self.path / name, error) from None
            if (array.dtype, array.shape) != self._kinds[name]:
                raise OutputError.damaged(self.path / name, f"{array.dtype} {array.shape}")
            self._opened[name] = array
        return self._opened[name]

    @cached_property
    def user_dictionary(self) -> Path | None:
        """File of additional words that the segmenter kept whole; None without one."""
        path, digest = self.path / layout.USER_DICTIONARY, self.model.get("user_dictionary")
        if digest is not None and not (path.is_file() and file_digest(path) == digest):
            raise OutputError.damaged(path, f"!= {digest}")
        return None if digest is None else path

    @cached_property
    def words(self) -> Sequence[str]:
        """The words that have occurrences with vectors, sorted by code points."""
        ends = self._array("words.npy")["postings_end"]
        return [self.distinct_tokens[number] for number in np.flatnonzero(np.diff(ends, prepend=0)).tolist()]

    @cached_property
    def distinct_tokens(self) -> Sequence[str]:
        """All distinct tokens, sorted by code points, including punctuation and tokens too rare for vectors."""
        spelled = self._check("words.utf8").read_bytes()
        ends = self._array("words.npy")["end"].tolist()
        return [spelled[start:end].decode() for start, end in pairwise([0, *ends])]

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str) and self._number(word) is not None

    @cached_property
    def normalise(self) -> Callable[[str], str]:
        """The function that normalises a word in the same way as the texts; if they were segmented, it changes nothing.

        If the model's text settings cannot be found, it uses the default ones.
        """
        if self.is_segmented:
            return str
        path = find_same_bundle(self.model_digest, Path(self.model["path"]), self.path)
        text = load_text_settings(path) if path else None
        return build_normaliser(text or TextConfig())

    def count(self, word: str) -> int:
        """Count all occurrences of an indexed word in the texts, including any left out of its sample.

        Raises:
            ElmoZhError: If the word is not in the index.
        """
        return int(self._array("words.npy")["count"][self._require(word)])

    def occurrences(self, word: str) -> NDArray[np.int64]:
        """Return the numbers of a word's occurrences, ascending, int64, shape (n,).

        Raises:
            ElmoZhError: If the word is not in the index.
            TypeError: If the word is not a string.
        """
        number = self._require(word)
        ends = self._array("words.npy")["postings_end"]
        return np.array(self._array("postings.npy")[int(ends[number - 1]) if number else 0 : int(ends[number])])

    def occurrence(self, number: int) -> Occurrence:
        """Return the occurrence with the given number: its word, line and offsets.

        Raises:
            TypeError, IndexError: If `number` is not a whole number, or there is no such occurrence.
        """
        number = _check_entry(number, len(self), "occurrence")
        word, *place = self._array("occurrences.npy")[number].tolist()
        return Occurrence(number, self.distinct_tokens[word], *place)

    def occurrences_beside(self, number: int) -> NDArray[np.int64]:
        """Return the numbers of the other occurrences on the same line, ascending, int64, shape (n,)."""
        number = _check_entry(number, len(self), "occurrence")
        first, last = np.searchsorted(self._lines, [self._lines[number], self._lines[number] + 1])
        return np.delete(np.arange(first, last), number - first)

    @cached_property
    def _lines(self) -> NDArray[np.int32]:
        """The line of each occurrence, ascending, int32, shape (N,)."""
        return np.ascontiguousarray(self._array("occurrences.npy")["line"])

    def line(self, number: int) -> IndexedLine:
        """Return the line with the given number, such as an `Occurrence.line`.

        Raises:
            TypeError, IndexError: If `number` is not a whole number, or there is no such line.
        """
        lines = self._array("lines.npy")
        number = _check_entry(number, len(lines), "line")
        first = int(lines["end"][number - 1]) if number else 0
        with self._check("lines.utf8").open("rb") as file:
            file.seek(first)
            text = file.read(int(lines["end"][number]) - first).decode()
        text_number, line, start = lines[["source", "number", "start"]][number].tolist()
        name, members = self._texts[text_number]
        source, line_in_source = members.place(name, line)
        return IndexedLine(text, source, line_in_source, start)

    @cached_property
    def columns(self) -> Mapping[str, Column]:
        """The columns of the lines by name; the first one, `source`, is the file that each line comes from."""
        codes, values = self._array("columns.npy"), read_json(self._check("columns.json"))
        columns = {name: Column(own, codes[:, number]) for number, (name, own) in enumerate(values.items())}
        return layout.with_source(self._source_column(), columns)

    def _source_column(self) -> Column:
        lines = self._array("lines.npy")
        texts, numbers = lines["source"], lines["number"]
        all_members = [members for _name, members in self._texts]
        first = np.cumsum([0, *(max(1, len(members)) for members in all_members)])[:-1]
        codes = first[texts].astype(layout.COLUMN)
        for text, members in enumerate(all_members):
            is_here = texts == text
            if members:
                first_lines = [member.first_line for member in members]
                codes[is_here] += np.searchsorted(first_lines, numbers[is_here], "right").astype(layout.COLUMN) - 1
        return Column(self.sources, codes)

    def line_numbers(self) -> NDArray[np.int64]:
        """Return each line's number in its file, from 0, int64, shape (L,); sentences of one raw line share a number.

        The lines of an archive are numbered across its members.
        """
        return np.asarray(self._array("lines.npy")["number"])

    def tokens(self) -> tuple[NDArray[np.void], NDArray[np.int64]]:
        """Return all tokens, memory-mapped, and the cumulative number of tokens at the end of each line.

        A token has three int32 fields: `word`, its place in `distinct_tokens`; `start` and `end`, in its line's text.
        """
        return self._array("tokens.npy"), self._array("lines.npy")["tokens_end"]

    def token_numbers(self) -> NDArray[np.int64]:
        """Return the token number of each occurrence, counted across all texts, ascending, int64, shape (N,)."""
        tokens, lines = self._array("occurrences.npy")["token"], self._lines
        return np.asarray(np.where(lines > 0, self._array("lines.npy")["tokens_end"][lines - 1], 0) + tokens)

    def vectors(self, layer: int) -> NDArray[np.float16]:
        """Return the vectors of all occurrences in a layer, memory-mapped, read-only, float16, shape (N, 2P).

        Raises:
            ElmoZhError: If the index does not have this layer.
        """
        return self._array(f"layer-{self._check_layer(layer)}.npy")

    def norms(self, layer: int) -> NDArray[np.float32]:
        """Return the Euclidean norms of the vectors in a layer, memory-mapped, read-only, float32, shape (N,)."""
        return self._array(f"norms-{self._check_layer(layer)}.npy")

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
            ValueError: If the vector has the wrong shape or is not finite, or `top` is not a whole number above 0.
        """
        check_top(top, "neighbours")
        query = check_vectors(vector, (self.dimension,), "neighbours", "vector")
        vectors, norms = self.vectors(layer), self.norms(layer)
        if word is None:
            numbers, cosines = nearest_rows(vectors, norms, query, top)
        else:
            numbers, cosines = nearest_among(self.occurrences(word), vectors, query, top)
        return [*self.neighbours_of(numbers, cosines)]

    def neighbours_of(self, numbers: NDArray[np.int64], cosines: NDArray[np.float64]) -> Iterator[Neighbour]:
        """Yield a neighbour for each occurrence number and its cosine."""
        for number, cosine in zip(numbers.tolist(), cosines.tolist(), strict=True):
            occurrence = self.occurrence(number)
            yield Neighbour(occurrence, cosine, self.line(occurrence.line))

    def require_model(self, digest: str, path: Path) -> None:
        """Raise BundleError unless the bundle with this digest computed the index; the message names its `path`."""
        if digest != self.model_digest:
            raise other_model(self.path, self.model["path"], self.model_digest, path, digest)

    def _number(self, word: str) -> int | None:
        """Return the number of a word, looked up as it is or else normalised; None if it has no vectors."""
        number = self._place(word)
        number = self._place(self.normalise(word)) if number is None else number
        if number is None:
            return None
        ends = self._array("words.npy")["postings_end"]
        return number if ends[number] > (ends[number - 1] if number else 0) else None

    def _place(self, token: str) -> int | None:
        place = bisect_left(self.distinct_tokens, token)
        return place if token in self.distinct_tokens[place : place + 1] else None

    def _require(self, word: str) -> int:
        number = self._number(word)
        if number is not None:
            return number
        message = _(NO_VECTORS) if word in self.distinct_tokens else _(NOT_IN_TEXTS)
        raise ElmoZhError(message.format(word=shown(word), path=self.path))

    def _check_layer(self, layer: int) -> int:
        if layer not in self.layers:
            known = ", ".join(map(str, self.layers))
            raise ElmoZhError(
                _("{path} has no vectors for layer {layer}. Choose one of its layers: {known}").format(
                    path=self.path, layer=layer, known=known
                )
            )
        return layer


def _check_entry(number: Any, count: int, call: str) -> int:
    place = index(number)
    if not 0 <= place < count:
        raise refusal(IndexError, call, "number", number, f"a whole number from 0 to {count - 1}")
    return place
