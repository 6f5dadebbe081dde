"""The text of an index: choose words and occurrences, and write all data files except the vectors and their norms."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.checks import check_layers
from elmo_zh.contexts import IndexOptions
from elmo_zh.contexts import index_files as layout
from elmo_zh.contexts.index_files import ColumnBuilder
from elmo_zh.corpus.text_files import iter_lines
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.embed.text_tokens import TextBlock, TextTokens
from elmo_zh.errors import CorpusError
from elmo_zh.language import _
from elmo_zh.run.arrays import ArrayWriter, save_npy
from elmo_zh.run.files import write_json
from elmo_zh.run.reporter import Reporter, first_ten
from elmo_zh.text.preparation import find_tokens
from elmo_zh.vocabulary.vocabulary import is_word

_HASHED_AT_ONCE = 2**20


@dataclass(frozen=True, kw_only=True)
class IndexSettings:
    """The settings that, together with the texts and the model, determine the content of an index."""

    layers: tuple[int, ...]  # ascending
    words: frozenset[str] | None = None  # None for all that reach min_count, except punctuation
    segmented: bool = False
    options: IndexOptions = field(default_factory=IndexOptions)
    made_by: str = ""  # the command that made the index for its own use; "" for `index`

    def described(self) -> dict[str, Any]:
        """Return the settings as JSON values, with the number and digest of the words instead of a list."""
        words: Any = None
        if self.words is not None:
            digest = sha256("\n".join(sorted(self.words)).encode()).hexdigest()
            words = {"count": len(self.words), "digest": f"sha256:{digest}"}
        shared = {name: getattr(self.options, name) for name in ("split_sentences", "min_count", "max_per_word")}
        settings = {"layers": list(self.layers), "segmented": self.segmented, **shared, "words": words}
        return {**settings, "seed": self.options.seed, **({"made_by": self.made_by} if self.made_by else {})}

    def wants(self, word: str, count: int) -> bool:
        """Return whether a word with this many occurrences goes into the index."""
        if self.words is not None:
            return word in self.words
        # Without punctuation and symbols: nobody looks for the neighbours of a comma, and nearly every line has one.
        return count >= self.options.min_count and is_word(word)


def indexed_layers(
    layers: object, num_layers: int, call: str, name: str = "layers", kind: type[Exception] = ValueError
) -> tuple[int, ...]:
    """Return layer numbers, ascending; an index keeps whole layers, so their mean and their mix are refused."""
    checked = check_layers(layers, num_layers, call, name, among=("all", "top"), kind=kind)
    return tuple(sorted(checked.numbers(num_layers)))


def load_word_list(path: Path, normalise: Callable[[str], str] = str) -> frozenset[str]:
    """Read and normalise a file with one word per line; raise CorpusError if it has no words."""
    words = form_words(iter_lines(path), normalise)
    if not words:
        raise CorpusError(_("{path} contains no words. Use a file with one word per line.").format(path=path))
    return words


def form_words(words: Iterable[str], normalise: Callable[[str], str]) -> frozenset[str]:
    """Strip white space around words, normalise them, and drop empty ones."""
    return frozenset(normalise(word.strip()) for word in words) - {""}


def word_former(embedder: ElmoEmbedder, *, segmented: bool) -> Callable[[str], str]:
    """Return the function that maps a word to its form in prepared text; for segmented text, it changes nothing."""
    return str if segmented else (lambda word: "".join(embedder.tokens(word)))


def describe_missing_words(words: Sequence[str], argument: str) -> str:
    """Return a warning that counts the words given by `argument` that do not occur, and lists the first ten."""
    message = _("{argument}: not among the tokens of the text ({number:,}): {words}")
    return message.format(argument=argument, number=len(words), words=first_ten(words))


class Sampler:
    """Chooses the occurrences of indexed words, block by block: all or, for a frequent word, a sample."""

    def __init__(self, settings: IndexSettings, words: Sequence[str], counts: NDArray[np.int64]) -> None:
        """Draw samples for W distinct words; `counts` has the number of occurrences of each word, int64, shape (W,)."""
        pairs = zip(words, counts.tolist(), strict=True)
        is_wanted = np.array([settings.wants(word, count) for word, count in pairs], np.bool_)
        seed, most = settings.options.seed, settings.options.max_per_word or np.inf
        self._is_whole = is_wanted & (counts <= most)
        self._seen = np.zeros(len(words), np.int64)
        sampled = [
            self._keys(sample_places(words[number], seed, int(counts[number]), int(most)), number)
            for number in np.flatnonzero(is_wanted & (counts > most)).tolist()
        ]
        self._sampled = np.sort(np.concatenate([*sampled, [np.iinfo(np.int64).max]]))

    def choose(self, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which of the next tokens, given by their word numbers, are chosen; bool, shape (n,)."""
        keys = self._keys(self._seen[numbers] + _earlier_equals(numbers), numbers)
        self._seen += np.bincount(numbers, minlength=len(self._seen))
        is_sampled = self._sampled[np.searchsorted(self._sampled, keys)] == keys
        return np.asarray(self._is_whole[numbers] | is_sampled)

    def _keys(self, running: NDArray[np.int64], numbers: NDArray[np.int64] | int) -> NDArray[np.int64]:
        """Combine the running number of an occurrence of a word with the word's number."""
        return running * len(self._seen) + numbers


