"""What a known problem tells."""

from collections.abc import Callable

import pytest

from elmo_zh.errors import ElmoZhError
from elmo_zh.run.reporter import SilentReporter


class Heard(SilentReporter):
    def __init__(self) -> None:
        self.notes: list[str] = []
        self.warnings: list[str] = []

    def note(self, message: str) -> None:
        self.notes.append(message)

    def warn(self, message: str) -> None:
        self.warnings.append(message)


def message_of(kind: type[ElmoZhError], attempt: Callable[[], object]) -> str:
    """Return the only message, in one line, of the known problem that `attempt` ends with."""
    with pytest.raises(kind) as caught:
        attempt()
    (message,) = caught.value.messages
    assert "\n" not in message
    return message


def refusal_of(kind: type[Exception], attempt: Callable[[], object]) -> str:
    """Return the message, in one line, of the wrong argument that `attempt` ends with."""
    with pytest.raises(kind) as caught:
        attempt()
    assert type(caught.value) is kind
    assert "\n" not in str(caught.value)
    return str(caught.value)
