"""`elmo-zh embed` that is stopped, killed or out of room, and typed again."""

from functools import partial
from pathlib import Path

import h5py
import pytest
from contract.command_line import SampleRun, elmo_zh
from contract.dumps import Interrupted, embed

from elmo_zh.embed import dump


@pytest.fixture
def unfinished(sample_run: SampleRun, source: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The parts of an output that was stopped after four of its seven lines."""
    monkeypatch.setattr(dump, "DumpJob", partial(dump.DumpJob, part_lines=2))
    with monkeypatch.context() as during:
        Interrupted(during, after_parts=2)
        answer = elmo_zh("embed", source, "--segmented", "--model", sample_run.model)
    assert answer.status == 130
    assert "Interrupted. Run the same command again" in answer.stderr.splitlines()[-1]
    assert "Traceback" not in answer.stderr
    assert answer.stdout == ""
    assert not source.with_name("file.txt.hdf5").exists()
    return source.with_name("file.txt.hdf5.parts")


def test_an_unfinished_output_may_end_in_another_form(sample_run: SampleRun, source: Path, unfinished: Path) -> None:
    embed(sample_run, source, "--segmented", "--sentence-index")
    with h5py.File(source.with_name("file.txt.hdf5")) as file:
        assert "sentence_to_index" in file
    assert not unfinished.exists()
