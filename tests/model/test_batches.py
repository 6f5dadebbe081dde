"""Batches of whole sentences: marks, padding and order by length."""

from itertools import chain, pairwise

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from elmo_zh.model.token_layer import pad_sentences
from elmo_zh.reader.lstm import iter_length_sorted, mark_sentence


def test_marks_and_padding() -> None:
    ids, mask = pad_sentences([mark_sentence(words) for words in ([5, 7, 11], np.array([13], np.uint16), [])])
    assert ids.tolist() == [[0, 5, 7, 11, 1], [0, 13, 1, 0, 0], [0, 1, 0, 0, 0]]
    assert mask.tolist() == [[True] * 5, [True] * 3 + [False] * 2, [True] * 2 + [False] * 3]
    assert (ids.dtype, mask.dtype) == (torch.int64, torch.bool)


@settings(deadline=None, max_examples=71)
@given(st.lists(st.integers(0, 31), max_size=43), st.integers(1, 67))
def test_sorted_batches_hold_every_index_once(lengths: list[int], batch_tokens: int) -> None:
    found = list(iter_length_sorted(lengths, batch_tokens))
    assert sorted(chain(*found)) == list(range(len(lengths)))
    in_order = [lengths[index] for batch in found for index in batch]
    assert in_order == sorted(lengths, reverse=True)
    for batch in found:
        assert len(batch) == 1 or len(batch) * max(lengths[index] for index in batch) <= batch_tokens
    for batch, following in pairwise(found):
        assert (len(batch) + 1) * lengths[batch[0]] > batch_tokens  # no room for one more
        assert following
