"""The program without packages that some Pythons have no wheels for: gensim, mwparserfromhell."""

import sys
from pathlib import Path

import pytest
from contract.command_line import elmo_zh, succeed

from elmo_zh.corpus import content
from elmo_zh.errors import CorpusError


def test_a_python_that_gensim_has_no_wheel_for(untrained_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gensim", None)
    monkeypatch.setitem(sys.modules, "gensim.models", None)
    assert succeed("word2vec", "--run", untrained_run, "--force").stderr.splitlines()[-1].endswith(", torch.")
    answer = elmo_zh("word2vec", "--run", untrained_run, "--set", "word2vec.implementation=gensim")
    assert answer.only_error().endswith("or use --set word2vec.implementation=torch")


def test_a_python_that_mwparserfromhell_has_no_wheel_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mwparserfromhell", None)
    monkeypatch.setattr(content.sys, "version_info", (3, 14, 0))
    with pytest.raises(
        CorpusError, match=r"^a wiki dump needs mwparserfromhell, which cannot be installed on Python 3\.14"
    ):
        content.import_extra("mwparserfromhell", "a wiki dump")
