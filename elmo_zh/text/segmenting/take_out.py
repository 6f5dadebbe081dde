"""From the segmented paragraphs of a piece to its training text: all but what is held out, in their order."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from elmo_zh.files import place, written_once
from elmo_zh.text.segmenting.parts import SegmentParts, load_part
from elmo_zh.text.segmenting.segment_piece import INDEX


@dataclass(frozen=True, kw_only=True)
class TakeOutTask:
    """One segmented piece."""

    number: int
    parts: SegmentParts


@dataclass(kw_only=True)
class TakenOut:
    """What is left of a piece for training, and what is held out: key, sentences and tokens of each paragraph."""

    train_sentences: int
    train_tokens: int
    heldout: list[tuple[int, str, int]] = field(default_factory=list)


def take_out(task: TakeOutTask) -> TakenOut:
    """Write the training text of a piece and the numbers of sentences of each document in it."""
    parts = task.parts
    index = np.fromfile(parts.index(task.number), INDEX)
    is_heldout = np.isin(index["key"], np.array(load_part(parts.chosen), np.uint64))
    kept = index[~is_heldout]
    done = TakenOut(train_sentences=int(kept["sentences"].sum()), train_tokens=int(kept["tokens"].sum()))
    with written_once(parts.train(task.number)) as unfinished:
        if is_heldout.any():
            with parts.paragraphs(task.number).open("rb") as everything, unfinished.open("wb") as train:
                done.heldout = list(_divide(everything, index, is_heldout, train))
        else:
            place(parts.paragraphs(task.number), unfinished)
    with written_once(parts.documents(task.number)) as unfinished:
        unfinished.write_bytes(_document_sentences(index, ~is_heldout).astype("<u4").tobytes())
    return done


def _divide(
    everything: BinaryIO, index: NDArray[Any], is_heldout: NDArray[np.bool_], train: BinaryIO
) -> Iterator[tuple[int, str, int]]:
    """Yield the paragraphs that are held out, and write the others."""
    for row, num_bytes in enumerate(index["bytes"].tolist()):
        data = everything.read(num_bytes)
        if is_heldout[row]:
            yield int(index["key"][row]), data.decode("utf-8"), int(index["tokens"][row])
        else:
            train.write(data)


def _document_sentences(index: NDArray[Any], is_kept: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the number of kept sentences of each document that has some; one that goes on counts as one."""
    if not len(index):
        return np.zeros(0, np.int64)
    document = np.cumsum(index["starts"])
    counts = np.bincount(document, weights=index["sentences"] * is_kept).astype(np.int64)
    return counts[counts > 0]
