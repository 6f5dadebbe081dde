"""From the segmented paragraphs of a piece to its training text: all but what is held out, in their order."""

from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

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
            data = memoryview(parts.paragraphs(task.number).read_bytes())
            starts = [0, *accumulate(index["bytes"].tolist())]
            for row in np.flatnonzero(is_heldout).tolist():
                text = str(data[starts[row] : starts[row + 1]], "utf-8")
                done.heldout.append((int(index["key"][row]), text, int(index["tokens"][row])))
            _write_runs(unfinished, data, starts, ~is_heldout)
        else:
            place(parts.paragraphs(task.number), unfinished)
    with written_once(parts.documents(task.number)) as unfinished:
        unfinished.write_bytes(_document_sentences(index, ~is_heldout).astype("<u4").tobytes())
    return done


def _write_runs(path: Any, data: memoryview, starts: list[int], is_kept: NDArray[np.bool_]) -> None:
    """Write the paragraphs that are kept, those that follow each other at once."""
    edges = np.flatnonzero(np.diff(np.r_[False, is_kept, False])).reshape(-1, 2)
    with path.open("wb") as file:
        for first, end in edges.tolist():
            file.write(data[starts[first] : starts[end]])


def _document_sentences(index: NDArray[Any], is_kept: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the number of kept sentences of each document that has some; one that goes on counts as one."""
    if not len(index):
        return np.zeros(0, np.int64)
    document = np.cumsum(index["starts"])
    counts = np.bincount(document, weights=index["sentences"] * is_kept).astype(np.int64)
    return counts[counts > 0]
