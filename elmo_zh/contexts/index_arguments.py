"""The arguments of `index` as typed: layers and a list of words."""

from collections.abc import Callable
from pathlib import Path

from elmo_zh.corpus.text_files import iter_lines
from elmo_zh.errors import CorpusError, ElmoZhError


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
