"""Last step of the segment stage: choose held-out text by a hash of each paragraph, and separate it from the rest.

Held-out text has to be new, so near copies among paragraphs are found by MinHash (Broder 1997) over trigrams. A
signature holds the lowest hash of a paragraph's trigrams for each of 16 hash functions. The fraction of places in which
two signatures agree estimates the Jaccard index of the trigrams; paragraphs that agree in at least 9 places are near
copies.
"""

import hashlib
import shutil
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from elmo_zh.config import TextConfig
from elmo_zh.run.arrays import read_numbers
from elmo_zh.run.files import link_or_copy

Signatures = NDArray[np.uint32]  # shape (paragraphs, 16); zeros for paragraphs that are too short to compare
PLACES, _LEAST_EQUAL = 16, 9
# Shorter paragraphs recur naturally.
_LEAST_CHARACTERS = 10
_FACTORS = np.random.default_rng(2018).integers(2**63, size=PLACES + 3, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
# How many paragraphs are compared at a time; each may resemble thousands.
_COMPARED = 256


def signatures(texts: Sequence[str]) -> Signatures:
    """Return each text's signature, zeros if it is short. Texts must have no white space; ASCII digits are equal."""
    lengths = np.array(list(map(len, texts)), np.int64)
    is_long = lengths >= _LEAST_CHARACTERS
    found = np.zeros((len(texts), PLACES), np.uint32)
    if not is_long.any():
        return found
    joined = "".join(text for text in texts if len(text) >= _LEAST_CHARACTERS)
    codes = np.frombuffer(joined.encode("utf-32-le"), "<u4").astype(np.uint64)
    codes[(codes >= ord("0")) & (codes <= ord("9"))] = ord("0")
    ends = np.cumsum(lengths[is_long])
    starts = ends - lengths[is_long]
    first, second, third = (codes * factor for factor in _FACTORS[PLACES:])
    runs = first + np.roll(second, -1) + np.roll(third, -2)
    for place in (1, 2):
        # These trigrams would reach into the next text.
        runs[ends - place] = runs[starts]
    runs ^= runs >> np.uint64(32)
    for place, factor in enumerate(_FACTORS[:PLACES]):
        found[is_long, place] = np.minimum.reduceat(runs * factor >> np.uint64(32), starts)
    return found


def find_near_copies(
    keys: NDArray[np.uint64], ours: Signatures, paragraphs: Iterable[tuple[NDArray[np.uint64], Signatures]]
) -> set[int]:
    """Return which of `keys` have a near copy, under another key, among `paragraphs`."""
    near: set[int] = set()
    keys, ours = keys[ours.any(1)], ours[ours.any(1)]
    for other_keys, others in paragraphs:
        rows = np.flatnonzero(others.any(1))
        for start in range(0, len(rows), _COMPARED):
            some = rows[start : start + _COMPARED]
            is_near = _has_near_copy(keys, ours, other_keys[some], others[some])
            near.update(keys[is_near].tolist())
            keys, ours = keys[~is_near], ours[~is_near]
    return near


def _has_near_copy(
    keys: NDArray[np.uint64], ours: Signatures, other_keys: NDArray[np.uint64], others: Signatures
) -> NDArray[np.bool_]:
    """Return which of our signatures agree in enough places with one of the others under another key."""
    is_near = np.zeros(len(keys), np.bool_)
    # Signatures that agree in 9 of 16 places agree in both places of one of these 8 pairs.
    for our_pairs, other_pairs in zip(ours.view(np.uint64).T, others.view(np.uint64).T, strict=True):
        order = np.argsort(our_pairs)
        first, last = (np.searchsorted(our_pairs, other_pairs, side, sorter=order) for side in ("left", "right"))
        theirs = np.repeat(np.arange(len(others)), last - first)
        place = np.arange(len(theirs)) - np.repeat(np.cumsum(last - first) - last, last - first)
        mine = order[place]
        equal = np.count_nonzero(ours[mine] == others[theirs], axis=1)
        is_near[mine[(equal >= _LEAST_EQUAL) & (keys[mine] != other_keys[theirs])]] = True
    return is_near


# A row for each paragraph of a shard: key, bytes, sentences, tokens, and signature.
INDEX = np.dtype([
    ("key", "<u8"), ("bytes", "<u4"), ("sentences", "<u4"), ("tokens", "<u4"), ("signature", "<u4", (PLACES,)),
])  # fmt: skip
# A row for each different text: its key, the sentences and tokens of one copy, how many copies there are, signature.
TEXTS = np.dtype([
    ("key", "<u8"), ("sentences", "<i8"), ("tokens", "<i8"), ("copies", "<i8"), ("signature", "<u4", (PLACES,)),
])  # fmt: skip
_HASHES = 2**64
# A longer text, such as a book in one line or an often repeated notice, would be most of the held-out text.
_MAX_TEXT_SENTENCES = 200
_MAX_TEXT_FRACTION = 0.1


def paragraph_text(sentences: Iterable[str]) -> str:
    """Return a paragraph's characters without spaces, so that segmentation makes no difference."""
    return "".join(sentences).replace(" ", "")


def paragraph_key(sentences: Iterable[str]) -> int:
    """Return the hash of a paragraph's characters."""
    return int.from_bytes(hashlib.blake2b(paragraph_text(sentences).encode("utf-8"), digest_size=8).digest(), "big")


def index_rows(paragraphs: Sequence[tuple[list[str], int]]) -> NDArray[Any]:
    """Return rows of dtype `INDEX` for paragraphs, given as the sentences and the number of tokens of each."""
    index = np.zeros(len(paragraphs), INDEX)
    for row, (sentences, num_tokens) in zip(index, paragraphs, strict=True):
        num_bytes = sum(len(sentence.encode("utf-8")) + 1 for sentence in sentences)
        row["key"], row["bytes"] = paragraph_key(sentences), num_bytes
        row["sentences"], row["tokens"] = len(sentences), num_tokens
    index["signature"] = signatures([paragraph_text(sentences) for sentences, _ in paragraphs])
    return index


def load_lowest_texts(shards: Sequence[Path], config: TextConfig) -> tuple[NDArray[Any], int]:
    """Find, in the `.index` files of shards, the texts that may be held out; load only one file at a time.

    Returns:
        The different texts with the lowest keys, sorted, of dtype `TEXTS`, and the number of sentences in all shards.
        There may be twice as many texts as needed, since some may turn out to be repeated too often.
    """
    texts, num_sentences = np.zeros(0, TEXTS), 0
    for shard in shards:
        index = read_numbers(shard.with_suffix(".index"), INDEX)
        num_sentences += int(index["sentences"].sum(dtype=np.int64))
        paragraphs = np.ones(len(index), TEXTS)
        for name in ("key", "sentences", "tokens", "signature"):
            paragraphs[name] = index[name]
        found = np.concatenate([texts, paragraphs[~_is_too_long(paragraphs, config)]])
        _, first, inverse = np.unique(found["key"], return_index=True, return_inverse=True)
        texts = found[first]
        texts["copies"] = np.bincount(inverse, found["copies"])
        # The first text that is not needed stays, so that no later text above it is taken for one that is.
        texts = texts[: _num_needed(texts, config) + 1]
    return texts[: _num_needed(texts, config)], num_sentences


def iter_signatures(shards: Sequence[Path]) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.uint32]]]:
    """Yield the keys and signatures of each shard's paragraphs."""
    for shard in shards:
        index = read_numbers(shard.with_suffix(".index"), INDEX)
        yield index["key"], index["signature"]


