"""What is held out depends on the text alone."""

import random
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elmo_zh.config import TextConfig
from elmo_zh.segmenting.heldout import INDEX, choose_texts, load_lowest_texts, paragraph_key

HASHES = 2**64


class Paragraph(NamedTuple):
    key: int
    num_sentences: int
    num_tokens: int


def paragraph(key: int, num_sentences: int = 1, tokens_each: int = 5) -> Paragraph:
    return Paragraph(key, num_sentences, num_sentences * tokens_each)


def spread(count: int, num_sentences: int = 1, tokens_each: int = 5) -> list[Paragraph]:
    """Paragraphs whose keys stand evenly over the hash range, in shuffled order."""
    paragraphs = [paragraph(number * HASHES // count, num_sentences, tokens_each) for number in range(count)]
    random.Random(7).shuffle(paragraphs)
    return paragraphs


def lowest_texts(shards: Sequence[list[Paragraph]], config: TextConfig) -> tuple[np.ndarray, int]:
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, str(number)) for number in range(len(shards))]
        for path, shard in zip(paths, shards, strict=True):
            rows = [(each.key, 1, each.num_sentences, each.num_tokens, np.zeros(16)) for each in shard]
            path.with_suffix(".index").write_bytes(np.array(rows, INDEX).tobytes())
        return load_lowest_texts(paths, config)


def choose(*shards: list[Paragraph], **values: Any) -> tuple[list[Paragraph], list[Paragraph]]:
    config = TextConfig(**values)
    chosen = choose_texts(*lowest_texts(shards, config), config).tolist()
    assert chosen == sorted(set(chosen))
    paragraphs = [one for shard in shards for one in shard]
    heldout = sorted((one for one in paragraphs if one.key in chosen), key=lambda one: one.key)
    return heldout, [one for one in paragraphs if one.key not in chosen]


def num_sentences(paragraphs: list[Paragraph]) -> int:
    return sum(one.num_sentences for one in paragraphs)


def num_tokens(paragraphs: list[Paragraph]) -> int:
    return sum(one.num_tokens for one in paragraphs)


def test_the_share_with_the_lowest_hashes_is_held_out() -> None:
    paragraphs = spread(1000)
    heldout, training = choose(paragraphs, heldout_share=0.031, heldout_min_sentences=3)
    assert [one.key for one in heldout] == [number * HASHES // 1000 for number in range(31)]
    assert len(training) == 969


@pytest.mark.parametrize(
    ("paragraphs", "values", "expected"),
    [
        # At least so many, in whole paragraphs: 29 of seven sentences.
        (spread(2003), {"heldout_share": 0.01, "heldout_min_sentences": 200}, 200),
        (spread(2003, num_sentences=7), {"heldout_share": 0.001, "heldout_min_sentences": 200}, 203),
        (spread(30_011), {"heldout_share": 0.01, "heldout_min_sentences": 200}, 301),
        # Of little text a tenth.
        (spread(131), {"heldout_share": 0.01, "heldout_min_sentences": 200}, 13),
        ([one for one in spread(7) if one.key], {"heldout_share": 0.01, "heldout_min_sentences": 200}, 0),
        # Never more tokens than allowed, nor more than a fifth of the sentences.
        (spread(1009, tokens_each=7), {"heldout_share": 0.5, "heldout_max_tokens": 131}, 126 // 7),
        (spread(1009), {"heldout_share": 0.5, "heldout_max_tokens": 0}, 0),
        (spread(1000), {"heldout_share": 0.5}, 200),
        (spread(2003), {"heldout_share": 0.0}, 0),
    ],
)
def test_the_number_of_sentences_held_out(paragraphs: list[Paragraph], values: dict[str, float], expected: int) -> None:
    heldout, training = choose(paragraphs, **values)
    assert num_sentences(heldout) == expected
    assert len(heldout) + len(training) == len(paragraphs)


PARAGRAPHS = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 5), st.integers(1, 13)), max_size=61)
SETTINGS = st.fixed_dictionaries(
    {
        "heldout_share": st.sampled_from([0.0, 0.01, 0.13, 0.5]),
        "heldout_min_sentences": st.integers(0, 23),
        "heldout_max_tokens": st.integers(0, 211),
    }
)


