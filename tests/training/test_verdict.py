"""The verdict on trainings whose figures are made by hand."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from elmo_zh.config import Config, ModelConfig, TrainConfig, VocabConfig
from elmo_zh.training.verdict import TrainingFigures, Trend, describe_verdict, judge

CONFIG = Config(
    vocab=VocabConfig(size=5003),
    model=ModelConfig(cell_dim=1022, projection_dim=254),
    train=TrainConfig(max_tokens=3_000_000, epochs=10.0),
)
FALLING = ((0, 4999.0), (1_000_000, 130.0), (2_000_000, 110.0), (3_000_000, 100.0))
FLAT = ((0, 4999.0), (1_000_000, 102.0), (2_000_000, 101.0), (3_000_000, 100.0))
RISING = ((0, 4999.0), (1_000_000, 90.0), (2_000_000, 95.0), (3_000_000, 100.0))
# Much text, a small vocabulary that suffices, better than the bigram model, and no longer falling.
GOOD = TrainingFigures(
    train_tokens=20_000_000,
    perplexity=100.0,
    baselines={"unigram": 800.0, "bigram": 200.0},
    curve=FLAT,
    unknown_rate=0.02,
    num_rows=5003,
    started_from_model=False,
    config=CONFIG,
)
BELOW = "The held-out perplexity, 100.0, is below the bigram model's 200.0, as it should be."
ABOVE = "The held-out perplexity, 100.0, is not yet below the bigram model's 90.0."
STOPPED = "The held-out perplexity has stopped falling."
STILL = "The held-out perplexity was still falling at the end (by 23.1% in the second half of training)."
LONGER = (
    "Training longer would help most (export the model again afterwards)",
    "{program} train --run {run} --set train.max_tokens=6000000",
)
MORE_TEXT = (
    "More text would help most (or start from a model trained on more text: {init})",
    "{train} more-texts/",
)
WEAK = {"unigram": 800.0, "bigram": 90.0}


def advice_on(figures: TrainingFigures) -> tuple[str, str]:
    verdict = judge(figures)
    return verdict.advice, verdict.command


def new_run(settings: str) -> str:
    return " ".join(["{train} my-texts/ --run runs/new", *(f"--set {each}" for each in settings.split())])


READY = ("The model is ready to use", "{program} embed file.txt --model {run}/model")
LITTLE = "7 tokens is not much text; a good model needs millions."
CHARACTERS = replace(CONFIG, model=ModelConfig(mode="character"))


@pytest.mark.parametrize(
    ("changes", "findings", "advice"),
    [
        ({}, [BELOW, STOPPED], READY),
        ({"curve": FALLING}, [BELOW, STILL], LONGER),
        ({"curve": FALLING, "baselines": WEAK}, [ABOVE, STILL], LONGER),
        ({"baselines": WEAK}, [ABOVE, STOPPED], MORE_TEXT),
        (
            {"perplexity": 900.0, "curve": FALLING[:2]},
            [
                "The held-out perplexity, 900.0, is no better than word frequencies alone (800.0), so the model has"
                " learned next to nothing."
            ],
            LONGER,
        ),
        (
            {"perplexity": None, "baselines": {}, "curve": (), "unknown_rate": 0.0, "train_tokens": 7},
            ["No text was held out, so it is not known how good the model is.", LITTLE],
            MORE_TEXT,
        ),
        (
            {"unknown_rate": 0.125},
            [
                BELOW,
                STOPPED,
                "12.5% of the held-out words are unknown: a vocabulary of 5,003 rows is too small for this text.",
            ],
            ("A larger vocabulary would help most", "{train} my-texts/ --run runs/new --set vocab.size=10006"),
        ),
        # A model that reads characters knows no unknown words.
        ({"unknown_rate": 0.125, "config": CHARACTERS}, [BELOW, STOPPED], READY),
    ],
)
def test_what_is_found_and_advised(changes: dict[str, Any], findings: list[str], advice: tuple[str, str]) -> None:
    figures = replace(GOOD, **changes)
    assert judge(figures).findings == tuple(findings)
    assert advice_on(figures) == advice


@pytest.mark.parametrize(
    ("changes", "settings"),
    [
        # Ten epochs of 500,000 tokens allow 5 million, less than twice the 3 million of train.max_tokens: both rise.
        ({"baselines": WEAK, "train_tokens": 500_000}, "--set train.max_tokens=6000000 --set train.epochs=20"),
        ({"config": replace(CONFIG, train=TrainConfig(max_tokens=0, epochs=0.75))}, "--set train.epochs=1.5"),
    ],
)
def test_the_limit_that_binds_rises(changes: dict[str, Any], settings: str) -> None:
    _, command = advice_on(replace(GOOD, curve=FALLING, **changes))
    assert command == f"{{program}} train --run {{run}} {settings}"


def test_a_training_that_has_diverged() -> None:
    """Guessing among 5,003 rows has the perplexity 5,003."""
    figures = replace(GOOD, perplexity=1.4567e44, curve=((0, 4999.0), (1_000_000, 1.4567e44)))
    (told,) = judge(figures).findings
    assert told == "The training has diverged: held-out perplexity 1.46e+44 is far worse than guessing."
    assert advice_on(figures) == ("A lower learning rate would help most", new_run("train.learning_rate=0.0004"))
    assert "diverged" not in judge(replace(GOOD, perplexity=6000.0)).findings[0]


def test_a_model_that_learns_its_text_by_heart() -> None:
    figures = replace(GOOD, curve=RISING)
    assert judge(figures).findings[1].startswith("Held-out perplexity was lowest after 1,000,000 tokens, then rose: ")
    smaller = new_run("model.cell_dim=511 model.projection_dim=127")
    assert advice_on(figures) == ("A smaller model would help most", smaller)
    # The sizes of a model that it started from are fixed.
    slower = new_run("train.learning_rate=0.002")
    assert advice_on(replace(figures, started_from_model=True)) == ("A lower learning rate would help most", slower)


def test_a_text_too_small_for_its_words() -> None:
    """The vocabulary has room, so it is the text that lacks them."""
    figures = replace(GOOD, unknown_rate=0.2, num_rows=3001, train_tokens=51_795, curve=FALLING)
    assert judge(figures).findings == (
        BELOW,
        STILL,
        "20.0% of the held-out words are unknown: they are too rare in the training text.",
        "To split such words into known words and characters, segment with: --set text.split_unknown=true",
        "51,795 tokens is not much text; a good model needs millions.",
    )
    assert advice_on(figures) == MORE_TEXT
    # Above the bigram model training longer comes first; a model that was the start has seen more text.
    longer = (LONGER[0], "{program} train --run {run} --set train.epochs=20")
    assert advice_on(replace(figures, baselines=WEAK)) == longer
    assert advice_on(replace(figures, started_from_model=True)) == longer


@pytest.mark.parametrize(
    ("curve", "expected"),
    [
        ((), Trend.UNKNOWN),
        (((0, 99.0), (100, 10.0)), Trend.UNKNOWN),
        (((0, 99.0), (50, 10.0), (100, 9.0)), Trend.FALLING),
        (((0, 99.0), (70, 10.0), (100, 9.0)), Trend.FALLING),  # nothing was measured in the first half
        (((0, 99.0), (50, 10.0), (100, 9.8)), Trend.FLAT),
        (((0, 99.0), (50, 10.0), (100, 10.3)), Trend.RISING),
    ],
)
def test_the_trend(curve: tuple[tuple[int, float], ...], expected: Trend) -> None:
    assert replace(GOOD, curve=curve).trend()[0] is expected


def test_the_lines_name_the_program_and_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["elmo-zh"])
    assert describe_verdict(asdict(judge(GOOD)), Path("runs/my law")) == [
        "Verdict:",
        f"  {BELOW}",
        f"  {STOPPED}",
        "  The model is ready to use: elmo-zh embed file.txt --model 'runs/my law'/model",
    ]
