"""Settings that a command changes although another stage made its files with them."""

from pathlib import Path

import pytest
from contract.command_line import SampleRun, contents_alone, elmo_zh


@pytest.mark.parametrize(
    ("stage", "change", "other", "told"),
    [
        ("train", "text.segmenter=character", "segment", "text.segmenter jieba -> character"),
        ("vocab", "text.script=simplified", "segment", "text.script none -> simplified"),
        ("export", "train.epochs=3", "train", "train.epochs 10.0 -> 3.0"),
        ("segment", "train.seed=7", "train", "train.seed 1 -> 7"),
    ],
)
def test_settings_of_another_stage(
    sample_run: SampleRun, run: Path, stage: str, change: str, other: str, told: str
) -> None:
    before = contents_alone(run)
    typed = (stage, *([sample_run.corpus] if stage == "segment" else []), "--run", run)
    command = "segment CORPUS" if other == "segment" else other
    refusal = elmo_zh(*typed, "--set", change).only_error()
    assert refusal.startswith(f"{stage} does not use these settings, and {other} ran with other values: {told}. ")
    assert refusal.endswith(f" elmo-zh {command} --run {run} --set ...")
    assert contents_alone(run) == before


def test_settings_that_a_stage_may_change_and_set_back(run: Path) -> None:
    """A file of settings may have been changed by hand."""
    config = (run / "config.toml").read_text(encoding="utf-8")
    (run / "config.toml").write_text(config.replace("size = 30000\n", "size = 37\n"), encoding="utf-8")
    for change in ("vocab.size=30000", "text.num_workers=3", "train.log_every_steps=3"):
        assert elmo_zh("export", "--run", run, "--set", change).status == 0
