"""`elmo-zh segment` with each segmenter."""

import importlib.metadata
import json
from pathlib import Path

from contract.command_line import SampleRun, elmo_zh


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
