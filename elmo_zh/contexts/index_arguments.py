"""The arguments of `index` as typed, and those of `ContextIndex.build`: layers, words and numbers."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from elmo_zh.contexts.build_index import IndexSettings
from elmo_zh.contexts.choice import Choice
from elmo_zh.corpus.text_files import iter_lines
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.errors import CorpusError, ElmoZhError
from elmo_zh.run.reporter import counted, first_ten
from elmo_zh.text.sentence_arguments import check_whole_number, is_whole_number

# Seeds are hashed as eight bytes.
_LARGEST_SEED = 2**63 - 1


def parse_layers(given: str, num_layers: int) -> tuple[int, ...]:
    """Return the numbers of layers, ascending.

    Args:
        given: all, top, or numbers separated by commas.
        num_layers: Number of the model's layers, with the token layer.

    Raises:
        ElmoZhError: If it is anything else.
    """
    if given == "all":
        return tuple(range(num_layers))
    if given == "top":
        return (num_layers - 1,)
    numbers = [part.strip() for part in given.split(",")]
    if not all(number.isascii() and number.isdecimal() and int(number) < num_layers for number in numbers):
        raise ElmoZhError(
            f"--layers {given}: expected all, top, or numbers from 0 to {num_layers - 1} separated by commas."
        )
    return tuple(sorted(set(map(int, numbers))))


def check_layers(given: object, num_layers: int) -> tuple[int, ...]:
    """Return the numbers of layers that are given in Python, ascending.

    Args:
        given: "all", "top", a number, or some numbers.
        num_layers: Number of the model's layers, with the token layer.

    Raises:
        ValueError: If it is anything else.
    """
    if given in ("all", "top"):
        return parse_layers(str(given), num_layers)
    listed = [given] if is_whole_number(given) else given
    numbers = [] if isinstance(listed, str) or not isinstance(listed, Iterable) else list(listed)
    if not numbers or not all(is_whole_number(number) and 0 <= number < num_layers for number in numbers):
        raise ValueError(
            f"build: layers={given!r:.60}, expected 'all', 'top', or numbers from 0 to {num_layers - 1}, such as"
            f" {list(range(num_layers))[1:]}"
        )
    return tuple(sorted(set(map(int, numbers))))


def load_word_list(path: Path, normalise: Callable[[str], str]) -> frozenset[str]:
    """Return the words of a file with one word on each line.

    Args:
        path: UTF-8 file.
        normalise: Returns a word as it is in prepared text.

    Raises:
        CorpusError: If there is none, or the file is not UTF-8.
    """
    words = frozenset(normalise(line.strip()) for line in iter_lines(path)) - {""}
    if not words:
        raise CorpusError(f"--words {path}: there is no word in it. Write one word on each line.")
    return words


def word_former(embedder: ElmoEmbedder, *, segmented: bool) -> Callable[[str], str]:
    """Return the function from a word to its form in prepared text; words of segmented text stay as they are."""
    return (lambda word: word) if segmented else (lambda word: "".join(embedder.tokens(word)))


def check_words(given: object) -> list[str] | None:
    """Return the words to index, given in Python; None for all.

    Raises:
        TypeError: If it is not a list of strings.
        ValueError: If it has no word.
    """
    if given is None:
        return None
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise TypeError(f"build: words={given!r:.60}, expected a list of words, such as ['苹果']")
    words = list(given)
    if wrong := [word for word in words if not isinstance(word, str)]:
        raise TypeError(f"build: words holds {wrong[0]!r:.60}, expected strings")
    if not any(map(str.strip, words)):
        raise ValueError("build: words is empty, expected a word at least; None takes all words")
    return words


def settings_in_python(
    embedder: ElmoEmbedder,
    layers: str | int | Sequence[int],
    words: Iterable[str] | None,
    *,
    min_count: int,
    max_per_word: int,
    seed: int,
    segmented: bool,
    split_sentences: bool,
) -> IndexSettings:
    """Return the settings of an index for the arguments of `ContextIndex.build`, which has the description of them.

    Raises:
        TypeError, ValueError: If an argument is not as described there.
    """
    if segmented and split_sentences:
        raise ValueError("build: segmented text has one sentence per line already; leave out split_sentences")
    for name, value, least, most in (
        ("min_count", min_count, 1, None),
        ("max_per_word", max_per_word, 0, None),
        ("seed", seed, 0, _LARGEST_SEED),
    ):
        check_whole_number(value, "build", name, least, most)
    chosen = check_layers(layers, embedder.num_layers)
    checked = check_words(words)
    form = word_former(embedder, segmented=segmented)
    formed = None if checked is None else frozenset(form(word.strip()) for word in checked) - {""}
    choice = Choice(min_count=int(min_count), max_per_word=int(max_per_word), words=formed, seed=int(seed))
    return IndexSettings(layers=chosen, segmented=segmented, split_sentences=split_sentences, choice=choice)


def explain_missing(words: Sequence[str], argument: str) -> str:
    """Return the warning that some of the words to index do not occur.

    Args:
        words: These words; one at least.
        argument: Where they were given: --words.
    """
    verb = "does not occur as a token" if len(words) == 1 else "do not occur as tokens"
    return f"{counted(len(words), 'word')} of {argument} {verb}: {first_ten(words)}"
