"""A headless Chromium, driven by its DevTools protocol over a pipe: https://chromedevtools.github.io/devtools-protocol/."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import Any, BinaryIO

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
# The browser reads commands from file 3 and writes to file 4.
COMMANDS_FILE, ANSWERS_FILE = 3, 4
# A browser that hangs is killed, so that the tests end.
LONGEST_SECONDS = 900


class Page:
    def __init__(self, commands: BinaryIO, answers: BinaryIO) -> None:
        self._commands, self._answers = commands, answers
        self._number, self._session = 0, ""
        self.events: list[dict[str, Any]] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its result; keep the events that come before it."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._commands.write(json.dumps(message).encode() + b"\0")
        self._commands.flush()
        while (answer := self._read()).get("id") != self._number:
            pass
        assert "error" not in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def open(self, address: str) -> None:
        """Open an address, wait until the page says that it is ready, and forget earlier events."""
        # An evaluation in a page that is being left gets no answer, so wait for the new one first.
        self.events.clear()
        for each in ("about:blank", address):
            num_loaded = len(self.events_of("Page.loadEventFired"))
            self.send("Page.navigate", url=each)
            while len(self.events_of("Page.loadEventFired")) == num_loaded:
                self._read()
        self.evaluate("shown")
        assert not self.problems(), self.problems()

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression in the page, awaited if it is a promise."""
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def events_of(self, method: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["method"] == method]

    def problems(self) -> list[Any]:
        """Return the exceptions, errors and refused requests since the page was opened."""
        kinds = ("Runtime.exceptionThrown", "Network.loadingFailed", "Page.javascriptDialogOpening")
        return [
            event
            for event in self.events
            if event["method"] in kinds
            or (event["method"] == "Log.entryAdded" and event["params"]["entry"]["level"] == "error")
            or (event["method"] == "Runtime.consoleAPICalled" and event["params"]["type"] == "error")
        ]

    def requests(self) -> list[str]:
        return [event["params"]["request"]["url"] for event in self.events_of("Network.requestWillBeSent")]

    def mouse(self, x: float, y: float, *, click: bool = False) -> None:
        self.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        if click:
            for kind in ("mousePressed", "mouseReleased"):
                self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        self._wait_for_frame()

    def _wait_for_frame(self) -> None:
        self.evaluate("new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))")

    def _read(self) -> dict[str, Any]:
        message = bytearray()
        while (byte := self._answers.read(1)) != b"\0":
            assert byte, "the browser ended"
            message += byte
        read: dict[str, Any] = json.loads(message)
        if "method" in read:
            self.events.append(read)
        return read


@contextmanager
def started_chromium(folder: Path) -> Iterator[Page]:
    """Start Chromium with a profile in a folder; skip the test where there is none."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip("no Chromium: apt-get install chromium")
    reads_commands, writes_commands = os.pipe()
    reads_answers, writes_answers = os.pipe()
    # A shell gives the files their numbers, whatever numbers they have here.
    files = f"exec {COMMANDS_FILE}<&{reads_commands} {ANSWERS_FILE}>&{writes_answers}"
    options = "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --window-size=1500,900 --lang=en"
    process = subprocess.Popen(
        ["bash", "-c", f'{files}; exec "$0" {options} --remote-debugging-pipe --user-data-dir="$1"', program, folder],
        pass_fds=(reads_commands, writes_answers),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(reads_commands)
    os.close(writes_answers)
    watch = Timer(LONGEST_SECONDS, process.kill)
    watch.start()
    try:
        with os.fdopen(writes_commands, "wb") as commands, os.fdopen(reads_answers, "rb") as answers:
            yield Page(commands, answers)
    finally:
        watch.cancel()
        process.terminate()
        process.wait()
