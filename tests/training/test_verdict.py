"""The verdict on trainings whose figures are made by hand."""

from dataclasses import asdict, replace
from typing import Any

import pytest

from elmo_zh.config import Config, ModelConfig, TextConfig, VocabConfig
from elmo_zh.training.verdict import TrainingFigures, describe_verdict, find_trend, judge

FALLING = ((0, 4999.0), (1_000_000, 130.0), (2_000_000, 110.0), (3_000_000, 100.0))
FLAT = ((0, 4999.0), (1_000_000, 102.0), (2_000_000, 101.0), (3_000_000, 100.0))
RISING = ((0, 4999.0), (1_000_000, 90.0), (2_000_000, 95.0), (3_000_000, 100.0))
# Much text, a small vocabulary that suffices, better than the bigram model, and no longer falling.
GOOD = TrainingFigures(
    train_tokens=20_000_000,
    perplexity=100.0,
    bigram=200.0,
    curve=FLAT,
    unknown_rate=0.02,
    num_rows=5003,
    started_from_model=False,
    config=Config(vocab=VocabConfig(size=5003)),
)
UNMEASURED: dict[str, Any] = {"perplexity": None, "curve": (), "unknown_rate": 0.0}
SPLIT = replace(GOOD.config, text=TextConfig(split_unknown=True))


@pytest.mark.parametrize(
    ("changes", "kinds", "advice"),
    [
        ({}, ["below bigram", "ready"], []),
        ({"curve": FALLING}, ["below bigram", "falling"], ["train.max_tokens"]),
        ({"bigram": 90.0}, ["above bigram"], ["Train longer"]),
        (UNMEASURED, ["not measured"], ["text.heldout_share"]),
        ({"perplexity": 1.4567e44}, ["diverged"], ["train.learning_rate"]),  # guessing has the perplexity 5,003
        ({"curve": RISING}, ["below bigram", "rising"], ["smaller model"]),
        ({"unknown_rate": 0.125}, ["below bigram", "unknown words"], ["vocab.size"]),
        ({"unknown_rate": 0.125, "config": SPLIT}, ["below bigram", "ready"], []),
        # A model that reads characters knows no unknown words.
        (
            {"unknown_rate": 0.125, "config": replace(GOOD.config, model=ModelConfig(mode="character"))},
            ["below bigram", "ready"],
            [],
        ),
        ({"train_tokens": 51_795}, ["below bigram", "little text"], ["--init starter"]),
        ({"train_tokens": 51_795, "started_from_model": True}, ["below bigram", "ready"], []),
    ],
)
def test_findings_and_their_advice(changes: dict[str, Any], kinds: list[str], advice: list[str]) -> None:
    findings = judge(replace(GOOD, **changes))
    assert [finding.kind for finding in findings] == kinds
    lines = describe_verdict(map(asdict, findings))
    assert len(lines) == 1 + len(kinds) + len(advice)  # each has a line, and each piece of advice
    assert all(any(expected in line for line in lines) for expected in advice)


@pytest.mark.parametrize(
    ("curve", "expected"),
    [
        ((), ""),
        (((100, 10.0),), ""),
        (((50, 10.0), (100, 9.0)), "falling"),
        (((70, 10.0), (100, 9.0)), "falling"),  # nothing was measured in the first half
        (((50, 10.0), (100, 9.8)), ""),
        (((50, 10.0), (100, 10.3)), "rising"),
        (((0, 10.0), (50, 10.5), (100, 10.3)), "rising"),  # from another model, which was better
    ],
)
def test_the_trend(curve: tuple[tuple[int, float], ...], expected: str) -> None:
    assert find_trend(curve)[0] == expected


def test_findings_show_their_figures() -> None:
    lines = describe_verdict(map(asdict, judge(replace(GOOD, curve=FALLING))))
    assert "100.0" in lines[1]
    assert "23.1%" in lines[2]
