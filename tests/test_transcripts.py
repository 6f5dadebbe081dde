"""Outputs that README and docs show are those of the program; `make transcripts` writes them."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from contract.command_line import ROOT, SampleRun, elmo_zh
from test_docs import skeleton, transcript
from test_pages import code_blocks, commands_in, load_script

TRAINING, TROUBLESHOOTING = ROOT / "docs" / "training.md", ROOT / "docs" / "zh" / "troubleshooting.md"
TINY = ROOT / "configs" / "tiny.toml"

transcripts = load_script("transcripts")


@pytest.mark.parametrize("page", transcripts.PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_page_has_a_transcript(page: Path) -> None:
    """With no command run, a page stays as it is; with other output, it changes."""
    text = page.read_text(encoding="utf-8")
    shown = {match["command"]: match["output"] for match in transcripts.TRANSCRIPT.finditer(text)}
    assert shown
    assert transcripts.update(text, lambda command: "other\n") != text

    def answer_to(command: str) -> str:
        lines = shown[command].splitlines(keepends=True)
        return "".join(line for line in lines if not line.startswith(transcripts.SETTING_UP))

    assert transcripts.update(text, answer_to) == text


def test_an_output_that_is_not_asked_for_again_is_kept() -> None:
    page = "```console\n$ make train\nold\n```\n\n```console\n$ make x\nold\n...\n```\n"
    assert transcripts.update(page, lambda command: None) == page
    changed = transcripts.update(page, lambda command: None if command == transcripts.TRAIN else "1\n2\n")
    assert changed == "```console\n$ make train\nold\n```\n\n```console\n$ make x\n1\n...\n```\n"


def test_progress_and_paths_of_this_machine_are_not_shown(tmp_path: Path) -> None:
    output = (
        f"train:  30% 132k/439k\nstep 1\n  /usr/bin/python3 -m elmo_zh embed\n{tmp_path}/x\nmake: *** [train] Error 1\n"
    )
    shown = "step 1\n  .venv/bin/elmo-zh embed\n/home/me/elmo-zh/x\n"
    assert transcripts.as_shown(output, tmp_path) == shown
    assert transcripts.shorten("a\nb\nc\n", "1\n2\n...\n") == "a\nb\n...\n"


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
    line = re.sub(r"(?<=, trained on ).*(?= \([\d,]+ tokens of text)", "CORPUS", line)
    return re.sub(r"# ([kMGT]?B|bytes?)\b", "# B", skeleton(line))


def shown_problems() -> list[tuple[str, list[str]]]:
    found = transcripts.TRANSCRIPT.finditer(TROUBLESHOOTING.read_text(encoding="utf-8"))
    return [(match["command"], match["output"].splitlines()) for match in found]


@pytest.mark.parametrize("problem", shown_problems(), ids=lambda problem: problem[0])
def test_messages_of_the_page_on_troubleshooting(problem: tuple[str, list[str]], folder: Path) -> None:
    """Typed again, each command tells what the page shows, except for figures and paths."""
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
    assert [line for line in shown if without_figures(line).replace(".venv/bin/", "") not in told] == [], (
        f"{output}\nIf it is right, run: make transcripts"
    )


def test_messages_of_the_set_up_are_in_its_script() -> None:
    blocks = [code for language, code in code_blocks(TROUBLESHOOTING) if language == "text"]
    script = (ROOT / "make" / "set-up.sh").read_text(encoding="utf-8")
    said = re.findall(r'"([^"]*)"', " ".join(re.findall(r"fail ((?:\"[^\"]*\"[ \\\n]*)+)", script)))
    patterns = [".+".join(map(re.escape, re.split(r"\$\{.*?\}|\$\(.*?\)|\$\w+", message))) for message in said]
    assert len(blocks) == 2
    for block in blocks:
        message = block.removeprefix("Error: ").rstrip("\n")
        assert any(re.fullmatch(pattern, message) for pattern in patterns), message
