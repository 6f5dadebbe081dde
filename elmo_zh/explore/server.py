"""Serve the page on this machine only, and answer its questions about words and sentences.

Neither other machines nor other pages in the same browser may ask. So the server is bound to the loopback address; it
refuses requests for another host (DNS rebinding) or from another origin; and questions must be JSON, which a form on
another page cannot send.
"""

import json
import os
import re
import sys
import time
import webbrowser
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any

from elmo_zh.contexts.index import ContextIndex
from elmo_zh.contexts.index_files import Neighbour
from elmo_zh.contexts.occurrences import distinct_neighbours
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.errors import OutputError
from elmo_zh.explore.page import (
    PageContent,
    TokenReader,
    has_probabilities,
    substitute_records,
    token_records,
)
from elmo_zh.language import _
from elmo_zh.run.files import parse_json

HOST = "127.0.0.1"
# Enough for a question with a sentence of some 1,300 characters.
MOST_QUESTION_BYTES, _MOST_READ_BYTES = 4096, 2**16
_NUM_NEIGHBOURS = 8
_POLL_SECONDS = 0.1
# Pause after each word that is computed ahead, so that waiting questions come first.
_PAUSE_SECONDS = 0.05


class LiveSentences:
    """Answers the page's questions about sentences and words, one at a time.

    Sentences are segmented first. If the index is of segmented text, those with spaces count as segmented already, and
    all of them do if the model's segmenter is unknown.
    """

    def __init__(self, index: ContextIndex, embedder: ElmoEmbedder, content: PageContent | None = None) -> None:
        self._index, self.embedder, self._content = index, embedder, content
        self._readers = {True: TokenReader(embedder, segmented=True)} if index.is_segmented else {}
        if embedder.bundle.text is not None or not index.is_segmented:
            self._readers[False] = TokenReader(embedder, segmented=False)
        self._lock = Lock()

    def sentence(self, text: str) -> dict[str, Any]:
        """Return a sentence as `text`, and the `token_records` of its tokens as `tokens`."""
        with self._lock:
            [tokens] = self._readers[self._is_segmented(text)].read([text])
        return {"text": text, "tokens": token_records(tokens)}

    def token(self, text: str, position: int, layer: int) -> dict[str, Any]:
        """Return the `substitutes` and `neighbours` of a token; raise ValueError if the token or the layer is unknown.

        Substitutes are a list of [word, probability], or null without a softmax; neighbours are a list of [cosine,
        text, start, end, source, line from 0].
        """
        with self._lock:
            tokens = self.embedder.prepare(text, segmented=self._is_segmented(text)).tokens
            if not 0 <= position < len(tokens) or layer not in self._index.layers:
                raise ValueError(f"token {position} of {len(tokens)}, layer {layer}")
            [activations] = self.embedder.compute_vectors([tokens])
            found = distinct_neighbours(self._index, activations[layer, position], layer, _NUM_NEIGHBOURS)
            substitutes = None
            if has_probabilities(self.embedder):
                [substitutes] = substitute_records(self.embedder, [(tokens, position)])
        return {"substitutes": substitutes, "neighbours": [_record(each) for each in found]}

    def word(self, number: int) -> dict[str, Any]:
        """Return a word's part of the page, as `PageContent.word` does; raise ValueError if there is no such word."""
        if self._content is None or not 0 <= number < self._content.num_words:
            raise ValueError(f"word {number}")
        with self._lock:
            return self._content.word(number)

    def compute_words(self) -> None:
        """Compute the missing parts of all words in advance, pausing between words so that requests come first."""
        for number in range(self._content.num_words if self._content else 0):
            self.word(number)
            time.sleep(_PAUSE_SECONDS)

    def _is_segmented(self, text: str) -> bool:
        return self._index.is_segmented and (" " in text or False not in self._readers)


def _one_line(text: str) -> str:
    text.encode()  # raises ValueError: a lone surrogate is no text
    return " ".join(text.splitlines())


def _record(found: Neighbour) -> list[Any]:
    occurrence, line = found.occurrence, found.line
    return [round(found.cosine, 3), line.text, occurrence.start, occurrence.end, line.source, line.number]


