"""Exit status 2: the command line itself is wrong. Exit status 1: anything else that the user can correct."""

import pytest
from contract.command_line import SampleRun, elmo_zh

pytestmark = pytest.mark.usefixtures("empty_folder")


def test_a_checkpoint_that_cannot_exist_and_one_that_does_not(sample_run: SampleRun) -> None:
    for checkpoint, status in (("bset", 2), ("7", 1)):
        answer = elmo_zh("export", "--run", sample_run.path, "--output", "out", "--checkpoint", checkpoint)
        assert answer.only_error(status).startswith(f"There is no checkpoint {checkpoint} in ")


def test_two_files_with_standard_input() -> None:
    for command in ("embed", "evaluate"):
        answer = elmo_zh(command, "-", "text.txt")
        assert answer.status == 2
        assert answer.errors == ["Error: - (standard input) cannot be combined with other files. Give it alone."]
