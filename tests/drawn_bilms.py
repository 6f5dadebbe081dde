"""Small biLMs and batches of sentences, drawn for the tests of both readers."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from hypothesis import strategies as st
from numpy.typing import NDArray
from small_trainings import SHAPE

from elmo_zh.model.bilm import BiLM
from elmo_zh.reader.bilm import BiLMShape
from elmo_zh.reader.lstm import mark_sentence

WORDS = 23
LENGTHS = (11, 7, 7, 3, 1, 0, 0)
PLAIN = replace(SHAPE, num_tokens=WORDS, cell_dim=13, projection_dim=5, cell_clip=0.0, projection_clip=0.0)


def draw_bilm(shape: BiLMShape, *, warm: bool = False, seed: int = 3) -> BiLM:
    bilm, generator = BiLM(shape), torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in bilm.parameters():
            parameter.normal_(0.0, 0.5, generator=generator)
    if warm:
        L, P, D = shape.num_layers, shape.projection_dim, shape.cell_dim
        bilm.set_warm_state(
            torch.randn(L, 2, P, generator=generator) * 0.3, torch.randn(L, 2, D, generator=generator) * 0.3
        )
    return bilm


def draw_sentences(lengths: Sequence[int], seed: int = 5) -> list[NDArray[np.int64]]:
    """Sentences of so many words, longest first, marked."""
    draw = np.random.default_rng(seed)
    return [mark_sentence(draw.integers(3, WORDS, length)) for length in sorted(lengths, reverse=True)]


def draw_any(data: st.DataObject) -> tuple[BiLM, list[NDArray[np.int64]]]:
    """Any architecture, with or without a warm state, and sentences of any lengths."""
    P = data.draw(st.integers(1, 7))
    clips = st.sampled_from([0.0, 0.2, 3.0])
    shape = replace(
        PLAIN,
        cell_dim=data.draw(st.integers(P, 13)),
        projection_dim=P,
        num_layers=data.draw(st.integers(1, 3)),
        cell_clip=data.draw(clips),
        projection_clip=data.draw(clips),
        skip_connections=data.draw(st.booleans()),
    )
    bilm = draw_bilm(shape, warm=data.draw(st.booleans()), seed=data.draw(st.integers(0, 9)))
    lengths = data.draw(st.lists(st.integers(0, 9), min_size=1, max_size=7))
    return bilm, draw_sentences(lengths)
