"""Settings that a command changes although another stage made its files with them."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from elmo_zh.config import Config, load_config
from elmo_zh.errors import RunError
from elmo_zh.run.files import write_json
from elmo_zh.run.layout import RunDir
from elmo_zh.run.record import RECORD_FORMAT, earlier_stages, later_stages, refuse_settings_of

RECORDED = {
    "segment": {"segmenter": "jieba"},
    "vocab": {"size": 31},
    "word2vec": {"epochs": 3, "dimension": 7},
    "train": {"model.cell_dim": 13, "model.projection_dim": 7, "train.seed": 5},
}
SETTINGS = (
    "vocab.size=31",
    "word2vec.epochs=3",
    "model.cell_dim=13",
    "model.projection_dim=7",
    "train.seed=5",
    "train.epochs=2",
)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDir:
    monkeypatch.setattr("sys.argv", ["elmo-zh"])
    run = RunDir(tmp_path / "a run")
    for stage, settings in RECORDED.items():
        budget = {"epochs": 2.0, "max_tokens": 0} if stage == "train" else {}
        write_json(
            run.stage_record(stage),
            {
                "format": RECORD_FORMAT,
                "started_at": "2026-01-02T03:04:05+00:00",
                "settings": settings,
                "inputs": {},
                "budget": budget,
            },
        )
    return run


def attempt(run: RunDir, others: Sequence[str], stage: str, changes: Sequence[str], before: Sequence[str] = ()) -> None:
    old = load_config(Config(), None, [*SETTINGS, *before])
    refuse_settings_of(others, stage, run, old, load_config(old, None, changes))


@pytest.mark.parametrize(
    ("stage", "change", "other", "told"),
    [
        ("train", "text.segmenter=character", "segment", "text.segmenter jieba -> character"),
        ("train", "vocab.size=37", "vocab", "vocab.size 31 -> 37"),
        ("vocab", "text.script=simplified", "segment", "text.script none -> simplified"),
        ("encode", "word2vec.epochs=5", "word2vec", "word2vec.epochs 3 -> 5"),
        ("export", "train.seed=7", "train", "train.seed 5 -> 7"),
        ("export", "train.epochs=3", "train", "train.epochs 2.0 -> 3.0"),
    ],
)
def test_settings_of_an_earlier_stage(run: RunDir, stage: str, change: str, other: str, told: str) -> None:
    with pytest.raises(RunError) as refused:
        attempt(run, earlier_stages(stage), stage, [change])
    command = "segment CORPUS" if other == "segment" else other
    assert refused.value.messages == (
        f"{stage} does not use these settings, and {other} ran with other values: {told}. Leave them out, or change"
        f" them with: elmo-zh {command} --run '{run.path}' --set ...",
    )
    run.stage_record(other).unlink()
    attempt(run, earlier_stages(stage), stage, [change])


def test_settings_of_a_later_stage(run: RunDir) -> None:
    with pytest.raises(
        RunError, match=r"^segment does not use these settings, and train ran with other values: train.seed 5"
    ):
        attempt(run, later_stages("segment"), "segment", ["train.seed=7"])


@pytest.mark.parametrize(
    ("stage", "change"),
    [
        ("train", "train.seed=7"),
        ("train", "model.cell_dim=17"),
        ("train", "word2vec.enabled=false"),
        ("train", "text.num_workers=3"),
        ("export", "train.log_every_steps=3"),
        ("train", "vocab.size=31"),
    ],
)
def test_settings_that_a_stage_may_change(run: RunDir, stage: str, change: str) -> None:
    attempt(run, earlier_stages(stage), stage, [change])


def test_settings_may_be_set_back(run: RunDir) -> None:
    """A file of settings may have been changed by hand."""
    attempt(run, earlier_stages("train"), "train", ["vocab.size=31"], before=["vocab.size=37"])
    attempt(run, earlier_stages("train"), "train", ["text.segmenter=jieba"], before=["text.segmenter=character"])
