"""From the segmented paragraphs of a piece to its training text: all but what is held out, in their order."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from elmo_zh.engine.parts import Figures, PartWriter
from elmo_zh.run.files import place
from elmo_zh.segmenting.piece_task import INDEX
from elmo_zh.segmenting.work_dir import SegmentParts

_BLOCK_BYTES = 2**20


@dataclass(frozen=True, kw_only=True)
class TakeOutTask:
    """One segmented piece."""

    number: int
    parts: SegmentParts


def take_out(task: TakeOutTask, writer: PartWriter) -> Figures:
    """Write the training text of a piece and the numbers of sentences of each document in it.

    Returns:
        Sentences and tokens for training; and of each held-out paragraph its key, its text and its tokens.
    """
    parts = task.parts
    index = np.fromfile(parts.index(task.number), INDEX)
    chosen = json.loads(parts.chosen.read_text(encoding="utf-8"))
    is_heldout = _are_among(index["key"], np.array(chosen, np.uint64))
    sentences, tokens = index["sentences"] * ~is_heldout, index["tokens"] * ~is_heldout
    heldout: list[tuple[int, str, int]] = []
    with writer.file("txt") as unfinished:
        if is_heldout.any():
            with parts.paragraphs(task.number).open("rb") as everything, unfinished.open("wb") as train:
                heldout += _divide(everything, index, is_heldout, train)
        else:
            place(parts.paragraphs(task.number), unfinished)
    with writer.file("documents") as unfinished:
        _add_up_documents(index["starts"], sentences).astype("<u4").tofile(unfinished)
    return {"train_sentences": int(sentences.sum()), "train_tokens": int(tokens.sum()), "heldout": heldout}


def _are_among(keys: NDArray[np.uint64], chosen: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return which keys are among the chosen ones, which rise, in less memory than np.isin takes."""
    if not len(chosen):
        return np.zeros(len(keys), np.bool_)
    places = np.searchsorted(chosen, keys)
    return np.asarray(chosen[np.minimum(places, len(chosen) - 1)] == keys)


def _divide(
    everything: BinaryIO, index: NDArray[Any], is_heldout: NDArray[np.bool_], train: BinaryIO
) -> Iterator[tuple[int, str, int]]:
    """Yield the paragraphs that are held out, and write the others."""
    ends = np.cumsum(index["bytes"], dtype=np.int64)
    done = 0
    for row in np.flatnonzero(is_heldout).tolist():
        num_bytes, end = int(index["bytes"][row]), int(ends[row])
        _copy(everything, train, end - num_bytes - done)
        yield int(index["key"][row]), everything.read(num_bytes).decode("utf-8"), int(index["tokens"][row])
        done = end
    shutil.copyfileobj(everything, train)


def _copy(source: BinaryIO, target: BinaryIO, num_bytes: int) -> None:
    for start in range(0, num_bytes, _BLOCK_BYTES):
        target.write(source.read(min(_BLOCK_BYTES, num_bytes - start)))


def _add_up_documents(starts: NDArray[np.bool_], sentences: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Return the kept sentences of each document that has some, from those of its paragraphs; one may go on here."""
    firsts = np.flatnonzero(starts)
    if len(starts) and not starts[0]:
        firsts = np.r_[0, firsts]
    if not len(firsts):
        return np.zeros(0, np.int64)
    counts = np.add.reduceat(sentences, firsts, dtype=np.int64)
    return counts[counts > 0]
