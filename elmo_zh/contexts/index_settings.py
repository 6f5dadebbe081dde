"""Choose the words and occurrences of an index: options, word lists and samples."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.checks import check_instance, check_layers, check_strings, check_whole_number
from elmo_zh.contexts import IndexOptions
from elmo_zh.corpus.names import shown
from elmo_zh.corpus.text_files import iter_lines
from elmo_zh.errors import CorpusError
from elmo_zh.run.reporter import counted, first_ten
from elmo_zh.vocabulary.vocabulary import is_word

if TYPE_CHECKING:
    from elmo_zh.embed.embedder import ElmoEmbedder

# Number of similar words in a message, and the similarity that their spellings must have.
_MOST_SIMILAR, _LEAST_SIMILAR = 3, 0.4
_HASHED_AT_ONCE = 2**20
# An index keeps whole layers, so their mean and their mix are not among its layers.
INDEXED = ("all", "top")


@dataclass(frozen=True, kw_only=True)
class IndexSettings:
    """The settings that, together with the texts and the model, determine the content of an index."""

    layers: tuple[int, ...]  # ascending
    words: frozenset[str] | None = None  # None for all that are not mere punctuation
    segmented: bool = False
    options: IndexOptions = field(default_factory=IndexOptions)
    made_by: str = ""  # the command that made the index for its own use; "" for `index`

    @classmethod
    def checked(
        cls, embedder: "ElmoEmbedder", options: IndexOptions, layers: object, words: object, *, segmented: bool
    ) -> "IndexSettings":
        """Check the arguments of `ContextIndex.build`, which documents them and the errors, and return the settings."""
        from elmo_zh.embed.embedder import ElmoEmbedder

        check_instance(embedder, ElmoEmbedder, "build", "embedder", "an ElmoEmbedder; ElmoEmbedder.load takes a path")
        if segmented and options.split_sentences:
            raise ValueError("build: segmented text has one sentence per line already; leave out split_sentences")
        formed = None
        if words is not None:
            given = check_strings(words, "build", "words")
            formed = form_words(given, word_former(embedder, segmented=segmented))
            if not formed:
                raise ValueError("build: words has no word in it; leave it out to index all words")
        for each in fields(options):
            if (least := each.metadata["least"]) is not None:
                check_whole_number(getattr(options, each.name), "build", each.name, least, each.metadata["most"])
        chosen = check_layers(layers, embedder.num_layers, "build", among=INDEXED)
        return cls(
            layers=tuple(sorted(chosen.numbers(embedder.num_layers))),
            words=formed,
            segmented=segmented,
            options=options,
        )

    def described(self) -> dict[str, Any]:
        """Return the settings as JSON values, with the number and digest of the words instead of a list."""
        words: Any = None
        if self.words is not None:
            digest = sha256("\n".join(sorted(self.words)).encode()).hexdigest()
            words = {"count": len(self.words), "digest": f"sha256:{digest}"}
        return {
            "layers": list(self.layers),
            "segmented": self.segmented,
            "split_sentences": self.options.split_sentences,
            "min_count": self.options.min_count,
            "max_per_word": self.options.max_per_word,
            "words": words,
            "seed": self.options.seed,
            **({"made_by": self.made_by} if self.made_by else {}),
        }

    def wants(self, word: str, count: int) -> bool:
        """Return whether a word with this many occurrences goes into the index."""
        if self.words is not None:
            return word in self.words
        # Punctuation and symbols: nobody looks for the neighbours of a comma, and every line has one.
        return count >= self.options.min_count and is_word(word)


def load_word_list(path: Path, normalise: Callable[[str], str] = str) -> frozenset[str]:
    """Read and normalise a file with one word per line; raise CorpusError if it has no words."""
    words = form_words(iter_lines(path), normalise)
    if not words:
        raise CorpusError(f"--words {path}: the file contains no words. Write one word on each line.")
    return words


def form_words(words: Iterable[str], normalise: Callable[[str], str]) -> frozenset[str]:
    """Strip white space around words, normalise them, and drop empty ones."""
    return frozenset(normalise(word.strip()) for word in words) - {""}


def word_former(embedder: "ElmoEmbedder", *, segmented: bool) -> Callable[[str], str]:
    """Return the function that maps a word to its form in prepared text; for segmented text, it changes nothing."""
    return str if segmented else (lambda word: "".join(embedder.tokens(word)))


def describe_missing_words(words: Sequence[str], argument: str) -> str:
    """Return a warning that counts the words given by `argument` that do not occur, and lists the first ten."""
    return f"The tokens of the text do not include {counted(len(words), 'word')} from {argument}: {first_ten(words)}"


class Sampler:
    """Chooses the occurrences to index, block by block: all, or a sample for frequent words (`sample_places`)."""

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
        """Return a mask of the chosen tokens among the next ones, given as word numbers; bool, shape (n,)."""
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


def describe_missing_word(word: str, words: Sequence[str], index: Path, *, is_token: bool) -> str:
    """Return the message that a word has no vectors in an index, with similar words that do."""
    if is_token:
        return (
            f"{word} occurs in the texts of {index}, but the index has no vectors for this word. Rebuild the index with"
            " a lower --min-count, or with the word in --words."
        )
    with_its_characters = [other for other in words if not set(word).isdisjoint(other)]
    similar = get_close_matches(word, with_its_characters, _MOST_SIMILAR, _LEAST_SIMILAR)
    # The words of a stranger's index may hold line feeds.
    found = ", ".join(map(shown, similar))
    advice = f"Did you mean {found}?" if similar else "No word in the index shares a character with this word."
    return f"{shown(word) or 'An empty word'} is not in the index {index}. {advice}"