class ExploreServer(ThreadingHTTPServer):
    """Serves a page and answers its questions; each connection has a thread, because browsers keep idle ones open."""

    daemon_threads = True
    page: bytes
    sentences: LiveSentences

    def __init__(self, port: int) -> None:
        self._thread = Thread(target=self.serve_forever, args=(_POLL_SECONDS,), daemon=True)
        try:
            super().__init__((HOST, port), _Answers)
        except OSError as error:
            raise OutputError(
                _(
                    "Port {port} on {HOST} cannot be used: {strerror}. Choose another port with --port; with"
                    " --port 0, any free port is used."
                ).format(port=port, HOST=HOST, strerror=error.strerror)
            ) from None

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report a failure, unless the browser simply disconnected."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)

    @contextmanager
    def serving(self, page: str, sentences: LiveSentences) -> Iterator["ExploreServer"]:
        """Serve a page in a thread during the block, and answer its questions with `sentences`."""
        self.page, self.sentences = page.encode(), sentences
        self._thread.start()
        try:
            yield self
        finally:
            if self._thread.is_alive():
                self.shutdown()
            self.server_close()

    def wait(self) -> None:
        """Wait until the server ends; Ctrl-C interrupts the wait."""
        # A signal that comes just before a wait without a limit would not be noticed until the next one.
        while self._thread.is_alive():
            self._thread.join(timeout=_POLL_SECONDS)

    @property
    def hosts(self) -> tuple[str, str]:
        """The accepted values of the Host header."""
        return f"{HOST}:{self.server_port}", f"localhost:{self.server_port}"

    @property
    def address(self) -> str:
        """The address to open in a browser."""
        return f"http://{self.hosts[0]}/"


class _Answers(BaseHTTPRequestHandler):
    server: ExploreServer
    server_version, sys_version = "elmo-zh", ""
    # Seconds after which a connection that sends nothing is closed.
    timeout = 30

    def do_GET(self) -> None:
        if not self._refused({HTTPStatus.FORBIDDEN: not self._is_from_here(), HTTPStatus.NOT_FOUND: self.path != "/"}):
            self._send(HTTPStatus.OK, "text/html; charset=utf-8", self.server.page)

    def do_POST(self) -> None:
        """Answer a question: JSON with a word number, a text, or a text with a token and a layer."""
        length = self._content_length()
        # A connection that is closed before its content is read is reset, and the client may not see the answer.
        content = self.rfile.read(length) if length is not None and length <= _MOST_READ_BYTES else b""
        reasons = {
            HTTPStatus.FORBIDDEN: not self._is_from_here(),
            HTTPStatus.NOT_FOUND: self.path != "/sentence",
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE: self.headers.get_content_type() != "application/json",
            HTTPStatus.LENGTH_REQUIRED: length is None,
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE: (length or 0) > MOST_QUESTION_BYTES,
        }
        if self._refused(reasons):
            return
        try:
            answer = json.dumps(self._answer(parse_json(content.decode())), ensure_ascii=False, allow_nan=False)
        except ValueError:
            self._refused({HTTPStatus.BAD_REQUEST: True})
        else:
            self._send(HTTPStatus.OK, "application/json; charset=utf-8", answer.encode())

    def log_message(self, *_: object) -> None:
        """Log nothing."""

    def _answer(self, question: Any) -> dict[str, Any]:
        """Return the answer to a question from the page; raise ValueError if the question is malformed."""
        sentences = self.server.sentences
        match question:
            case {"word": int(number)}:
                return sentences.word(number)
            case {"text": str(text), "token": int(position), "layer": int(layer)}:
                return sentences.token(_one_line(text), position, layer)
            case {"text": str(text)}:
                return sentences.sentence(_one_line(text))
        raise ValueError("no question")

    def _is_from_here(self) -> bool:
        hosts = self.headers.get_all("Host", [])
        origin = self.headers.get("Origin")
        return (
            len(hosts) == 1
            and hosts[0] in self.server.hosts
            and (origin is None or origin in [f"http://{host}" for host in self.server.hosts])
        )

    def _content_length(self) -> int | None:
        """Return the Content-Length, or None if it is not a number of at most nine digits."""
        length = self.headers.get("Content-Length", "")
        return int(length) if re.fullmatch("[0-9]{1,9}", length) else None

    def _refused(self, reasons: Mapping[HTTPStatus, bool]) -> bool:
        """Refuse the request for the first reason that holds; return whether there is one."""
        for status in [status for status, holds in reasons.items() if holds][:1]:
            self.close_connection = True
            self._send(status, "text/plain; charset=utf-8", f"{status.phrase}\n".encode())
        return any(reasons.values())

    def _send(self, status: HTTPStatus, kind: str, content: bytes) -> None:
        self.send_response(status)
        for name, value in (
            ("Content-Type", kind),
            ("Content-Length", str(len(content))),
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
            ("X-Frame-Options", "DENY"),
            ("Referrer-Policy", "no-referrer"),
        ):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)


def open_in_browser(address: str) -> bool:
    """Open an address in a graphical browser, since others would take over the terminal; return whether one exists."""
    if sys.platform == "linux" and not any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")):
        return False
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return False
    # Some browsers keep the caller waiting until they are closed.
    Thread(target=browser.open, args=(address,), daemon=True).start()
    return True
