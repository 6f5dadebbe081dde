"""Where the rows of a new vocabulary come from."""

import numpy as np
import torch
from composed_rows import composed_rows

from elmo_zh.training.initial_weights import RowMoves
from elmo_zh.vocabulary.vocabulary import SPECIALS, Vocabulary

CHARACTERS = "天气好人花山水云"


def test_without_examples_a_new_row_is_the_mean_of_its_parts_worked_by_hand() -> None:
    """天 is (1, 2) and 好 is (4, 8), so 天天好 is (6 / 3, 12 / 3); the unknown 学 is ignored."""
    old, new = Vocabulary((*SPECIALS, "天", "好")), Vocabulary((*SPECIALS, "天天好", "好学", "好", "天好"))
    table = torch.empty(7, 2)
    moves = RowMoves.build(old, new)
    rows = torch.tensor([[0.0, 1], [2, 3], [5, 7], [1, 2], [4, 8]])
    moves.fill(table, rows, torch.Generator().manual_seed(1))
    assert table.tolist() == [[0, 1], [2, 3], [5, 7], [2, 4], [4, 8], [4, 8], [2.5, 5]]
    assert moves.counts() == {"words_kept": 1, "words_composed": 3, "words_drawn": 0}
    bias = torch.empty(7)
    moves.fill(bias, torch.tensor([0.0, 1, 2, 3, 9]), torch.Generator().manual_seed(1))
    assert bias.tolist() == [0, 1, 2, 5, 9, 9, 6]


def test_new_rows_of_a_table_are_composed() -> None:
    pairs = [first + second for first in CHARACTERS for second in CHARACTERS if first != second]
    old = Vocabulary((*SPECIALS, *CHARACTERS, *pairs[::2]))
    new = Vocabulary((*SPECIALS, *reversed(pairs), *CHARACTERS))
    table = np.random.default_rng(3).normal(size=(len(old), 3)).astype(np.float32)
    expected = composed_rows(old.tokens, table, pairs[1::2])
    found = torch.empty(len(new), 3)
    moves = RowMoves.build(old, new)
    moves.fill(found, torch.from_numpy(table), torch.Generator().manual_seed(1))
    for row, word in enumerate(new.tokens[len(SPECIALS) :], start=len(SPECIALS)):
        known = table[old.tokens.index(word)] if word in old else expected[word]
        np.testing.assert_allclose(found[row], known, rtol=1e-4, atol=1e-5)
    assert moves.counts() == {"words_kept": 36, "words_composed": 28, "words_drawn": 0}


def test_all_other_rows_are_drawn_with_the_known_rows_mean_and_deviation() -> None:
    new = Vocabulary((*SPECIALS, *CHARACTERS, *(chr(0x3400 + number) for number in range(5003))))
    old_words = Vocabulary((*SPECIALS, *CHARACTERS))
    old = torch.tensor([[10.0 + row, 100 - 7 * row] for row in range(len(old_words))])
    table = torch.empty(len(new), 2)
    moves = RowMoves.build(old_words, new)
    moves.fill(table, old, torch.Generator().manual_seed(1))
    assert moves.counts() == {"words_kept": 8, "words_composed": 0, "words_drawn": 5003}
    torch.testing.assert_close(table[:11], old)
    torch.testing.assert_close(table[11:].mean(dim=0), old.mean(dim=0), rtol=0, atol=1.0)
    torch.testing.assert_close(table[11:].std(dim=0), old.std(dim=0, unbiased=False), rtol=0.05, atol=0)


def test_a_word_spelled_like_a_special_is_no_special() -> None:
    moves = RowMoves.build(Vocabulary((*SPECIALS, "K", "<")), Vocabulary((*SPECIALS, "<UNK")))
    # <, U, N and K: two of them are known words.
    assert moves.composed == {3: [4, 3]}
    assert dict(moves.kept) == {0: 0, 1: 1, 2: 2}
