"""How to do a thing here: with make in the project's folder, with elmo-zh elsewhere."""

from pathlib import Path

import pytest
from contract.command_line import elmo_zh

from elmo_zh.invocation import train_command, train_option


@pytest.fixture
def project(tmp_path: Path) -> None:
    """Make the current folder look like that of the project."""
    Path("make").mkdir()
    for name in ("Makefile", "make/train.sh"):
        Path(name).touch()


@pytest.mark.usefixtures("project")
def test_in_the_folder_of_the_project() -> None:
    options = ("--run", "runs/new law", "--set", "a.b=1", "--init", "starter", "--set", "c=2")
    assert train_command("my texts/", *options) == (
        "make train CORPUS='my texts/' RUN='runs/new law' SET='a.b=1 c=2' INIT=starter"
    )
    assert train_option("--bad-bytes", "replace") == "--bad-bytes replace, or ARGS='--bad-bytes replace' for make train"
    assert train_option("--force") == "--force, or ARGS=--force for make train"
    assert elmo_zh("info").stdout.endswith("Train a model with: make train CORPUS=my-texts/\n")
