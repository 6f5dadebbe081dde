"""The CRF against the enumeration of all sequences of tags."""

from itertools import pairwise, product

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from elmo_zh.corpus.readers.examples import may_follow
from elmo_zh.tasks.crf import CRF

B, T = 5, 4
LENGTHS = (4, 1, 3, 0, 2)
TAGS = ("O", "B-X", "I-X", "E-X", "S-X")


def drawn_crf(*, marks_spans: bool) -> CRF:
    crf = CRF(TAGS, marks_spans=marks_spans)
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for parameter in crf.parameters():
            parameter.normal_(0, 1, generator=generator)
    return crf


@pytest.fixture(params=[False, True])
def crf(request: pytest.FixtureRequest) -> CRF:
    return drawn_crf(marks_spans=request.param)


def drawn() -> tuple[torch.Tensor, torch.Tensor]:
    emissions = torch.randn(B, T, len(TAGS), generator=torch.Generator().manual_seed(3))
    return emissions, torch.arange(T) < torch.tensor(LENGTHS)[:, None]


def score_by_hand(crf: CRF, emissions: NDArray[np.float32], tags: tuple[int, ...], *, marks_spans: bool) -> float:
    """The sum of its parts, in NumPy; minus infinity for what the scheme forbids."""
    transitions, starts, ends = (
        parameter.detach().numpy().astype(np.float64) for parameter in (crf.transitions, crf.starts, crf.ends)
    )
    names = ["", *(TAGS[tag] for tag in tags), ""]
    if marks_spans and not all(map(may_follow, names, names[1:])):
        return -np.inf
    total = starts[tags[0]] + ends[tags[-1]] + sum(emissions[place, tag] for place, tag in enumerate(tags))
    return float(total + sum(transitions[pair] for pair in pairwise(tags)))


def all_scores(crf: CRF) -> list[dict[tuple[int, ...], float]]:
    emissions, _ = drawn()
    marks_spans = bool(crf.rules.any())
    found = []
    for row, length in enumerate(LENGTHS):
        sequences = product(range(len(TAGS)), repeat=length) if length else []
        found.append(
            {tags: score_by_hand(crf, emissions[row].numpy(), tags, marks_spans=marks_spans) for tags in sequences}
        )
    return found


def test_the_cost_is_the_share_of_a_sequence_among_all(crf: CRF) -> None:
    emissions, mask = drawn()
    scores = all_scores(crf)
    for pick in (0, 1):
        tags = torch.full((B, T), 4)  # anything where padded
        expected = []
        for row, each in enumerate(scores):
            allowed = sorted((tags for tags, score in each.items() if score > -np.inf), key=lambda tags: -each[tags])
            if not allowed:
                expected.append(0.0)
                continue
            chosen = allowed[0 if pick == 0 else -1]
            tags[row, : len(chosen)] = torch.tensor(chosen)
            expected.append(float(np.logaddexp.reduce(list(each.values())) - each[chosen]))
        found = crf.negative_log_likelihood(emissions, tags, mask)
        np.testing.assert_allclose(found.detach().numpy(), expected, rtol=0, atol=1e-4)


def test_the_best_tags_are_those_of_the_highest_score(crf: CRF) -> None:
    emissions, mask = drawn()
    expected = [list(max(each, key=lambda tags: each[tags])) if each else [] for each in all_scores(crf)]
    assert crf.best_tags(emissions, mask) == expected
