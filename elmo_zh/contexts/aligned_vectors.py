"""Distances of words between two word2vec models, after an orthogonal Procrustes alignment."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from elmo_zh.contexts.nearest import unit_rows
from elmo_zh.corpus.text_files import iter_lines
from elmo_zh.errors import RunError
from elmo_zh.vocabulary.vocabulary import SPECIALS, Vocabulary
from elmo_zh.word2vec.vectors import load_word_vectors


def procrustes_distances(old_path: Path, new_path: Path) -> dict[str, float]:
    """Return the cosine distance between a word's two vectors, for each word that both files have.

    The vectors of the shared words are divided by their norms, and the old ones rotated onto the new ones (Hamilton,
    Leskovec and Jurafsky 2016, "Diachronic Word Embeddings Reveal Statistical Laws of Semantic Change").

    Args:
        old_path: Vectors trained on the old text, in word2vec's text format.
        new_path: Vectors trained on the new text.

    Raises:
        RunError: If a file is not in this format, the dimensions differ, or no word is in both.
    """
    (old_words, old_width), (new_words, new_width) = _survey(old_path), _survey(new_path)
    if old_width != new_width:
        raise RunError(
            f"{old_path} has vectors of {old_width} numbers, {new_path} of {new_width}. Train both with one dimension."
        )
    shared = sorted(old_words & new_words)
    if not shared:
        raise RunError(f"{old_path} and {new_path} have no word in common. Give vectors of two texts in one language.")
    vocabulary = Vocabulary((*SPECIALS, *shared))
    return dict(zip(shared, distances_of_aligned(*(
        load_word_vectors(path, vocabulary, old_width).vectors for path in (old_path, new_path)
    )).tolist(), strict=True))  # fmt: skip


def distances_of_aligned(old: NDArray[np.float32], new: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the cosine distance of each pair of rows after the best rotation of the old rows.

    Args:
        old: Shape (W, D).
        new: The same words' vectors, shape (W, D).

    Returns:
        Shape (W,), from 0 to 2.
    """
    first, second = (unit_rows(each) for each in (old, new))
    left, _, right = np.linalg.svd(first.T @ second)
    return np.asarray(1 - ((first @ (left @ right)) * second).sum(axis=1))


def _survey(path: Path) -> tuple[set[str], int]:
    """Return the words of a file of vectors, and the length of a vector."""
    words: set[str] = set()
    width = 0
    for number, line in enumerate(iter_lines(path), start=1):
        word, *numbers = line.rstrip(" ").split(" ")
        if number == 1 and len(numbers) == 1 and word.isdecimal():
            continue  # the header: number of words and dimension
        width = width or len(numbers)
        if len(numbers) != width or not numbers:
            raise RunError(
                f"{path}: line {number} has {len(numbers)} numbers, expected {width or 'a word and its vector'}."
                " Give a file in word2vec's text format, such as word2vec.txt of a run."
            )
        words.add(word)
    if not words:
        raise RunError(f"{path} has no vectors. Give a file in word2vec's text format, such as word2vec.txt of a run.")
    return words - set(SPECIALS), width
