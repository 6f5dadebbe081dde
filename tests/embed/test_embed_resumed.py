"""`elmo-zh embed` that is stopped, killed or out of room, and typed again."""

import shutil
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import h5py
import pytest
from contract.command_line import SampleRun, elmo_zh
from contract.dumps import SEGMENTED_LINES, Interrupted, embed

from elmo_zh.embed import dump
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.text.preparation import TokenisedLine


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


def test_a_disk_that_is_too_small_is_told_before_any_vector(
    sample_run: SampleRun, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=5000))
    arguments = ("embed", source, "--segmented", "--model", sample_run.model)
    told = elmo_zh(*arguments).only_error()
    assert "of disk space, but only 5.0 kB is free. Free some space, or write less: --layers average" in told
    assert not list(source.parent.glob("*/embed/part-*"))


def test_a_text_that_changes_while_it_is_read(
    sample_run: SampleRun, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare = ElmoEmbedder.prepare

    def prepare_and_change(embedder: ElmoEmbedder, line: str, *, segmented: bool) -> TokenisedLine:
        if line == SEGMENTED_LINES[0]:
            source.write_bytes(source.read_bytes() + b"\xe5\xa5\xbd\n")
        return prepare(embedder, line, segmented=segmented)

    monkeypatch.setattr(ElmoEmbedder, "prepare", prepare_and_change)
    told = elmo_zh("embed", source, "--segmented", "--model", sample_run.model).only_error()
    assert told.startswith(f"{source} changed while it was being read. Run the command again when no other program")
    assert list(source.parent.iterdir()) == [source]
