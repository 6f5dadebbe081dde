"""The served page: who is answered, and what."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from contexts.explored import served
from contexts.texts import LINES, indexed, write_text
from drawn_bundles import SHAPES, write_model

from elmo_zh import ContextIndex, ElmoEmbedder
from elmo_zh.config import TextConfig
from elmo_zh.errors import OutputError
from elmo_zh.explore.page import build_page
from elmo_zh.explore.server import MOST_QUESTION_BYTES, ExploreServer, LiveSentences

pytest.importorskip("sklearn", reason="scikit-learn is not installed: pip install 'scikit-learn>=1.6'")
pytest.importorskip("bokeh", reason="bokeh is not installed: pip install 'bokeh>=3.6'")

JSON = {"Content-Type": "application/json"}
TEXT = "我们 吃 <b>苹果</b> 𠮷野 苹果 。"


@pytest.fixture(scope="module")
def loaded(page: tuple[Path, dict[str, Any]]) -> tuple[ContextIndex, ElmoEmbedder]:
    folder, _ = page
    return ContextIndex.load(folder / "a.index"), ElmoEmbedder.load(folder / "model", "cpu")


@pytest.fixture(scope="module")
def server(page: tuple[Path, dict[str, Any]], loaded: tuple[ContextIndex, ElmoEmbedder]) -> Iterator[ExploreServer]:
    with served(build_page(page[1], live=True), LiveSentences(*loaded)) as server:
        yield server


def ask(
    server: ExploreServer, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
) -> tuple[HTTPResponse, bytes]:
    connection = HTTPConnection("127.0.0.1", server.server_port)
    try:
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        return answer, answer.read()
    finally:
        connection.close()


def question(server: ExploreServer, **asked: Any) -> Any:
    answer, content = ask(server, "POST", "/sentence", json.dumps(asked).encode(), JSON)
    assert answer.status == 200
    return json.loads(content)


def test_the_page(server: ExploreServer) -> None:
    answer, content = ask(server, "GET", "/")
    assert answer.status == 200
    assert content == server.page
    assert b"connect-src 'self'" in content
    assert answer.headers["X-Frame-Options"] == "DENY"
    assert "Access-Control-Allow-Origin" not in answer.headers
    assert server.server_address[0] == "127.0.0.1"
    assert ask(server, "GET", "/../etc/passwd")[0].status == 404


def test_answers_are_those_of_the_model(server: ExploreServer, loaded: tuple[ContextIndex, ElmoEmbedder]) -> None:
    index, embedder = loaded
    read = question(server, text=TEXT)
    assert read["text"] == TEXT
    assert [TEXT[start:end] for start, end, *_ in read["tokens"]] == TEXT.split()
    found = question(server, text=TEXT, token=4, layer=2)
    assert [word for word, _ in found["substitutes"]] == embedder.substitutes(TEXT.split(), 4).words
    [activations] = embedder.embed_tokens([TEXT.split()])
    vectors = np.array(index.vectors(2), np.float64)
    cosines = vectors @ activations[2, 4] / np.linalg.norm(vectors, axis=1) / np.linalg.norm(activations[2, 4])
    assert found["neighbours"][0][0] == pytest.approx(cosines.max(), abs=0.0006)
    for _, text, start, end, source, number in found["neighbours"]:
        assert text[start:end] in index.words
        assert Path(source).read_text(encoding="utf-8").split("\n")[number] == text
    assert question(server, text="")["tokens"] == []
    assert question(server, text="我们\n吃")["text"] == "我们 吃"


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("GET", {"Host": "evil.example:PORT"}, 403),
        ("GET", {"Host": "127.0.0.1"}, 403),
        ("GET", {"Host": "localhost:PORT"}, 200),
        ("POST", {**JSON, "Host": "evil.example"}, 403),
        ("POST", {**JSON, "Origin": "http://evil.example"}, 403),
        ("POST", {**JSON, "Origin": "null"}, 403),
        ("POST", {**JSON, "Origin": "http://127.0.0.1:PORT"}, 200),
        ("POST", {"Content-Type": "text/plain"}, 415),
        ("OPTIONS", {}, 501),
    ],
)
def test_who_is_answered(server: ExploreServer, method: str, headers: dict[str, str], status: int) -> None:
    given = {name: value.replace("PORT", str(server.server_port)) for name, value in headers.items()}
    path, body = ("/sentence", b'{"text": "a"}') if method == "POST" else ("/", None)
    assert ask(server, method, path, body, given)[0].status == status


@pytest.mark.parametrize(
    "body",
    [
        b"\xff",
        b'{"text": "\\ud800"}',
        b'{"text": "a", "token": 1, "layer": 2}',
        b'{"text": "a", "token": 0, "layer": 7}',
        b"[" * 4000,
    ],
)
def test_wrong_questions(server: ExploreServer, body: bytes) -> None:
    assert ask(server, "POST", "/sentence", body, JSON)[0].status == 400


def test_the_size_of_a_question_is_bounded(server: ExploreServer) -> None:
    body = json.dumps({"text": "a" * MOST_QUESTION_BYTES}).encode()
    assert ask(server, "POST", "/sentence", body[:-1], JSON)[0].status == 413
    head = f"POST /sentence HTTP/1.1\r\nHost: 127.0.0.1:{server.server_port}\r\nContent-Type: application/json\r\n"
    for length, status in (("9" * 9, b"413"), ("9" * 5000, b"411"), (None, b"411")):
        with socket.create_connection(("127.0.0.1", server.server_port)) as connection:
            given = f"Content-Length: {length}\r\n" if length else ""
            connection.sendall(f"{head}{given}\r\n".encode())
            assert connection.recv(100).split()[1] == status


def test_a_port_in_use(server: ExploreServer) -> None:
    with pytest.raises(OutputError, match=rf"Port {server.server_port} on 127.0.0.1 cannot be used: Address already"):
        ExploreServer(server.server_port)


def test_sentences_beside_a_segmented_text(tmp_path: Path) -> None:
    model = write_model(tmp_path / "model", SHAPES["token"], text=TextConfig(segmenter="character"), with_softmax=True)
    embedder = ElmoEmbedder.load(model, "cpu")
    index = indexed(embedder, [write_text(tmp_path / "a.txt", LINES)], tmp_path / "a.index", segmented=True)
    sentences = LiveSentences(index, embedder)
    assert [token[:2] for token in sentences.sentence("我们 吃")["tokens"]] == [[0, 2], [3, 4]]
    assert [token[:2] for token in sentences.sentence("我们吃")["tokens"]] == [[0, 1], [1, 2], [2, 3]]
    assert sentences.token("我们吃", 2, 1)["neighbours"][0][1] in LINES
    with pytest.raises(ValueError, match="token 2 of 2"):
        sentences.token("我们 吃", 2, 1)


def test_the_server_ends_at_once_though_a_client_is_slow(tmp_path: Path, model: Path) -> None:
    index = indexed(ElmoEmbedder.load(model, "cpu"), [write_text(Path("a.txt"), LINES)], Path("a.index"), min_count=1)
    typed = f"explore {index.path} --word 苹果 --port 0 --no-browser"
    command = [sys.executable, "-m", "elmo_zh", *typed.split()]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as server:
        assert server.stdout is not None
        assert server.stderr is not None
        [port] = map(int, re.findall(r"http://127.0.0.1:(\d+)/", server.stdout.readline().decode()))
        asking = HTTPConnection("127.0.0.1", port)
        asking.request("POST", "/sentence", b'{"word": 0}', {"Content-Type": "application/json"})
        assert set(json.loads(asking.getresponse().read())) == {"maps", "tokens", "substitutes"}
        with socket.create_connection(("127.0.0.1", port)) as slow:
            slow.sendall(b"POST /sentence HTTP/1.0\r\nHost: ")
            server.send_signal(signal.SIGTERM)
            _, errors = server.communicate()
    assert server.returncode == 143
    assert b"Traceback" not in errors
