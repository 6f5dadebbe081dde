"""metrics.jsonl, also after something else has written into it."""

from pathlib import Path

import pytest
from messages import message_of

from elmo_zh.errors import RunError
from elmo_zh.training.checkpoint import MetricsFile


@pytest.fixture
def metrics(tmp_path: Path) -> MetricsFile:
    metrics = MetricsFile(tmp_path / "metrics.jsonl")
    for step in (3, 5):
        metrics.append(step=step, train_loss=7.5)
    return metrics


def test_a_last_line_that_is_not_finished_is_ignored(metrics: MetricsFile) -> None:
    with metrics.path.open("ab") as file:
        file.write(b'{"step": 7, "train_loss": "\xe4\xbb')
    assert [line["step"] for line in metrics.lines()] == [3, 5]
    metrics.cut_after(3)
    assert [line["step"] for line in metrics.lines()] == [3]


@pytest.mark.parametrize(
    "line", [b"\xff\n", b'{"step": 7\n', b"[7]\n", b"7\n", b'{"train_loss": 7.5}\n', b'{"step": ""}\n']
)
def test_a_damaged_line(metrics: MetricsFile, line: bytes) -> None:
    with metrics.path.open("ab") as file:
        file.write(line)
    for attempt in (metrics.lines, lambda: metrics.cut_after(3), lambda: metrics.discard(step=3)):
        assert message_of(RunError, attempt).startswith(f"{metrics.path}:3 is damaged (line 3: ")