def sample_places(word: str, seed: int, count: int, size: int) -> NDArray[np.int64]:
    """Sample a word's occurrences; return their running numbers in random order. Adding text changes few of them.

    The sample has the occurrences with the smallest hashes of seed, word and running number.
    """
    generator = np.random.PCG64([seed, *word.encode()])
    places, hashes = np.empty(0, np.int64), np.empty(0, np.uint64)
    for start in range(0, count, _HASHED_AT_ONCE):
        block = np.arange(start, min(start + _HASHED_AT_ONCE, count))
        places, hashes = np.append(places, block), np.append(hashes, generator.random_raw(len(block)))
        kept = np.argsort(hashes, kind="stable")[:size]
        places, hashes = places[kept], hashes[kept]
    return places


def _earlier_equals(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return, for each number, how many equal numbers come before it, int64, shape (n,)."""
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    earlier = np.empty(len(numbers), np.int64)
    earlier[order] = np.arange(len(numbers)) - np.searchsorted(ordered, ordered)
    return earlier


class WordNumbers:
    """The distinct tokens of all texts, sorted, with their numbers and counts; texts are read block by block."""

    def __init__(self, tokens: Iterable[TextTokens], reporter: Reporter) -> None:
        counts = Counter[bytes]()
        with reporter.progress("words", unit="tokens") as progress:
            for block in chain.from_iterable(text.blocks() for text in tokens):
                counts.update(block.tokens)
                progress.update(len(block.tokens))
        self.spellings = sorted(counts)  # UTF-8 sorts as its code points do
        self.numbers = {word: number for number, word in enumerate(self.spellings)}
        self.words = [word.decode() for word in self.spellings]
        self.counts = np.fromiter(map(counts.__getitem__, self.spellings), np.int64, len(counts))

    def look_up(self, tokens: Sequence[bytes]) -> NDArray[np.int64]:
        """Return the numbers of the given tokens, int64, shape (n,)."""
        return np.fromiter(map(self.numbers.__getitem__, tokens), np.int64, len(tokens))


def write_index_text(
    folder: Path, tokens: Sequence[TextTokens], settings: IndexSettings, words: WordNumbers, reporter: Reporter
) -> dict[str, int]:
    """Choose the occurrences and write all data files except the vectors and their norms; return counts."""
    sampler, builder, num_bytes = Sampler(settings, words.words, words.counts), ColumnBuilder(), 0
    with ExitStack() as stack, reporter.progress("occurrences", unit="tokens") as progress:
        line_text = stack.enter_context((folder / "lines.utf8").open("wb"))
        writers = [
            ArrayWriter(stack.enter_context((folder / name).open("wb")), dtype)
            for name, dtype in (
                ("lines.npy", layout.LINE),
                ("tokens.npy", layout.TOKEN),
                ("occurrences.npy", layout.OCCURRENCE),
            )
        ]
        for source, text in enumerate(tokens):
            for block in text.blocks():
                numbers = words.look_up(block.tokens)
                arrays = _arrays_of(block, numbers, sampler.choose(numbers))
                lines, _tokens, occurrences = arrays
                occurrences["line"] += writers[0].num_rows
                lines["source"] = source
                lines["end"] += num_bytes
                lines["tokens_end"] += writers[1].num_rows
                for writer, array in zip(writers, arrays, strict=True):
                    writer.append(array)
                num_bytes += line_text.write(b"".join(block.texts))
                for described in block.columns or [b"{}"] * block.num_lines:
                    builder.add(json.loads(described))
                progress.update(len(block.tokens))
        for writer in writers:
            writer.finish()
    occurrences = np.load(folder / "occurrences.npy", mmap_mode="r", allow_pickle=False)
    num_words = _write_words(folder, words, np.array(occurrences["word"]))
    columns = builder.columns()
    codes = np.zeros((writers[0].num_rows, len(columns)), layout.COLUMN)
    for number, column in enumerate(columns.values()):
        codes[:, number] = column.codes
    save_npy(folder / "columns.npy", codes)
    write_json(folder / "columns.json", {name: list(column.values) for name, column in columns.items()})
    kept_lines = len(np.unique(occurrences["line"]))
    return {"words": num_words, "kept_lines": kept_lines, "occurrences": len(occurrences), "columns": len(columns)}


def _write_words(folder: Path, words: WordNumbers, occurring: NDArray[np.int32]) -> int:
    """Write the words and the postings of each word's occurrences; return the number of words that have any."""
    postings = np.bincount(occurring, minlength=len(words.spellings))
    table = np.zeros(len(words.spellings), layout.WORD)
    table["end"] = np.cumsum([len(word) for word in words.spellings], dtype=np.int64)
    table["count"] = words.counts
    table["postings_end"] = np.cumsum(postings)
    save_npy(folder / "words.npy", table)
    (folder / "words.utf8").write_bytes(b"".join(words.spellings))
    save_npy(folder / "postings.npy", np.argsort(occurring, kind="stable").astype(layout.POSTING))
    return int(np.count_nonzero(postings))


def _arrays_of(
    block: TextBlock, numbers: NDArray[np.int64], chosen: NDArray[np.bool_]
) -> tuple[NDArray[np.void], NDArray[np.void], NDArray[np.void]]:
    """Return the lines of a block, their tokens, and the chosen occurrences, counted from the start of the block."""
    tokens = np.zeros(len(numbers), layout.TOKEN)
    tokens["word"], spans = numbers, _spans(block)
    tokens["start"], tokens["end"] = spans[:, 0], spans[:, 1]
    places = np.flatnonzero(chosen)
    occurrences = np.zeros(len(places), layout.OCCURRENCE)
    occurrences["line"] = np.searchsorted(block.line_offsets, places, side="right") - 1
    occurrences["token"] = places - block.line_offsets[occurrences["line"]]
    for name in layout.TOKEN.names or ():
        occurrences[name] = tokens[name][places]
    lines = np.zeros(block.num_lines, layout.LINE)
    lines["end"] = np.cumsum([len(text) for text in block.texts], dtype=np.int64)
    lines["number"] = (
        np.arange(block.num_lines) + block.first_line if block.source_lines is None else block.source_lines
    )
    lines["start"] = 0 if block.starts is None else block.starts
    lines["tokens_end"] = block.line_offsets[1:]
    return lines, tokens, occurrences


def _spans(block: TextBlock) -> NDArray[np.int32]:
    """Return the start and end of each token within its line, int32, shape (N, 2)."""
    if block.character_offsets is None:
        lines = zip(block.iter_lines(), block.texts, strict=True)
        spans = (
            find_tokens(text.decode(), [token.decode() for token in block.tokens[place]]) for (_, place), text in lines
        )
        return np.concatenate([np.empty((0, 2), np.int32), *spans])
    if block.starts is None:
        return block.character_offsets
    return np.asarray(block.character_offsets - block.starts.repeat(np.diff(block.line_offsets))[:, None])
