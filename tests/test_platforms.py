"""The program without modules that only Unix or some Pythons have: fcntl, resource, gensim, mwparserfromhell."""

import sys
from pathlib import Path

import pytest
from contract.command_line import elmo_zh, run_python, succeed
from drawn_bundles import SHAPES, write_model

from elmo_zh.corpus import content
from elmo_zh.errors import CorpusError
from elmo_zh.run.files import locked

WITHOUT_UNIX = """\
import sys

for name in ("fcntl", "resource", "pwd", "grp", "termios"):
    sys.modules[name] = None
"""


def test_every_module_is_imported_and_vectors_come_without_the_modules_of_unix(tmp_path: Path) -> None:
    bundle = write_model(tmp_path / "model", SHAPES["character"])
    code = f"""
import importlib, pkgutil
import elmo_zh

print(elmo_zh.ElmoEmbedder.load({str(bundle)!r}).embed_tokens([["今天", "天气"]])[0].shape[1])
others = ("elmo_zh.__main__", "elmo_zh.sklearn", "elmo_zh.spacy")
for module in pkgutil.walk_packages(elmo_zh.__path__, "elmo_zh."):
    if module.name not in others:
        importlib.import_module(module.name)
"""
    answer = run_python("-c", WITHOUT_UNIX + code, cwd=tmp_path)
    assert (answer.status, answer.stdout.strip()) == (0, "2"), answer.stderr


def test_nothing_is_locked_where_there_are_no_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    with locked(tmp_path / ".lock", "in use"), locked(tmp_path / ".lock", "in use"):
        pass


def test_a_python_that_gensim_has_no_wheel_for(untrained_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gensim", None)
    monkeypatch.setitem(sys.modules, "gensim.models", None)
    assert succeed("word2vec", "--run", untrained_run, "--force").stderr.splitlines()[-1].endswith(", torch.")
    answer = elmo_zh("word2vec", "--run", untrained_run, "--set", "word2vec.implementation=gensim")
    assert answer.only_error().endswith("Use --set word2vec.implementation=torch")


def test_a_python_that_mwparserfromhell_has_no_wheel_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mwparserfromhell", None)
    monkeypatch.setattr(content.sys, "version_info", (3, 14, 0))
    with pytest.raises(
        CorpusError, match=r"^a wiki dump needs mwparserfromhell, which cannot be installed on Python 3\.14"
    ):
        content.import_extra("mwparserfromhell", "a wiki dump")
