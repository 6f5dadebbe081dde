"""Last step of the segment stage: take the held-out paragraphs out of a shard, which leaves its training text."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from elmo_zh.run.arrays import read_numbers, write_numbers
from elmo_zh.run.files import link_or_copy, read_json
from elmo_zh.run.work_folder import Figures, PartWriter
from elmo_zh.segmenting.shard_task import INDEX
from elmo_zh.segmenting.work_dir import SegmentParts

_CHUNK_BYTES = 2**20


@dataclass(frozen=True, kw_only=True)
class TakeOutTask:
    """Take the held-out paragraphs out of one segmented shard."""

    number: int
    parts: SegmentParts


def take_out(task: TakeOutTask, writer: PartWriter) -> Figures:
    """Write the training text of a shard, and the number of sentences of each document in it.

    Returns:
        Numbers of training sentences and tokens; key, text and number of tokens of each held-out paragraph.
    """
    parts = task.parts
    index = read_numbers(parts.of_segmented(task.number, "index"), INDEX)
    chosen = read_json(parts.chosen)
    is_heldout = _are_among(index["key"], np.array(chosen, np.uint64))
    sentences, tokens = index["sentences"] * ~is_heldout, index["tokens"] * ~is_heldout
    heldout: list[tuple[int, str, int]] = []
    with writer.file("txt") as unfinished:
        if is_heldout.any():
            with parts.of_segmented(task.number, "txt").open("rb") as everything, unfinished.open("wb") as train:
                heldout += _divide(everything, index, is_heldout, train)
        else:
            link_or_copy(parts.of_segmented(task.number, "txt"), unfinished)
    with writer.file("documents") as unfinished:
        write_numbers(unfinished, _add_up_documents(index["starts"], sentences).astype("<u4"))
    return {"train_sentences": int(sentences.sum()), "train_tokens": int(tokens.sum()), "heldout": heldout}


def _are_among(keys: NDArray[np.uint64], chosen: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return which keys are among the chosen ones, which are sorted; np.isin would take more memory."""
    if not len(chosen):
        return np.zeros(len(keys), np.bool_)
    places = np.searchsorted(chosen, keys)
    return np.asarray(chosen[np.minimum(places, len(chosen) - 1)] == keys)


def _divide(
    everything: BinaryIO, index: NDArray[Any], is_heldout: NDArray[np.bool_], train: BinaryIO
) -> Iterator[tuple[int, str, int]]:
    """Yield key, text and number of tokens of each held-out paragraph, and write the other paragraphs."""
    ends = np.cumsum(index["bytes"], dtype=np.int64)
    position = 0
    for row in np.flatnonzero(is_heldout).tolist():
        num_bytes, end = int(index["bytes"][row]), int(ends[row])
        _copy(everything, train, end - num_bytes - position)
        yield int(index["key"][row]), everything.read(num_bytes).decode("utf-8"), int(index["tokens"][row])
        position = end
    shutil.copyfileobj(everything, train)


def _copy(source: BinaryIO, target: BinaryIO, num_bytes: int) -> None:
    for start in range(0, num_bytes, _CHUNK_BYTES):
        target.write(source.read(min(_CHUNK_BYTES, num_bytes - start)))


def _add_up_documents(starts: NDArray[np.bool_], sentences: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Return the number of training sentences of each document that has any.

    Args:
        starts: Whether each paragraph starts a document; the first may continue one of the shard before.
        sentences: Number of training sentences of each paragraph.
    """
    firsts = np.flatnonzero(starts)
    if len(starts) and not starts[0]:
        firsts = np.r_[0, firsts]
    if not len(firsts):
        return np.zeros(0, np.int64)
    counts = np.add.reduceat(sentences, firsts, dtype=np.int64)
    return counts[counts > 0]
