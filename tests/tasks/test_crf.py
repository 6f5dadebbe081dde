"""The CRF against the enumeration of all sequences of tags."""

from itertools import pairwise, product

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from elmo_zh.corpus.readers.examples import may_follow, spans_of
from elmo_zh.tasks.layers import CRF

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
    marks_spans = bool(crf.get_buffer("rules").any())
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


def shares(scores: dict[tuple[int, ...], float]) -> dict[tuple[int, ...], float]:
    """The probability of each sequence of tags of a text."""
    total = np.logaddexp.reduce(list(scores.values())) if scores else 0.0
    return {tags: float(np.exp(score - total)) for tags, score in scores.items()}


def test_the_probability_of_a_tag_is_that_of_all_sequences_that_have_it(crf: CRF) -> None:
    emissions, mask = drawn()
    expected = np.zeros((B, T, len(TAGS)))
    for row, each in enumerate(map(shares, all_scores(crf))):
        for tags, share in each.items():
            expected[row, range(len(tags)), tags] += share
    found = crf.tag_probabilities(emissions, mask).numpy()
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
    np.testing.assert_allclose(found.sum(axis=2), mask.numpy().astype(float), rtol=0, atol=1e-5)


def test_the_probability_of_a_span_is_that_of_all_sequences_that_have_it() -> None:
    crf = drawn_crf(marks_spans=True)
    emissions, _ = drawn()
    num_spans = 0
    for row, (scores, length) in enumerate(zip(all_scores(crf), LENGTHS, strict=True)):
        each = shares(scores)
        # Also spans that are not the most probable ones.
        for tags in [tags for tags, share in each.items() if share > 0] or [()]:
            spans = spans_of([TAGS[tag] for tag in tags])[0]
            expected = [
                sum(share for others, share in each.items() if others[first:end] == tags[first:end])
                for first, end, _ in spans
            ]
            found = crf.span_probabilities(emissions[row, :length], tags)
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
            num_spans += len(spans)
    assert num_spans > 50


def test_spans_of_a_long_text() -> None:
    """Of one unit a span is as probable as its tag; the scores of a long text add up to numbers that float32 rounds."""
    crf = CRF(TAGS, marks_spans=True)
    length = 2003
    emissions = 30 * torch.randn(length, len(TAGS), generator=torch.Generator().manual_seed(11))
    mask = torch.ones(1, length, dtype=torch.bool)
    [tags] = crf.best_tags(emissions[None], mask)
    spans = spans_of([TAGS[tag] for tag in tags])[0]
    of_tags = crf.tag_probabilities(emissions[None], mask)[0, range(length), tags].tolist()
    found = crf.span_probabilities(emissions, tags)
    singles = [(each, of_tags[first]) for each, (first, end, _) in zip(found, spans, strict=True) if end == first + 1]
    assert len(singles) > 100
    np.testing.assert_allclose(*zip(*singles, strict=True), rtol=0, atol=1e-6)
    assert max(found) <= 1
