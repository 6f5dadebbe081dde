"""The names that `elmo_zh` offers: to completion, to a star import, and without the extras."""

import ast
import subprocess
import sys

from contract.command_line import ROOT

import elmo_zh

STAR = "from elmo_zh import *; print(sorted(name for name in globals() if not name.startswith('_')))"


def run(code: str) -> str:
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def test_completion_knows_what_is_not_imported_yet() -> None:
    code = "import sys, elmo_zh; names = dir(elmo_zh); print('torch' in sys.modules or 'numpy' in sys.modules, *names)"
    heavy, *names = run(code).split()
    assert heavy == "False"
    assert set(elmo_zh.__all__) <= set(names)
    for name in ("ElmoEmbedder", "Elmo", "LineScorer", "Word2Vec", "TaskModel", "ContextIndex"):
        assert name in names
        assert name in (elmo_zh.__doc__ or "")


def test_a_star_import_without_scikit_learn() -> None:
    found = ast.literal_eval(run(f"import sys; sys.modules['sklearn'] = None; {STAR}"))
    assert {"ElmoEmbedder", "LineScorer"} <= set(found)
    assert "TaskModel" not in found