@settings(deadline=None, max_examples=101)
@given(PARAGRAPHS, SETTINGS, st.randoms(use_true_random=False), st.integers(1, 5))
def test_order_and_shards_do_not_matter_and_equal_texts_fall_on_one_side(
    shapes: list[tuple[int, int, int]], chosen: dict[str, float], shuffler: random.Random, num_shards: int
) -> None:
    # Equal keys stand for equal texts, so they have to have equal lengths too.
    lengths = {key: (sentences, tokens) for key, sentences, tokens in shapes}
    paragraphs = [paragraph(key * (HASHES // 41), *lengths[key]) for key, _, _ in shapes]
    heldout, training = choose(paragraphs, **chosen)
    assert sorted(heldout + training, key=str) == sorted(paragraphs, key=str)
    assert not {one.key for one in heldout} & {one.key for one in training}
    assert num_tokens(heldout) <= chosen["heldout_max_tokens"]
    assert 5 * num_sentences(heldout) <= num_sentences(paragraphs)
    shuffled = list(paragraphs)
    shuffler.shuffle(shuffled)
    assert choose(*(shuffled[start::num_shards] for start in range(num_shards)), **chosen)[0] == heldout


@pytest.mark.parametrize(
    ("least", "num_near", "expected"),
    # Of the 31 texts in the share, or the 40 that are asked for, the lowest ones have near copies.
    [(0, 20, (11, 0)), (40, 20, (40, 0)), (40, 70, (10, 30))],
)
def test_texts_with_near_copies_are_held_out_only_if_there_are_too_few_others(
    least: int, num_near: int, expected: tuple[int, int]
) -> None:
    config = TextConfig(heldout_share=0.031, heldout_min_sentences=least)
    texts, num_sentences = lowest_texts([spread(1000)], config)
    near_copies = set(texts["key"][:num_near].tolist())
    chosen = set(choose_texts(texts, num_sentences, config, near_copies).tolist())
    assert (len(chosen - near_copies), len(chosen & near_copies)) == expected


def test_a_text_above_one_that_is_not_needed_is_not_kept_either() -> None:
    config = TextConfig(heldout_share=0.5, heldout_max_tokens=100)
    tokens = {**dict.fromkeys(range(19), 10), 19: 5, 23: 10, 29: 5}  # 195, 205 and 210 tokens up to the last three
    low, high = ([paragraph(key, tokens_each=tokens[key]) for key in keys] for keys in ([*range(20), 23], [29]))
    for shards in ([low, high], [high, low], [low + high]):
        assert lowest_texts(shards, config)[0]["key"].tolist() == list(range(20))


def test_the_key_is_that_of_the_characters() -> None:
    key = paragraph_key(("今天 天气", "很 好"))
    assert key == paragraph_key(("今 天 天 气", "很好")) == paragraph_key(("今天天气很好",))
    assert key != paragraph_key(("今天天气不好",))
    assert 0 <= key < HASHES


def test_keys_stay_the_same_over_versions() -> None:
    # BLAKE2b with 8 bytes of digest, of the UTF-8 text 苹果, as coreutils' `b2sum -l 64` prints it.
    assert f"{paragraph_key(('苹 果',)):016x}" == "58db6f18c5028ecd"


@pytest.mark.parametrize("seed", [2, 3, 5])
def test_a_much_repeated_text_is_trained_on_and_others_are_held_out_in_any_order(seed: int) -> None:
    notice = paragraph(0, 1)  # the lowest hash there is; one of the others is equal to it
    others = spread(2003)
    paragraphs = [notice] * 701 + others
    expected, _ = choose(paragraphs)
    random.Random(seed).shuffle(paragraphs)
    heldout, train = choose(paragraphs)
    assert {one.key for one in heldout} == {one.key for one in expected}
    assert num_sentences(heldout) >= 200
    assert sum(one.key == 0 for one in train) == 702
