"""Last step of the segment stage: move held-out text, chosen by a hash of each paragraph, out of the rest."""

import hashlib
import shutil
from bisect import insort
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from elmo_zh.config import TextConfig
from elmo_zh.run.arrays import read_numbers, write_numbers
from elmo_zh.run.files import link_or_copy, read_json, write_json
from elmo_zh.run.work_folder import Figures, PartWriter, WorkFolder

# A row for each paragraph of a shard: key, bytes, sentences, tokens, and whether it starts a document.
INDEX = np.dtype([("key", "<u8"), ("bytes", "<u4"), ("sentences", "<u4"), ("tokens", "<u4"), ("starts", "?")])
_HASHES = 2**64
# A longer text, such as a book in one line or an often repeated notice, would be most of the held-out text.
_MAX_TEXT_SENTENCES = 200
_MAX_TEXT_FRACTION = 0.1


@dataclass(frozen=True)
class Paragraph:
    """The sentences and tokens of a paragraph, and a hash of its characters from 0 to 2^64 - 1."""

    key: int
    num_sentences: int
    num_tokens: int


def paragraph_text(sentences: Iterable[str]) -> str:
    """Return a paragraph's characters without white space, so that segmentation makes no difference."""
    return "".join(sentences).replace(" ", "")


def paragraph_key(sentences: Iterable[str]) -> int:
    """Return the hash of a paragraph's characters."""
    return int.from_bytes(hashlib.blake2b(paragraph_text(sentences).encode("utf-8"), digest_size=8).digest(), "big")


# One of several paragraphs of equal text, and the number of these paragraphs.
Candidate = tuple[Paragraph, int]


