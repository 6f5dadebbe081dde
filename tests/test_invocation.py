"""How to do a thing here: with make in the project's folder, with elmo-zh elsewhere."""

from pathlib import Path

import pytest
from contract.command_line import elmo_zh

from elmo_zh.invocation import train_command


@pytest.fixture
def project(tmp_path: Path) -> None:
    """Make the current folder look like that of the project."""
    Path("make").mkdir()
    for name in ("Makefile", "make/train.sh"):
        Path(name).touch()


def test_in_the_folder_of_the_project_and_elsewhere(project: None) -> None:
    assert train_command("my texts/", "runs/new law") == "make train CORPUS='my texts/' RUN='runs/new law'"
    assert elmo_zh("info").stdout.endswith("Begin one with: make train CORPUS=my-texts/\n")
    Path("Makefile").unlink()
    assert train_command("a b/") == "elmo-zh pipeline 'a b/' --run 'runs/a b'"
