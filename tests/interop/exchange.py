"""What compare.py and the readers hand each other: segmented sentences as text, vectors as .npz.

The readers run in environments of their own, one of them in Python 3.7, so this needs no more than that and NumPy.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Callable, List, NamedTuple  # noqa: UP035  # Python 3.7 cannot index the others

import numpy as np

Embed = Callable[[List[List[str]]], List[np.ndarray]]  # noqa: UP006
IN_ONE_BATCH, ONE_BY_ONE = CHECKS = ("in one batch", "one by one")


class Reading(NamedTuple):
    versions: str
    vectors: dict[str, list[np.ndarray]]  # for each of CHECKS those of each sentence, shape (L + 1, T, 2P)


def run_reader(versions: str, load: Callable[[Path, int], Embed]) -> None:
    """Be a reader's program, with the arguments MODEL (a folder), TEXT (segmented) and OUTPUT (an .npz file).

    It writes the vectors of TEXT. `load` takes MODEL and a batch size; what it returns reads sentences in batches of
    that size, first from zero state.
    """
    model, text, output = map(Path, sys.argv[1:])
    sentences = load_sentences(text)
    vectors = {
        IN_ONE_BATCH: load(model, len(sentences))(sentences), ONE_BY_ONE: load(model, 1)(sentences)
    }  # fmt: skip
    save_reading(output, Reading(versions, vectors))


def load_sentences(path: Path) -> list[list[str]]:
    """Return the tokens of each line, split at U+0020 and nothing else: in Chinese text U+3000 can be a token."""
    lines = path.read_bytes().decode("utf-8").rstrip("\n").split("\n")
    return [line.split(" ") for line in lines]


def iter_batches(sentences: list[list[str]], batch_size: int) -> Iterator[list[list[str]]]:
    for start in range(0, len(sentences), batch_size):
        yield sentences[start : start + batch_size]


def without_padding(padded: np.ndarray, sentences: list[list[str]]) -> list[np.ndarray]:
    """Cut each sentence's vectors out of those of a padded batch."""
    return [padded[row, :, : len(tokens)].astype(np.float32) for row, tokens in enumerate(sentences)]


def save_reading(path: Path, reading: Reading) -> None:
    arrays = {f"{check}/{line}": array for check in CHECKS for line, array in enumerate(reading.vectors[check])}
    np.savez(str(path), versions=np.array(reading.versions), **arrays)


def load_reading(path: Path, num_sentences: int) -> Reading:
    with np.load(str(path)) as file:
        vectors = {check: [file[f"{check}/{line}"] for line in range(num_sentences)] for check in CHECKS}
        return Reading(str(file["versions"]), vectors)
