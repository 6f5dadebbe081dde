"""What the page of `explore` computes behind its address and keeps beside the index, and who else finds that index."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from contexts.texts import LINES, indexed, model_of_words, write_text
from contract.command_line import elmo_zh

from elmo_zh import ContextIndex, ElmoEmbedder
from elmo_zh.contexts import PageChoice
from elmo_zh.explore import page_content as content_module
from elmo_zh.explore.own_index import Subject
from elmo_zh.explore.page_content import PageContent
from elmo_zh.explore.server import LiveSentences
from elmo_zh.run.reporter import SilentReporter

pytest.importorskip("sklearn", reason="scikit-learn is not installed: pip install 'scikit-learn>=1.6'")
pytest.importorskip("bokeh", reason="bokeh is not installed: pip install 'bokeh>=3.6'")

CHOICE = PageChoice(words=("苹果", "吃"))


def test_words_come_one_by_one_and_are_kept(
    folder_of_index: Path, embedder: ElmoEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = ContextIndex.load(folder_of_index)

    def content(choice: PageChoice = CHOICE) -> PageContent:
        return PageContent(index, embedder, choice, SilentReporter())

    first = content()
    sentences = LiveSentences(index, embedder, first)
    word = sentences.word(1)
    assert len(list(folder_of_index.glob("pages/*/word-*.json"))) == 1
    with pytest.raises(ValueError, match="word 2"):
        sentences.word(2)
    sentences.compute_words()
    whole = first.whole()
    assert whole["parts"][1] == word

    def computed_again(*_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(content_module, "compute_maps", computed_again)
    monkeypatch.setattr(content_module, "choose_points", computed_again)
    assert content().whole() == json.loads(json.dumps(whole))
    # Whatever the content depends on has a folder of its own.
    with pytest.raises(AssertionError):
        content(PageChoice(words=("吃",)))
    info = folder_of_index / "index.json"
    info.write_text(info.read_text("utf-8") + " ", encoding="utf-8")
    with pytest.raises(AssertionError):
        content()


def test_an_index_that_cannot_be_written_to(
    folder_of_index: Path, embedder: ElmoEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    content = PageContent(ContextIndex.load(folder_of_index), embedder, CHOICE, SilentReporter())
    assert content.word(0) is content.word(0)
    assert not (folder_of_index / "pages").exists()


def test_the_server_ends_at_once_though_a_client_is_slow(tmp_path: Path, model: Path) -> None:
    index = indexed(ElmoEmbedder.load(model, "cpu"), [write_text(Path("a.txt"), LINES)], Path("a.index"), min_count=1)
    typed = f"explore {index.path} --word 苹果 --port 0 --no-browser"
    command = [sys.executable, "-m", "elmo_zh", *typed.split()]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as server:
        assert server.stdout is not None
        assert server.stderr is not None
        told = server.stderr.readline() + server.stderr.readline()
        port = int(re.findall(r":(\d+)/", told.decode())[0])
        assert b"shows only a notice" in told
        shown = server.stdout.readline().decode()
        assert shown == f"http://127.0.0.1:{port}/ shows 4 occurrences of 1 word. Ctrl-C stops the server.\n"
        asking = HTTPConnection("127.0.0.1", port)
        asking.request("POST", "/sentence", b'{"word": 0}', {"Content-Type": "application/json"})
        assert set(json.loads(asking.getresponse().read())) == {"maps", "tokens", "substitutes"}
        with socket.create_connection(("127.0.0.1", port)) as slow:
            slow.sendall(b"POST /sentence HTTP/1.0\r\nHost: ")
            server.send_signal(signal.SIGTERM)
            _, errors = server.communicate()
    assert server.returncode == 143
    assert b"Traceback" not in errors


def test_commands_find_the_index_that_explore_has_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of_words(tmp_path / "mine")
    text = write_text(Path("a.txt"), LINES)
    place = Subject.find(model).index(ElmoEmbedder.load(model, "cpu").bundle.digest)
    assert elmo_zh("index", text, "--model", model, "--output", place).status == 0
    monkeypatch.setenv("ELMO_ZH_MODEL", str(model))
    for command in (("senses", "苹果", "--no-substitutes"), ("concordance", "苹果")):
        named = elmo_zh(*command, "--index", place, "--json").result()
        found = elmo_zh(*command, "--json")
        assert found.result() == named
        assert f"Index: {place}, made by explore." in found.stderr