def _sizes(texts: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return how many sentences and tokens all copies of each text have."""
    return texts["copies"] * texts["sentences"], texts["copies"] * texts["tokens"]


def _is_too_long(texts: NDArray[Any], config: TextConfig) -> NDArray[np.bool_]:
    sentences, tokens = _sizes(texts)
    return (sentences > _MAX_TEXT_SENTENCES) | (tokens > _MAX_TEXT_FRACTION * config.heldout_max_tokens)


def _num_needed(texts: NDArray[Any], config: TextConfig) -> int:
    """Return how many texts, from the lowest key, may be needed."""
    # Each text counts once here, so that the order of the shards makes no difference.
    sentences_before = np.cumsum(texts["sentences"]) - texts["sentences"]
    is_wanted = _in_share(texts, config) | (sentences_before < 2 * _min_sentences(config))
    return int(np.count_nonzero(is_wanted & (np.cumsum(texts["tokens"]) <= 2 * config.heldout_max_tokens)))


def _in_share(texts: NDArray[Any], config: TextConfig) -> NDArray[np.bool_]:
    return np.asarray(texts["key"] < np.uint64(int(config.heldout_share * _HASHES)))


def _min_sentences(config: TextConfig) -> int:
    return config.heldout_min_sentences if config.heldout_share > 0 else 0


def choose_texts(
    texts: NDArray[Any], num_sentences: int, config: TextConfig, near_copies: Collection[int] = ()
) -> NDArray[np.uint64]:
    """Choose the texts that are held out, and return their keys, sorted.

    The texts with the lowest hashes are held out: those in the lowest `heldout_share` of the hash range, and more while
    there are fewer than `heldout_min_sentences` (or a tenth of all sentences, if that is less); none if the share is 0.
    At most `heldout_max_tokens` and a fifth of the sentences are held out, and no text whose copies together have more
    than 200 sentences or a tenth of `heldout_max_tokens`. Texts with near copies are held out only if there are too few
    others. All paragraphs of equal text are on the same side, and the order of paragraphs does not matter.

    Args:
        texts: From `load_lowest_texts`.
        num_sentences: Number of sentences in all shards.
        config: The settings.
        near_copies: Keys of texts that have near copies in the corpus.
    """
    texts = texts[~_is_too_long(texts, config)]
    has_near = np.isin(texts["key"], np.array(list(near_copies), np.uint64))
    order = np.argsort(has_near, kind="stable")
    texts, has_near = texts[order], has_near[order]
    sentences, tokens = _sizes(texts)
    sentences_before = np.cumsum(sentences) - sentences
    is_short = sentences_before < min(_min_sentences(config), num_sentences // 10)
    is_wanted = (_in_share(texts, config) & ~has_near) | is_short
    fits = (np.cumsum(tokens) <= config.heldout_max_tokens) & (np.cumsum(sentences) * 5 <= num_sentences)
    return np.sort(texts["key"][np.logical_and.accumulate(is_wanted & fits)])


def divide_shard(shard: Path, chosen: NDArray[np.uint64], train: Path) -> tuple[int, int, list[tuple[int, str, int]]]:
    """Write a shard's training text to the file `train`.

    Returns:
        The number of training sentences, the number of training tokens, and the key, text and number of tokens of
        each held-out paragraph.
    """
    index = read_numbers(shard.with_suffix(".index"), INDEX)
    is_heldout = np.isin(index["key"], chosen)
    sentences, tokens = index["sentences"] * ~is_heldout, index["tokens"] * ~is_heldout
    heldout: list[tuple[int, str, int]] = []
    if is_heldout.any():
        with shard.with_suffix(".txt").open("rb") as everything, train.open("wb") as file:
            heldout += _divide(everything, index, is_heldout, file)
    else:
        link_or_copy(shard.with_suffix(".txt"), train)
    return int(sentences.sum()), int(tokens.sum()), heldout


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
