"""The largest responses by endings against windows one by one, and what they must not depend on."""

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from elmo_zh.model.kernels import character_windows
from elmo_zh.model.kernels.character_windows import find_endings, largest_responses

# Distinct primes, so that a swapped axis fails; the widths in no order.
SLOTS, DIMENSION, PADDING = 17, 3, 12
FILTERS = ((3, 5), (1, 2), (7, 11), (2, 3))
WIDEST = 7


def pad(words: Sequence[Sequence[int]], num_slots: int = SLOTS) -> Tensor:
    return torch.tensor([[*word, *[PADDING] * (num_slots - len(word))] for word in words])


def draw_words(number: int, seed: int = 1) -> Tensor:
    """Words of every length, few characters, so that they share endings and repeat windows."""
    generator = np.random.default_rng(seed)
    return pad([generator.integers(0, PADDING, generator.integers(0, SLOTS + 1)).tolist() for _ in range(number)])


def draw_weights(dtype: torch.dtype = torch.float64) -> tuple[Tensor, list[Tensor]]:
    generator = torch.Generator().manual_seed(3)
    shapes = [(PADDING + 1, DIMENSION), *((width, DIMENSION, count) for width, count in FILTERS)]
    embedding, *kernels = (torch.randn(shape, dtype=torch.float64, generator=generator).to(dtype) for shape in shapes)
    return embedding.requires_grad_(), [kernel.requires_grad_() for kernel in kernels]


def one_by_one(character_ids: Tensor, embedding: Tensor, kernels: Sequence[Tensor]) -> Tensor:
    """Every window of every slot, in torch's operations that have gradients."""
    characters = embedding[character_ids]
    found = []
    for kernel in kernels:
        windows = range(character_ids.shape[1] - len(kernel) + 1)
        responses = [torch.einsum("wkc,kcn->wn", characters[:, p : p + len(kernel)], kernel) for p in windows]
        found.append(torch.stack(responses).max(dim=0).values)
    return torch.cat(found, dim=1)


def gradients(responses: Tensor, embedding: Tensor, kernels: Sequence[Tensor]) -> list[Tensor]:
    generator = torch.Generator().manual_seed(5)
    weighting = torch.randn(responses.shape, dtype=torch.float64, generator=generator).to(responses.dtype)
    return list(torch.autograd.grad((responses * weighting).sum(), [embedding, *kernels]))


@pytest.mark.parametrize("chunk_words", [1, 3, 31, 512])
def test_values_and_gradients_are_those_of_windows_one_by_one(
    monkeypatch: pytest.MonkeyPatch, chunk_words: int
) -> None:
    monkeypatch.setattr(character_windows, "_CHUNK_WORDS", chunk_words)
    words, (embedding, kernels) = draw_words(61), draw_weights()
    found = largest_responses(words, PADDING, embedding, kernels, torch.float64)
    expected = one_by_one(words, embedding, kernels)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    for ours, theirs in zip(gradients(found, embedding, kernels), gradients(expected, embedding, kernels), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-11)


def test_a_repeated_window_has_its_gradient_once() -> None:
    """Worked by hand: every window of aaaa responds alike, and only one of them counts."""
    embedding = torch.tensor([[2.0], [0.0]], requires_grad=True)
    kernel = torch.tensor([[[3.0]], [[5.0]]], requires_grad=True)
    found = largest_responses(torch.tensor([[0, 0, 0, 0], [0, 1, 1, 1]]), 1, embedding, [kernel], torch.float32)
    # aa; then a and an empty slot.
    assert found.tolist() == [[16.0], [6.0]]
    d_embedding, d_kernel = torch.autograd.grad(found.sum(), [embedding, kernel])
    assert d_embedding.tolist() == [[3 + 5 + 3], [5]]
    assert d_kernel.tolist() == [[[2 + 2]], [[2]]]


@given(st.lists(st.lists(st.integers(0, PADDING - 1), max_size=SLOTS), min_size=1, max_size=7))
def test_shortening_an_ending_spells_the_word(words: list[list[int]]) -> None:
    found = find_endings(pad(words), PADDING, WIDEST)
    letters = [*found.characters.tolist(), None]
    spelled = set()
    for word, ending in zip(words, found.words.tolist(), strict=True):
        expected: list[int | None] = [*word, *[PADDING] * WIDEST][:SLOTS]
        while expected:
            spelled.add(tuple(expected))
            window = [letters[place] for place in found.windows[ending].tolist()]
            assert window == [*expected, *[None] * WIDEST][:WIDEST]
            expected, shorter = expected[1:], int(found.shorter[ending])
            assert shorter < ending
            ending = shorter
        assert ending == 0
    # None stands twice, and there are no others.
    assert len(found.shorter) == 1 + len(spelled)
