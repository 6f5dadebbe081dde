"""The plain installation has no PyTorch, SciPy, scikit-learn or matplotlib, and reads with a model all the same."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from contract.command_line import ROOT

STARTER = ROOT / "data" / "starter" / "elmo_zh_starter" / "model"
MISSING = ("torch", "scipy", "sklearn", "matplotlib", "gensim", "safetensors", "bokeh")
BLOCK = f"import sys; sys.modules.update(dict.fromkeys({MISSING!r}))"


@pytest.fixture(scope="module")
def light(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a text, and a sitecustomize that hides the packages of the extras."""
    folder = tmp_path_factory.mktemp("light")
    (folder / "sitecustomize.py").write_text(BLOCK)
    (folder / "text.txt").write_text("我昨天买了一个苹果吃。\n新一代苹果手机今天上市。\n", encoding="utf-8")
    return folder


def python(light: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(light), str(ROOT)]), "ELMO_ZH_MODEL": str(STARTER)}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=light, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("command", "result"),
    [
        ("embed text.txt --output v.hdf5", "v.hdf5"),
        ("evaluate text.txt", "perplexity"),
        ("score text.txt", "bits_per_character"),
        ("substitutes 我昨天买了一个苹果吃。 --word 苹果", "面包"),
        ("index text.txt --output text.index --min-count 1", "text.index"),
        ("concordance 苹果 text.txt", "苹果"),
        (f"info {STARTER} --check", "ok"),
    ],
)
def test_commands_that_read_with_a_model(light: Path, command: str, result: str) -> None:
    answer = python(light, "-m", "elmo_zh", *command.split())
    assert answer.returncode == 0, answer.stderr
    assert result in answer.stdout + answer.stderr
