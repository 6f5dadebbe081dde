"""What compare.py and the readers hand each other: segmented sentences as text, vectors as .npz.

The readers run in environments of their own, one of them in Python 3.7, so this needs no more than that and NumPy.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

IN_ONE_BATCH, ONE_BY_ONE = CHECKS = ("in one batch", "one by one")


class Reading(NamedTuple):
    """What a reader made of the sentences.

    Attributes:
        versions: The programs that computed, with their versions.
        vectors: For each of CHECKS the vectors of each sentence, float32 of shape (L + 1, T, 2P).
    """

    versions: str
    vectors: dict[str, list[np.ndarray]]


def run_reader(versions: str, embed: Callable[[Path, list[list[str]], int], list[np.ndarray]]) -> None:
    """Be a reader's program, with the arguments MODEL (a folder), TEXT (segmented) and OUTPUT (an .npz file).

    Args:
        versions: The programs that compute, with their versions.
        embed: Takes MODEL, sentences and a batch size; reads the sentences in order, from zero state, in batches of
            that size, and returns each one's vectors, float32 of shape (L + 1, T, 2P).
    """
    model, text, output = map(Path, sys.argv[1:])
    sentences = load_sentences(text)
    vectors = {IN_ONE_BATCH: embed(model, sentences, len(sentences)), ONE_BY_ONE: embed(model, sentences, 1)}
    save_reading(output, Reading(versions, vectors))


def load_sentences(path: Path) -> list[list[str]]:
    """Return the tokens of each line, split at U+0020 and nothing else: in Chinese text U+3000 can be a token."""
    lines = path.read_bytes().decode("utf-8").rstrip("\n").split("\n")
    return [line.split(" ") for line in lines]


def iter_batches(sentences: list[list[str]], batch_size: int) -> Iterator[list[list[str]]]:
    """Yield sentences in order, as many at a time as make a batch."""
    for start in range(0, len(sentences), batch_size):
        yield sentences[start : start + batch_size]


def without_padding(padded: np.ndarray, sentences: list[list[str]]) -> list[np.ndarray]:
    """Cut each sentence's vectors out of those of a padded batch.

    Args:
        padded: Shape (B, L + 1, T, 2P).
        sentences: The B sentences.

    Returns:
        B arrays, float32 of shape (L + 1, T, 2P), each with its own T.
    """
    return [padded[row, :, : len(tokens)].astype(np.float32) for row, tokens in enumerate(sentences)]


def save_reading(path: Path, reading: Reading) -> None:
    """Write `versions` and an array CHECK/LINE for each sentence and check."""
    arrays = {f"{check}/{line}": array for check in CHECKS for line, array in enumerate(reading.vectors[check])}
    np.savez(str(path), versions=np.array(reading.versions), **arrays)


def load_reading(path: Path, num_sentences: int) -> Reading:
    """Read what `save_reading` wrote."""
    with np.load(str(path)) as file:
        vectors = {check: [file[f"{check}/{line}"] for line in range(num_sentences)] for check in CHECKS}
        return Reading(str(file["versions"]), vectors)
