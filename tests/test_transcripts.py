"""Outputs that README and docs show are those of the program; `make transcripts` writes them."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from contract.command_line import ROOT, SampleRun, elmo_zh
from test_docs import skeleton, transcript
from test_pages import commands_in, load_script

# What commands add where the starter is installed.
NEWEST = " This is the newest run's model. To use the starter instead: --model starter"
TRAINING, TROUBLESHOOTING = ROOT / "docs" / "training.md", ROOT / "docs" / "zh" / "troubleshooting.md"
TINY = ROOT / "configs" / "tiny.toml"

transcripts = load_script("transcripts")


def test_the_sample_gives_the_figures_of_the_page_on_training(tmp_path: Path) -> None:
    """Segmenting and counting give the same on every machine."""
    shutil.copytree(ROOT / "data" / "sample", tmp_path / "sample")
    run = tmp_path / "run"
    settings = ("--config", TINY, "--set", "text.num_workers=1")
    answers = [
        elmo_zh("segment", tmp_path / "sample", "--run", run, *settings),
        elmo_zh("vocab", "--run", run),
        elmo_zh("encode", "--run", run),
    ]
    assert [answer.status for answer in answers] == [0, 0, 0], answers
    told = {line for answer in answers for line in answer.stderr.splitlines()}
    shown = [line for line in transcript(TRAINING, "make train") if line.startswith(("segment:", "vocab:", "encode:"))]
    assert len(shown) == len(answers)
    assert set(shown) <= told


@pytest.fixture
def folder(sample_run: SampleRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the texts of the pages and a finished run that commands may change."""
    transcripts.write_texts(tmp_path)
    shutil.copytree(sample_run.path, tmp_path / "runs" / "sample")
    (tmp_path / "runs" / "latest").symlink_to("sample")
    shutil.copytree(ROOT / "make", tmp_path / "make")
    shutil.copy(ROOT / "Makefile", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def without_figures(line: str) -> str:
    """A line without numbers, paths, units (the free disk space is in TB elsewhere) and the corpus of a model."""
    line = re.sub(r"(?<=, trained on ).*(?=, [\d,]+ tokens)", "CORPUS", line)
    return re.sub(r"# ([kMGT]?B|bytes?)\b", "# B", skeleton(line))


def shown_problems() -> list[tuple[str, list[str]]]:
    found = transcripts.TRANSCRIPT.finditer(TROUBLESHOOTING.read_text(encoding="utf-8"))
    return [(match["command"], match["output"].splitlines()) for match in found]


@pytest.mark.parametrize("problem", shown_problems(), ids=lambda problem: problem[0])
def test_messages_of_the_page_on_troubleshooting(problem: tuple[str, list[str]], folder: Path) -> None:
    """Typed again, each command tells what the page shows, but for figures, paths and the starter."""
    command, shown = problem
    if command.startswith("make "):
        done = subprocess.run(command, shell=True, capture_output=True, encoding="utf-8")
        output = done.stderr + done.stdout
    else:
        [words] = commands_in(command)
        answer = elmo_zh(*words)
        output = answer.stderr + answer.stdout
    # The page names the program as it is typed in a checkout.
    told = {
        without_figures(line).replace(".venv/bin/", "") for line in transcripts.as_shown(output, folder).splitlines()
    }
    shown = [line.replace(NEWEST, "").replace("models: starter, ", "models: ") for line in shown]
    assert [line for line in shown if without_figures(line).replace(".venv/bin/", "") not in told] == [], (
        f"{output}\nIf it is right, run: make transcripts"
    )
