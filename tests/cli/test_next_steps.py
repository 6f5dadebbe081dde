"""Every command that makes something ends with the command to type next."""

from dataclasses import replace
from pathlib import Path

import pytest
from contract.command_line import SampleRun, elmo_zh
from drawn_bundles import TOKENS, write_model

from elmo_zh.cli.next_steps import after_stage
from elmo_zh.config import Config, TrainConfig, VocabConfig, Word2vecConfig
from elmo_zh.run.layout import RunDir

pytestmark = pytest.mark.usefixtures("empty_folder")

RANDOM = replace(Config(), word2vec=Word2vecConfig(enabled=False))
KEEPS_WORDS = replace(Config(), vocab=VocabConfig(init="runs/my news/model"))
STARTS_FROM_MODEL = replace(KEEPS_WORDS, train=TrainConfig(init="runs/my news/model"))


@pytest.mark.parametrize(
    ("stage", "config", "expected"),
    [
        ("segment", Config(), "vocab --run 'runs/my law'"),
        ("vocab", Config(), "word2vec --run 'runs/my law'"),
        ("vocab", RANDOM, "encode --run 'runs/my law'"),
        ("vocab", KEEPS_WORDS, "encode --run 'runs/my law'"),
        ("word2vec", Config(), "encode --run 'runs/my law'"),
        ("encode", Config(), "train --run 'runs/my law'"),
        ("encode", KEEPS_WORDS, "train --run 'runs/my law' --init 'runs/my news/model'"),
        ("encode", STARTS_FROM_MODEL, "train --run 'runs/my law'"),
        ("train", Config(), "export --run 'runs/my law'"),
        ("export", Config(), "embed file.txt --model 'runs/my law/model'"),
    ],
)
def test_the_command_after_a_stage(monkeypatch: pytest.MonkeyPatch, stage: str, config: Config, expected: str) -> None:
    monkeypatch.setattr("sys.argv", ["elmo-zh"])
    assert after_stage(stage, RunDir(Path("runs/my law")), config) == f"Next: elmo-zh {expected}"


def test_the_stages_of_a_run_lead_from_one_to_the_next(sample_run: SampleRun) -> None:
    """Typed again they do nothing, and still say how to go on."""
    commands = [["segment", str(sample_run.corpus), "--run", str(sample_run.path)]]
    seen = []
    while commands[-1][0] != "embed":
        answer = elmo_zh(*commands[-1])
        assert answer.status == 0, answer.stderr
        *_, last = answer.stdout.splitlines()
        assert last.startswith("Next: elmo-zh ")
        seen.append(commands[-1][0])
        command = last.removeprefix("Next: elmo-zh ").replace("'", "")
        name, _, rest = command.partition(" ")
        commands.append([name, "--run", str(sample_run.path)] if "--run" in rest else [name])
    assert seen == ["segment", "vocab", "word2vec", "encode", "train", "export"]
    assert elmo_zh("vocab", "--run", sample_run.path, "--quiet").stdout == ""


def test_exports_and_conversions_lead_to_embed(sample_run: SampleRun) -> None:
    answer = elmo_zh("export", "--run", sample_run.path, "--output", "mine")
    assert answer.stdout.splitlines() == ["Next: elmo-zh embed file.txt --model mine"]
    answer = elmo_zh("export", "--run", sample_run.path, "--output", "plain", "--layout", "safetensors")
    assert (answer.status, answer.stdout) == (0, "")
    answer = elmo_zh("convert", "mine", "--output", "copy")
    assert answer.stdout.splitlines()[-1] == "Next: elmo-zh embed file.txt --model copy"
    write_model(Path("drawn"), TOKENS)
    answer = elmo_zh("convert", "drawn", "--output", "again")
    assert answer.stdout.splitlines()[-1] == "Next: elmo-zh embed file.txt --model again --segmented"
