"""Every command that makes something ends with the command to type next."""

from dataclasses import replace
from pathlib import Path

import pytest
from contract.command_line import elmo_zh

from elmo_zh.cli.stages import after_stage
from elmo_zh.config import Config, TrainConfig, VocabConfig, Word2vecConfig
from elmo_zh.invocation import command
from elmo_zh.run.layout import RunDir
from elmo_zh.run.stage_table import ENCODE, SEGMENT, VOCAB, Stage

RANDOM = replace(Config(), word2vec=Word2vecConfig(enabled=False))
KEEPS_WORDS = replace(Config(), vocab=VocabConfig(init="runs/my news/model"))
STARTS_FROM_MODEL = replace(KEEPS_WORDS, train=TrainConfig(init="runs/my news/model"))


@pytest.mark.parametrize(
    ("stage", "config", "expected"),
    [
        (SEGMENT, Config(), "vocab --run 'runs/my law'"),
        (VOCAB, RANDOM, "encode --run 'runs/my law'"),
        (VOCAB, KEEPS_WORDS, "encode --run 'runs/my law'"),
        (ENCODE, RANDOM, "train --run 'runs/my law'"),
        (ENCODE, Config(), "word2vec --run 'runs/my law'"),
        (ENCODE, KEEPS_WORDS, "train --run 'runs/my law' --init 'runs/my news/model'"),
        (ENCODE, STARTS_FROM_MODEL, "train --run 'runs/my law'"),
    ],
)
def test_the_command_after_a_stage(stage: Stage, config: Config, expected: str) -> None:
    assert command(*after_stage(stage, RunDir(Path("runs/my law")), config)) == f"elmo-zh {expected}"


@pytest.mark.parametrize(
    ("command", "option", "advice"),
    [
        ("train", "--epochs", "In elmo-zh it is called --set word2vec.epochs=VALUE, --set train.epochs=VALUE."),
        (
            "train",
            "--n-gpus",
            "Start one process per GPU: torchrun --nproc-per-node NUMBER -m -- elmo_zh train --run RUN",
        ),
        ("train", "--all_clip_norm_val", "In elmo-zh it is called --set train.max_grad_norm=VALUE."),
        (
            "embed",
            "--options-file",
            "Convert the files to a bundle with elmo-zh convert, then use --model BUNDLE.",
        ),
    ],
)
def test_an_option_that_is_a_setting_or_an_argument(command: str, option: str, advice: str) -> None:
    answer = elmo_zh(command, option, "x")
    assert answer.status == 2
    assert answer.errors == [f"Error: No such option '{option}'. {advice}"]
