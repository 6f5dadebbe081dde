"""Messages stay one line each."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from contract.command_line import elmo_zh, succeed

from elmo_zh.cli.console import one_line
from elmo_zh.cli.failures import explain_failure


def test_what_is_escaped() -> None:
    assert one_line("甲\u3000乙 a\tb\nc\r\x1b[2J\u2028\udcff\ue000") == (
        "甲\u3000乙 a\\tb\\nc\\r\\x1b[2J\\u2028\\udcff\ue000"
    )


@pytest.mark.usefixtures("empty_folder")
@pytest.mark.parametrize("command", [("info",), ("plan",)])
def test_a_name_with_a_line_feed(command: tuple[str, ...]) -> None:
    assert "a\\nb" in elmo_zh(*command, "a\nb").only_error()


@pytest.mark.usefixtures("empty_folder")
def test_two_lines_of_one_name() -> None:
    Path("a\nb.txt").write_text("今天下雨。\n", encoding="utf-8")
    answer = succeed("segment", "a\nb.txt", "--run", "run\nn", "--set", "text.segmenter=character")
    assert all(line.startswith(("segment: ", "Warning: ", "Next: ")) for line in answer.stderr.splitlines())


@pytest.mark.parametrize(
    ("arguments", "status"),
    [("--run run 2>&-", 0), ("nothing.txt --run run 2>&-", 1), ("--run run 2>/dev/full", 1)],
)
def test_messages_that_cannot_be_written(empty_folder: Path, arguments: str, status: int) -> None:
    """A closed stream hides messages; a full disk is an error there as anywhere."""
    Path("a.txt").write_text("今天下雨。\n" * 7, encoding="utf-8")
    command = f"{sys.executable} -m elmo_zh segment a.txt --json --set text.segmenter=character {arguments}"
    done = subprocess.run(command, shell=True, cwd=empty_folder, stdout=subprocess.PIPE, encoding="utf-8")
    assert done.returncode == status
    assert done.stdout.startswith('{"') == (status == 0)


# Errors of the system and of libraries, with the advice that fits


NO_PROCESSES = (
    f"No more processes or threads can be started ({os.strerror(errno.EAGAIN)}). Close other programs, raise the limit"
    " (ulimit -u), or lower text.num_workers and train.num_threads."
)
NO_MEMORY = (
    f"There is not enough memory ({os.strerror(errno.ENOMEM)}). Put each paragraph on a line of its own, lower"
    " embed.batch_tokens, or process less text."
)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(errno.ENOMEM, "Cannot allocate memory"), NO_MEMORY),
        (OSError(errno.ENOMEM, "Cannot allocate memory", "weights.hdf5"), NO_MEMORY),
        (BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"), NO_PROCESSES),
        (RuntimeError("can't start new thread"), NO_PROCESSES),
        (
            OSError(errno.EACCES, "Permission denied", "x"),
            f"x: {os.strerror(errno.EACCES)}. Check the path, its permissions and the disk.",
        ),
    ],
)
def test_the_advice_fits_the_error(error: Exception, told: str) -> None:
    assert explain_failure(error) == [told]


@pytest.mark.parametrize(
    ("command", "advice"),
    [
        ("train", "Lower train.batch_size, model.cell_dim or vocab.size."),
        ("segment", "Lower text.num_workers."),
        ("score", "Put each paragraph on a line of its own, lower embed.batch_tokens, or process less text."),
    ],
)
def test_advice_against_lack_of_memory_fits_the_command(command: str, advice: str) -> None:
    assert explain_failure(MemoryError("x"), command) == [f"There is not enough memory (x). {advice}"]


def test_a_bug_is_no_known_problem() -> None:
    assert explain_failure(RuntimeError("what is this")) is None
