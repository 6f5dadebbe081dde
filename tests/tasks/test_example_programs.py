"""The programs in docs/examples run on small data and learn what is in it."""

import re
from pathlib import Path

import pytest
from contract.command_line import ROOT, SampleRun
from contract.warm_python import WarmPython

PLACES = ("家", "天", "我")
EXAMPLES = ROOT / "docs" / "examples"


# The program named by the first argument, as if Python had been called with it.
PROGRAM = "import runpy, sys; del sys.argv[0]; runpy.run_path(sys.argv[0], run_name='__main__')"


def assert_learns(name: str, sample_run: SampleRun, data: Path, warm: WarmPython) -> None:
    answer = warm.run(PROGRAM, EXAMPLES / name, sample_run.model, data, cwd=data.parent)
    assert answer.status == 0, answer.stderr
    scores = re.findall(r"epoch \d+: \w+ ([\d.]+) ", answer.stdout)
    assert len(scores) == 10
    assert float(scores[-1]) > 0.7


def test_sentiment(sample_run: SampleRun, tmp_path: Path, warm: WarmPython) -> None:
    path = tmp_path / "reviews.csv"
    rows = [f"{number % 2},{'很好' if number % 2 else '不'}，{PLACES[number % 3]}" for number in range(84)]
    path.write_text("\n".join(["label,text", *rows]), encoding="utf-8")
    assert_learns("sentiment.py", sample_run, path, warm)


def test_names(sample_run: SampleRun, tmp_path: Path, warm: WarmPython) -> None:
    path = tmp_path / "names.conll"
    texts = [
        ("我在" if number % 3 else "我不在", "北京" if number % 2 else "上海", "。我" * (number % 3))
        for number in range(120)
    ]
    blocks = [
        "".join(f"{character} O\n" for character in before)
        + f"{place[0]} B-LOC\n{place[1]} I-LOC\n"
        + "".join(f"{character} O\n" for character in after)
        for before, place, after in texts
    ]
    path.write_text("\n".join(blocks), encoding="utf-8")
    assert_learns("names.py", sample_run, path, warm)


def test_questions(sample_run: SampleRun, tmp_path: Path, warm: WarmPython) -> None:
    path = tmp_path / "pairs.csv"
    first = [("我喜欢" if number % 2 else "我不喜欢") + PLACES[number % 3] for number in range(80)]
    rows = [f"{text},{'很好' if number % 4 < 2 else '不'}" for number, text in enumerate(first)]
    same = [number % 2 for number in range(80)]
    lines = [f"{row},{label}" for row, label in zip(rows, same, strict=True)]
    path.write_text("\n".join(["sentence1,sentence2,label", *lines]), encoding="utf-8")
    assert_learns("questions.py", sample_run, path, warm)


@pytest.mark.parametrize(("name", "most"), [("sentiment.py", 52), ("names.py", 80), ("questions.py", 64)])
def test_they_stay_short(name: str, most: int) -> None:
    assert len((EXAMPLES / name).read_text(encoding="utf-8").splitlines()) <= most
