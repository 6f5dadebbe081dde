"""The examples of docs/python.md, run as they stand there."""

import importlib.util
import re
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from contract.command_line import LAYERS, PROJECTION, ROOT, SampleRun, run_python

WIDTH = 2 * PROJECTION
LINES = ("今天天气很好。", "", "苹果很甜。")


def examples() -> dict[str, str]:
    """The Python blocks of each section, joined."""
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    sections = re.split(r"^## (.+)\n", page, flags=re.MULTILINE)[1:]
    return {
        title: "\n".join(re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
        for title, text in zip(sections[::2], sections[1::2], strict=True)
    }


@pytest.fixture
def folder(sample_run: SampleRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder such as the project's after `make train`."""
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "latest").symlink_to(sample_run.path)
    (tmp_path / "corpus.txt").write_text("\n".join(LINES), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(folder: Path, code: str) -> dict[str, Any]:
    script = folder / "example.py"
    script.write_text(code, encoding="utf-8")
    return runpy.run_path(str(script), run_name="__main__")


def test_every_section_is_run_here() -> None:
    assert list(examples()) == ["Sentences", "A stream of sentences", "In a data loader", "scikit-learn"]


def test_sentences_and_streams(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run(folder, examples()["Sentences"] + examples()["A stream of sentences"])
    assert found["vectors"][0].shape == (LAYERS + 1, 4, WIDTH)
    assert found["average"].shape == found["top"].shape == (4, WIDTH)
    printed = capsys.readouterr().out.splitlines()
    assert "".join(line.split(" ")[0] for line in printed) == "我在北京大学吃苹果"
    assert found["num_tokens"] == sum(len(found["embedder"].tokens(line)) for line in LINES)


def test_in_a_data_loader(folder: Path) -> None:
    """As a script, since workers may import it."""
    script = folder / "example.py"
    script.write_text(examples()["In a data loader"], encoding="utf-8")
    answer = run_python("-W", "ignore::UserWarning", script, cwd=folder)
    assert answer.status == 0, answer.stderr
    batches = [re.findall(r"\d+", line) for line in answer.stdout.splitlines()]
    assert [len(numbers) for numbers in batches] == [7, 7, 5]
    for B, longest, width, *rest in (map(int, numbers) for numbers in batches):
        assert (width, len(rest)) == (WIDTH, 2 * B)
        assert max(rest[:B]) == longest
    assert [numbers[3 + int(numbers[0]) :] for numbers in batches] == [["1", "1"], ["0", "0"], ["0"]]


def test_scikit_learn(folder: Path) -> None:
    if importlib.util.find_spec("sklearn") is None:
        pytest.skip("scikit-learn is not installed: pip install 'scikit-learn>=1.6'")
    found = run(folder, examples()["scikit-learn"])
    assert (found["features"].shape, found["features"].dtype) == ((6, WIDTH), np.dtype("float32"))
    assert found["classifier"].score(found["texts"], found["labels"]) > 0.5
    assert len(found["search"].cv_results_["params"]) == 9
