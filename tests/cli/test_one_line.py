"""Messages stay one line each."""

import errno

import pytest

from elmo_zh.cli.console import explain_failure


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
