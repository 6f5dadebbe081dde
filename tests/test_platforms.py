"""The program without gensim, which has no wheel for some Pythons."""

import sys
from pathlib import Path

import pytest
from contract.command_line import elmo_zh, succeed


def test_a_python_that_gensim_has_no_wheel_for(untrained_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gensim", None)
    monkeypatch.setitem(sys.modules, "gensim.models", None)
    assert succeed("word2vec", "--run", untrained_run, "--force").stderr.splitlines()[-1].endswith(", torch.")
    answer = elmo_zh("word2vec", "--run", untrained_run, "--set", "word2vec.implementation=gensim")
    assert answer.only_error().endswith("or use --set word2vec.implementation=torch")
