"""The programs in docs/examples run on small data and learn what is in it."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from contract.command_line import ROOT, SampleRun
from contract.warm_python import WarmPython

PLACES = ("家", "天", "我")
EXAMPLES = ROOT / "docs" / "examples"


# The program named by the first argument, as if Python had been called with it.
PROGRAM = "import runpy, sys; del sys.argv[0]; runpy.run_path(sys.argv[0], run_name='__main__')"


def reviews() -> str:
    rows = [f"{n % 2},{'很好' if n % 2 else '不'}，{PLACES[n % 3]}" for n in range(84)]
    return "\n".join(["label,text", *rows])


def names() -> str:
    blocks = []
    for n in range(120):
        before, place, after = "我在" if n % 3 else "我不在", "北京" if n % 2 else "上海", "。我" * (n % 3)
        tags = [*"O" * len(before), "B-LOC", "I-LOC", *"O" * len(after)]
        blocks.append("".join(map("{} {}\n".format, before + place + after, tags)))
    return "\n".join(blocks)


def questions() -> str:
    rows = [
        f"{'我喜欢' if n % 2 else '我不喜欢'}{PLACES[n % 3]},{'很好' if n % 4 < 2 else '不'},{n % 2}" for n in range(80)
    ]
    return "\n".join(["sentence1,sentence2,label", *rows])


@pytest.mark.parametrize(
    ("name", "data", "content"),
    [("sentiment", "reviews.csv", reviews), ("names", "names.conll", names), ("questions", "pairs.csv", questions)],
)
def test_it_learns(
    name: str, data: str, content: Callable[[], str], sample_run: SampleRun, tmp_path: Path, warm: WarmPython
) -> None:
    (tmp_path / data).write_text(content(), encoding="utf-8")
    answer = warm.run(PROGRAM, EXAMPLES / f"{name}.py", sample_run.model, tmp_path / data, cwd=tmp_path)
    assert answer.status == 0, answer.stderr
    scores = re.findall(r"epoch \d+: \w+ ([\d.]+) ", answer.stdout)
    assert len(scores) == 10
    assert float(scores[-1]) > 0.7
