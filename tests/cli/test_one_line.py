"""Messages stay one line each."""

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from elmo_zh.cli.console import explain_failure, one_line


def test_what_is_escaped() -> None:
    assert one_line("甲\u3000乙 a\tb\nc\r\x1b[2J\u2028\udcff\ue000") == (
        "甲\u3000乙 a\\tb\\nc\\r\\x1b[2J\\u2028\\udcff\ue000"
    )


@pytest.mark.parametrize(
    ("arguments", "status"),
    [("--run run 2>&-", 0), ("nothing.txt --run run 2>&-", 1), ("--run run 2>/dev/full", 1)],
)
def test_messages_that_cannot_be_written(tmp_path: Path, arguments: str, status: int) -> None:
    """A closed stream hides messages; a full disk is an error there as anywhere."""
    Path("a.txt").write_text("今天下雨。\n" * 7, encoding="utf-8")
    command = f"{sys.executable} -m elmo_zh segment a.txt --json --set text.segmenter=character {arguments}"
    done = subprocess.run(command, shell=True, cwd=tmp_path, stdout=subprocess.PIPE, encoding="utf-8")
    assert done.returncode == status
    assert done.stdout.startswith('{"') == (status == 0)


@pytest.mark.parametrize(
    ("error", "command", "advice"),
    [
        (OSError(errno.ENOMEM, "Cannot allocate memory", "weights.hdf5"), "", "embed.batch_tokens"),
        (OSError(errno.EACCES, "Permission denied", "x"), "", "Check the path, its permissions and the disk"),
        (MemoryError("x"), "train", "train.batch_size"),
    ],
)
def test_the_advice_fits_the_error_and_the_command(error: Exception, command: str, advice: str) -> None:
    [told] = explain_failure(error, command) or []
    assert advice in told
