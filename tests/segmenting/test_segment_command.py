"""`elmo-zh segment` with each segmenter."""

import importlib.metadata
import json
from pathlib import Path

import pytest
from contract.command_line import SampleRun, elmo_zh

from elmo_zh.extras import install_line


def test_rjieba_gives_the_text_that_jieba_gives(sample_run: SampleRun, tmp_path: Path) -> None:
    run = tmp_path / "run"
    changes = ("--config", sample_run.config, "--set", "text.segmenter=rjieba")
    assert elmo_zh("segment", sample_run.corpus, "--run", run, *changes).status == 0
    files = sorted((run / "segmented").iterdir())
    assert [path.name for path in files] == ["heldout-00000.txt", "train-00000.documents", "train-00000.txt"]
    for path in files:
        assert path.read_bytes() == (sample_run.path / "segmented" / path.name).read_bytes()
    settings = json.loads((run / "stages" / "segment.json").read_text(encoding="utf-8"))["settings"]
    assert settings["segmenter"] == "rjieba"
    assert settings["segmenter_version"] == {"name": "rjieba", "version": importlib.metadata.version("rjieba")}


def test_rjieba_that_is_not_installed(sample_run: SampleRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def not_found(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", not_found)
    told = elmo_zh("segment", sample_run.corpus, "--run", tmp_path / "run", "--set", "text.segmenter=rjieba")
    assert told.only_error() == (
        f"text.segmenter = rjieba needs the package rjieba. Install it with: {install_line('rjieba')}"
    )
    assert not (tmp_path / "run" / "segmented").exists()
