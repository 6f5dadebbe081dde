"""What training from scratch starts from: scaled word vectors, and a softmax near the unigram model."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from small_trainings import ROWS, SENTENCES, SHAPE, build_store

from elmo_zh.model.language_model import LanguageModel, weights_of
from elmo_zh.scoring import sentence_costs
from elmo_zh.training import initial_weights as calibration
from elmo_zh.training.initial_weights import (
    RowMoves,
    calibrate_bias,
    expected_shares,
    initialise_model,
    scale_vectors,
    unigram_bias,
)
from elmo_zh.vocabulary.vocabulary import SPECIALS, Vocabulary
from elmo_zh.word2vec.vectors import WordVectors

SMALLEST = replace(SHAPE, num_tokens=5, cell_dim=6, projection_dim=2, num_layers=1)


def test_the_bias_alone_gives_the_unigram_probabilities() -> None:
    """The logs have mean zero, and a missing word counts half."""
    bias = unigram_bias([8, 4, 2, 1, 0])
    nats = -bias.log_softmax(dim=0)
    assert nats.tolist() == pytest.approx([math.log(15.5 / count) for count in (8, 4, 2, 1, 0.5)], abs=1e-6)
    assert float(bias.mean()) == pytest.approx(0, abs=1e-6)


def test_vectors_keep_their_direction_from_the_mean_and_get_one_size() -> None:
    # The mean is (1, 2); from there the vectors point to (3, 4), (-3, -4) and nowhere.
    vectors = np.array([[4, 6], [-2, -2], [1, 2]], np.float32)
    scaled = scale_vectors(vectors, 0.5)
    size = 0.5 * math.sqrt(2) / 5
    assert scaled.tolist() == pytest.approx(np.array([[3 * size, 4 * size], [-3 * size, -4 * size], [0, 0]]))
    assert scaled.dtype == np.float32


@pytest.mark.parametrize("is_tied", [True, False])
def test_a_model_gets_the_vectors_and_the_bias(is_tied: bool) -> None:
    model, vectors = LanguageModel.build(SMALLEST, tie_softmax=is_tied), np.array([[1, 2], [3, 4]], np.float32)
    initialise_model(
        model, 1, WordVectors(rows=np.array([3, 4]), vectors=vectors), torch.tensor([5.0, 4.0, 3.0, 2.0, 1.0])
    )
    assert model.bilm.token_table.weight[3:].tolist() == vectors.tolist()
    assert model.softmax.bias.tolist() == [5, 4, 3, 2, 1]
    initialise_model(model, 1, None)
    assert model.softmax.bias.tolist() == [0] * 5


@pytest.mark.parametrize("vectors", [[[1, 2]], [[0, 0], [0, 0]], [[3, 1], [3, 1]]])
def test_equal_vectors_are_no_start(vectors: list[list[float]]) -> None:
    """Centred they are zero, as are all rows drawn like them, and training never leaves zero."""
    model, rows = LanguageModel.build(SMALLEST, tie_softmax=False), np.arange(3, 3 + len(vectors))
    initialise_model(model, 1, WordVectors(rows=rows, vectors=np.array(vectors, np.float32)))
    given = model.bilm.token_table.weight.clone()
    initialise_model(model, 1, None)
    assert given.tolist() == model.bilm.token_table.weight.tolist()


# Where the rows of a new vocabulary come from


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


# The softmax's bias is fitted to the words of a text


BEGIN, END = 0, 1


def drawn_model() -> LanguageModel:
    model = LanguageModel.build(SHAPE, tie_softmax=True)
    model.initialise(5)
    with torch.no_grad():
        model.softmax.bias.normal_(0.0, 1.5, generator=torch.Generator().manual_seed(4))
    return model


def counts_of_the_text() -> np.ndarray:
    counts = np.bincount(np.concatenate(SENTENCES), minlength=ROWS).astype(np.float64)
    counts[[BEGIN, END]] = len(SENTENCES)
    return counts


def shares_one_by_one(model: LanguageModel) -> np.ndarray:
    """Return the mean probability of each row, from the costs of sentences in which it stands at each place."""
    store = build_store()
    total, number = np.zeros(ROWS), 0
    for sentence in SENTENCES:
        for place in range(len(sentence)):
            changed = [np.array([*sentence[:place], row, *sentence[place + 1 :]]) for row in range(ROWS)]
            costs = sentence_costs(weights_of(model.bilm, model.softmax), store.lexicon, changed)
            total += sum(np.exp(-np.array([cost[direction, place] for cost in costs])) for direction in range(2))
            number += 2
    return total / number


def test_expected_shares_are_the_mean_of_all_predictions(monkeypatch: pytest.MonkeyPatch) -> None:
    model = drawn_model()
    shares = expected_shares(model, build_store()).numpy()
    assert shares.sum() == pytest.approx(1)
    # The predictions of the marks at the ends are missing in the plain version: seven of 42, in each direction.
    words = shares_one_by_one(model)
    ends = (42 * shares - 35 * words) / 7
    assert ends.sum() == pytest.approx(1)
    assert (ends > 0).all()
    monkeypatch.setattr(calibration, "_MOST_NUMBERS", 17)
    np.testing.assert_allclose(expected_shares(model, build_store()).numpy(), shares, rtol=1e-6)


def test_the_bias_moves_by_the_log_of_what_is_over_what_is_expected() -> None:
    model, counts = drawn_model(), counts_of_the_text()
    before, expected = model.softmax.bias.detach().numpy().copy(), expected_shares(model, build_store()).numpy()
    is_new = np.zeros(ROWS, bool)
    is_new[[10, 24, 31]] = True  # seen once, seen in each sentence, never seen
    counts[31] = 0
    calibrate_bias(model, build_store(), torch.from_numpy(counts), torch.from_numpy(is_new))
    found = model.softmax.bias.detach().numpy()
    halved = counts.copy()
    halved[[BEGIN, END]] /= 2
    kinds = np.count_nonzero(halved)
    for row in range(ROWS):
        own = max(halved[row], 0.5) if is_new[row] else halved[row] + kinds * expected[row]
        share = own / (halved.sum() + kinds)
        assert found[row] - before[row] == pytest.approx(np.log(share / expected[row]), abs=1e-5), row


def test_a_row_that_the_model_never_expects_gets_a_finite_bias() -> None:
    model, counts = drawn_model(), counts_of_the_text()
    with torch.no_grad():
        model.softmax.bias[24] = -5000
    calibrate_bias(model, build_store(), torch.from_numpy(counts), torch.zeros(ROWS, dtype=torch.bool))
    assert torch.isfinite(model.softmax.bias).all()
