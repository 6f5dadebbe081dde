"""The character CNN against the NumPy oracle, and what must not change a word's vector."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from parity import numpy_character_cnn as oracle
from small_trainings import SHAPE
from torch import Tensor

from elmo_zh.model import token_layer
from elmo_zh.model.bilm import BiLM
from elmo_zh.model.precision import BFLOAT16
from elmo_zh.model.token_layer import CharacterCNN, TokenInputs
from elmo_zh.reader.bilm import CharacterShape

# Distinct primes, so that a swapped axis fails.
SLOTS, DIMENSION, OUTPUT = 17, 3, 7
FILTERS = ((1, 2), (2, 5), (5, 11))
NUM_FILTERS = 18
PADDING = 260
# Every number of bytes from none to more than there is room for, short and long ones mixed; some are cut.
WORDS = tuple("ab"[: n % 3] + "天" * (n // 3) for n in (7 * k % 19 for k in range(19)))


def build_cnn(
    activation: str = "relu",
    num_highways: int = 2,
    output_dim: int = OUTPUT,
    filters: tuple[tuple[int, int], ...] = FILTERS,
    num_characters: int = PADDING + 1,
    num_slots: int = SLOTS,
) -> CharacterCNN:
    """A CNN with random weights in float64; a biLM's, since that decides what it is built with."""
    characters = CharacterShape(
        num_characters=num_characters,
        num_slots=num_slots,
        embedding_dim=DIMENSION,
        filters=filters,
        num_highways=num_highways,
        activation=activation,
    )
    shape = replace(SHAPE, cell_dim=output_dim + 1, projection_dim=output_dim, characters=characters)
    cnn = BiLM(shape).character_cnn.double()
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in cnn.parameters():
            parameter.normal_(0.0, 0.6, generator=generator)
    return cnn


def spellings(words: Sequence[str], num_slots: int = SLOTS) -> Tensor:
    return torch.tensor([oracle.character_ids(word, num_slots) for word in words])


def oracle_of(cnn: CharacterCNN) -> oracle.CharacterCnn:
    arrays: dict[str, Any] = {name: value.detach().numpy() for name, value in cnn.named_parameters()}
    parts = ("carry_weight", "carry_bias", "transform_weight", "transform_bias")
    return oracle.CharacterCnn(
        num_slots=cnn.shape.num_slots,
        activation=cnn.shape.activation,
        char_embed=arrays["embedding"],
        filters=[(arrays[f"kernels.{k}"], arrays[f"kernel_biases.{k}"]) for k in range(len(cnn.shape.filters))],
        highways=[
            oracle.Highway(*(arrays[f"highways.{k}.{part}"] for part in parts)) for k in range(cnn.shape.num_highways)
        ],
        projection=(arrays["projection_weight"], arrays["projection_bias"]) if "projection_weight" in arrays else None,
    )


def expected_vectors(cnn: CharacterCNN, words: Sequence[str]) -> Tensor:
    reference = oracle_of(cnn)
    return torch.stack([torch.from_numpy(oracle.token_vector(reference, word)) for word in words])


def assert_equal_to_the_oracle(cnn: CharacterCNN, words: Sequence[str]) -> None:
    with torch.no_grad():
        found = cnn.encode(spellings(words))
    torch.testing.assert_close(found, expected_vectors(cnn, words), rtol=0, atol=1e-12)


@pytest.mark.parametrize("output_dim", [OUTPUT, NUM_FILTERS])
@pytest.mark.parametrize("num_highways", [0, 1, 3])
@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_vectors_equal_the_oracle(activation: str, num_highways: int, output_dim: int) -> None:
    cnn = build_cnn(activation, num_highways, output_dim)
    assert (cnn.projection_weight is None) == (output_dim == NUM_FILTERS)
    assert_equal_to_the_oracle(cnn, [*WORDS, "<S>", "</S>"])


