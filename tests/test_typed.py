"""Programs elsewhere are checked against the types of the installed package."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
from elmo_zh import ElmoEmbedder

embedder = ElmoEmbedder.load("model")
reveal_type(embedder.embed(["今天"], return_tokens=True))
embedder.embed(3)
"""


@pytest.mark.slow
def test_mypy_follows_the_package_in_another_project(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "program.py"]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (
        'program.py:5: note: Revealed type is "list[elmo_zh.embed.sentence_vectors.EmbeddedSentence]"' in found.stdout
    )
    assert "program.py:6: error: " in found.stdout
    assert "import-not-found" not in found.stdout
