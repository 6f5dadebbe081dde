"""The lesson's notebooks run from the first cell to the last, and show what their text says."""

import contextlib
import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
STARTER = ROOT / "data" / "starter" / "elmo_zh_starter" / "model"
NOTEBOOKS = [ROOT / "docs" / "lesson" / name for name in ("lesson.ipynb", "lesson.zh.ipynb")]


def code_of(notebook: Path) -> list[str]:
    """The cells of code, with the starter of this checkout instead of an installed one."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    return [cell.replace('"starter"', repr(str(STARTER))) for cell in code]


def test_both_languages_run_the_same_code() -> None:
    english, chinese = map(code_of, NOTEBOOKS)
    assert english == chinese


def test_the_lesson_shows_what_it_says() -> None:
    names: dict[str, Any] = {}
    printed = []
    for cell in code_of(NOTEBOOKS[0]):
        with contextlib.redirect_stdout(io.StringIO()) as output:
            exec(cell, names)
        printed.append(output.getvalue())
    _, _, layers, surprisal, substitutes, usages, _, things, *_ = printed
    tables = [np.array([float(each) for each in re.findall(r"\d\.\d*", table)]) for table in layers.split("layer ")[1:]]
    static, _, top = (table.reshape(4, 4) for table in tables)
    assert (static == 1).all()
    assert min(top[0, 1], top[2, 3]) > 0.65 > 0.55 > top[:2, 2:].max()
    eggs, stones = (dict(re.findall(r"(\S+)\t +(\S+)", part)) for part in surprisal.split("\n\n"))
    assert float(stones["石头"]) > float(eggs["鸡蛋"]) + 1
    fruit, company = map(set, map(eval, substitutes.splitlines()))
    assert {"水果", "香蕉"} <= fruit
    assert not {"水果", "香蕉"} & company
    assert re.findall(r"^\d+%", usages, re.M)
    assert len(re.findall(r"^     .*(花|包袱).*", usages, re.M)) == 8
    assert "100%" not in things
