"""Settings that a command changes although another stage made its files with them."""

from pathlib import Path

import pytest
from contract.command_line import contents_alone, elmo_zh


@pytest.mark.parametrize(
    ("stage", "change", "other", "told"),
    [
        ("train", "text.segmenter=character", "segment CORPUS", "text.segmenter jieba -> character"),
        ("word2vec", "vocab.size=37", "vocab", "vocab.size 30000 -> 37"),
        ("export", "text.unicode_form=NFKC", "segment CORPUS", "text.unicode_form NFC -> NFKC"),
        ("export", "train.seed=7", "train", "train.seed 1 -> 7"),
    ],
)
def test_settings_of_another_stage(run: Path, stage: str, change: str, other: str, told: str) -> None:
    before = contents_alone(run)
    refusal = elmo_zh(stage, "--run", run, "--set", change).only_error()
    assert refusal.startswith(f"{other.split()[0]} ran with other settings: {told}. ")
    assert refusal.endswith(f" elmo-zh {other} --run {run}")
    assert contents_alone(run) == before


def test_settings_that_a_stage_may_change_and_set_back(run: Path) -> None:
    """A file of settings may have been changed by hand."""
    config = (run / "config.toml").read_text(encoding="utf-8")
    (run / "config.toml").write_text(config.replace("size = 30000\n", "size = 37\n"), encoding="utf-8")
    for change in ("vocab.size=30000", "text.num_workers=3", "train.log_every_steps=3"):
        assert elmo_zh("export", "--run", run, "--set", change).status == 0