@pytest.mark.parametrize("chunk_words", [1, 3, 5, len(WORDS)])
def test_words_come_back_in_their_order_whatever_is_computed_at_once(
    monkeypatch: pytest.MonkeyPatch, chunk_words: int
) -> None:
    monkeypatch.setattr(token_layer, "_CHUNK_WORDS", chunk_words)
    assert_equal_to_the_oracle(build_cnn(), WORDS)
    assert build_cnn().encode(spellings(WORDS)[:0]).shape == (0, OUTPUT)


def test_a_filter_may_respond_most_to_padding() -> None:
    """Worked by hand. Cutting off padding must leave what such a filter responds to, where a word has that much."""
    cnn = build_cnn(filters=((3, 1),), num_highways=0, output_dim=1)
    with torch.no_grad():
        cnn.embedding.zero_()
        cnn.embedding[PADDING] = torch.tensor([2.0, 3.0, 5.0])
        cnn.kernels[0].copy_(torch.tensor([[1.0, 0, 0], [0, 10, 0], [0, 0, 100]])[:, :, None])
        cnn.kernel_biases[0].fill_(-1.0)
        # Three, two (the window is end mark, padding, padding), one and no empty slots.
        words = ["x" * (SLOTS - 2 - empty) for empty in (3, 2, 1, 0)]
        expected = [[2 + 30 + 500 - 1], [30 + 500 - 1], [500 - 1], [0]]
        assert cnn.encode(spellings(words)).tolist() == expected
        assert [cnn.encode(spellings([word])).tolist()[0] for word in words] == expected
        assert cnn.encode(spellings(["x"])).tolist() == expected[:1]


def test_products_in_bfloat16_are_close_and_autocast_chooses_them_too() -> None:
    cnn = build_cnn().float()
    inputs = TokenInputs(torch.arange(len(WORDS)), spellings(WORDS))
    exact, rounded = cnn(inputs), cnn(inputs, BFLOAT16)
    assert 1e-4 < (rounded - exact).abs().max() / exact.abs().max() < 0.03
    with torch.autocast("cpu", torch.bfloat16):
        under_autocast = cnn(inputs)
    assert under_autocast.dtype == torch.float32
    assert torch.equal(under_autocast, rounded)
    gradients = torch.autograd.grad(under_autocast.square().sum(), list(cnn.parameters()))
    assert all(gradient.dtype == torch.float32 and gradient.isfinite().all() for gradient in gradients)


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_first_weights_are_drawn_as_bilm_tf_does(activation: str) -> None:
    filters = ((2, 67), (5, 61))
    N = 128
    cnn = build_cnn(activation, filters=filters, output_dim=31)
    cnn.initialise(torch.Generator().manual_seed(1))
    assert cnn.embedding.abs().max() <= 1
    deviations = [(cnn.embedding, 1 / 3**0.5)]
    for (width, _), kernel, bias in zip(filters, cnn.kernels, cnn.kernel_biases, strict=True):
        if activation == "relu":
            assert kernel.abs().max() <= 0.05
        deviations.append((kernel, 0.05 / 3**0.5 if activation == "relu" else (width * DIMENSION) ** -0.5))
        assert (bias == 0).all()
    for highway in cnn.highways:
        deviations += [(highway.carry_weight, N**-0.5), (highway.transform_weight, N**-0.5)]
        assert (highway.carry_bias == -2).all()
        assert (highway.transform_bias == 0).all()
    assert cnn.projection_weight is not None
    deviations.append((cnn.projection_weight, N**-0.5))
    assert (cnn.projection_bias == 0).all()
    for weight, deviation in deviations:
        assert float(weight.detach().std()) == pytest.approx(deviation, rel=0.08)
        assert float(weight.detach().mean()) == pytest.approx(0, abs=5 * deviation / weight.numel() ** 0.5)
    before = [parameter.clone() for parameter in cnn.parameters()]
    cnn.initialise(torch.Generator().manual_seed(1))
    assert all(torch.equal(*pair) for pair in zip(before, cnn.parameters(), strict=True))
