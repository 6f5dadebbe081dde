"""Messages stay one line each."""

import errno

import pytest

from elmo_zh.cli.console import explain_failure, one_line


def test_what_is_escaped() -> None:
    assert one_line("甲\u3000乙 a\tb\nc\r\x1b[2J\u2028\udcff\ue000") == (
        "甲\u3000乙 a\\tb\\nc\\r\\x1b[2J\\u2028\\udcff\ue000"
    )


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