class HeldoutChoice:
    """Collects paragraphs and then decides which ones are held out.

    The paragraphs with the lowest hashes are held out: those in the lowest `heldout_share` of the hash range, and more
    while there are fewer than `heldout_min_sentences` (or a tenth of all sentences, if that is less). It never holds
    out more than `heldout_max_tokens`, more than a fifth of the sentences, or a text whose copies together have more
    than 200 sentences or a tenth of `heldout_max_tokens`. All paragraphs of equal text are on the same side, and the
    order in which paragraphs are added does not matter. Only possible candidates stay in memory: different texts of up
    to twice the size that may be needed, since some may turn out to be repeated too often.

    Texts with keys of `bound` or above are not kept.
    """

    def __init__(self, config: TextConfig) -> None:
        self._share_end = int(config.heldout_share * _HASHES)
        self._min_sentences = config.heldout_min_sentences if config.heldout_share > 0 else 0
        self._max_tokens = config.heldout_max_tokens
        self._keys: list[int] = []
        self._texts: dict[int, Paragraph] = {}
        self._copies: dict[int, int] = {}
        self.bound = _HASHES
        self._num_sentences = 0
        # Each different text counts once, so that what is kept does not depend on when its copies are added.
        self._kept_sentences = 0
        self._kept_tokens = 0

    def add(self, paragraph: Paragraph) -> None:
        """Count a paragraph, and keep it if it may be held out."""
        self._num_sentences += paragraph.num_sentences
        if paragraph.key < self.bound and not self._is_too_long(paragraph, 1):
            self._add_text(paragraph, 1)

    def merge(self, candidates: Iterable[Candidate], bound: int, num_sentences: int) -> None:
        """Merge in the candidates of another shard with `num_sentences`, as if its paragraphs had been added here."""
        self._num_sentences += num_sentences
        self.bound = min(self.bound, bound)
        while self._keys and self._keys[-1] >= self.bound:
            self._drop_last()
        for paragraph, copies in candidates:
            if paragraph.key < self.bound:
                self._add_text(paragraph, copies)

    def _add_text(self, paragraph: Paragraph, copies: int) -> None:
        key = paragraph.key
        if key in self._texts:
            self._copies[key] += copies
            return
        insort(self._keys, key)
        self._texts[key], self._copies[key] = paragraph, copies
        self._kept_sentences += paragraph.num_sentences
        self._kept_tokens += paragraph.num_tokens
        while self._keys and not self._last_may_be_needed():
            # A later text with a key this high is not needed either.
            self.bound = self._keys[-1]
            self._drop_last()

    def _drop_last(self) -> None:
        key = self._keys.pop()
        paragraph = self._texts.pop(key)
        del self._copies[key]
        self._kept_sentences -= paragraph.num_sentences
        self._kept_tokens -= paragraph.num_tokens

    def candidates(self) -> list[Candidate]:
        """Return the texts that may be held out, sorted by key."""
        return [(self._texts[key], self._copies[key]) for key in self._keys]

    def _last_may_be_needed(self) -> bool:
        last = self._keys[-1]
        before = self._kept_sentences - self._texts[last].num_sentences
        return self._kept_tokens <= 2 * self._max_tokens and (
            last < self._share_end or before < 2 * self._min_sentences
        )

    def _is_too_long(self, paragraph: Paragraph, copies: int) -> bool:
        most_tokens = _MAX_TEXT_FRACTION * self._max_tokens
        return copies * paragraph.num_sentences > _MAX_TEXT_SENTENCES or copies * paragraph.num_tokens > most_tokens

    def chosen(self, near_copies: Collection[int] = ()) -> list[int]:
        """Return the keys of the held-out texts, sorted; the keys in `near_copies` have near copies in the corpus."""
        wanted = min(self._min_sentences, self._num_sentences // 10)
        heldout: list[int] = []
        num_sentences = num_tokens = 0
        for paragraph, copies in sorted(self.candidates(), key=lambda each: each[0].key in near_copies):
            if self._is_too_long(paragraph, copies):
                continue
            is_new = paragraph.key not in near_copies
            is_wanted = (paragraph.key < self._share_end and is_new) or num_sentences < wanted
            num_sentences += copies * paragraph.num_sentences
            num_tokens += copies * paragraph.num_tokens
            if not is_wanted or num_tokens > self._max_tokens or num_sentences * 5 > self._num_sentences:
                break
            heldout.append(paragraph.key)
        return sorted(heldout)


def save_candidates(path: Path, choice: HeldoutChoice) -> None:
    """Write the bound and the candidates of a choice to a file."""
    rows = [[each.key, each.num_sentences, each.num_tokens, copies] for each, copies in choice.candidates()]
    write_json(path, {"bound": choice.bound, "groups": rows})


def load_candidates(path: Path) -> tuple[int, list[Candidate]]:
    """Read the bound and the candidates of a choice from a file."""
    saved = read_json(path)
    return saved["bound"], [(Paragraph(*numbers), copies) for *numbers, copies in saved["groups"]]


@dataclass(frozen=True, kw_only=True)
class TakeOutTask:
    """Move the held-out paragraphs, whose keys are in the file `chosen`, out of one segmented shard."""

    segmented: WorkFolder
    name: str
    chosen: Path


def take_out(task: TakeOutTask, writer: PartWriter) -> Figures:
    """Write a shard's training text and the sizes of its documents; return its counts and held-out paragraphs."""
    text, index_file = (task.segmented.path / f"{task.name}.{suffix}" for suffix in ("txt", "index"))
    index = read_numbers(index_file, INDEX)
    chosen = read_json(task.chosen)
    is_heldout = np.isin(index["key"], np.array(chosen, np.uint64))
    sentences, tokens = index["sentences"] * ~is_heldout, index["tokens"] * ~is_heldout
    heldout: list[tuple[int, str, int]] = []
    with writer.file("txt") as unfinished:
        if is_heldout.any():
            with text.open("rb") as everything, unfinished.open("wb") as train:
                heldout += _divide(everything, index, is_heldout, train)
        else:
            link_or_copy(text, unfinished)
    with writer.file("documents") as unfinished:
        write_numbers(unfinished, _add_up_documents(index["starts"], sentences).astype("<u4"))
    return {"train_sentences": int(sentences.sum()), "train_tokens": int(tokens.sum()), "heldout": heldout}


def _divide(
    everything: BinaryIO, index: NDArray[Any], is_heldout: NDArray[np.bool_], train: BinaryIO
) -> Iterator[tuple[int, str, int]]:
    """Yield the key, text and number of tokens of each held-out paragraph, and write the other paragraphs."""
    ends = np.cumsum(index["bytes"], dtype=np.int64)
    position = 0
    for row in np.flatnonzero(is_heldout).tolist():
        num_bytes, end = int(index["bytes"][row]), int(ends[row])
        train.write(everything.read(end - num_bytes - position))
        yield int(index["key"][row]), everything.read(num_bytes).decode("utf-8"), int(index["tokens"][row])
        position = end
    shutil.copyfileobj(everything, train)


def _add_up_documents(starts: NDArray[np.bool_], sentences: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Return the number of training sentences in each document that has any, given where documents start."""
    firsts = np.flatnonzero(starts)
    if len(starts) and not starts[0]:
        firsts = np.r_[0, firsts]
    if not len(firsts):
        return np.zeros(0, np.int64)
    counts = np.add.reduceat(sentences, firsts, dtype=np.int64)
    return counts[counts > 0]
