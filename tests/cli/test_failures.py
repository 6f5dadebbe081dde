"""Errors of the system and of libraries, each in one line with the advice that fits."""

import errno
import os

import pytest

from elmo_zh.cli.failures import explain_failure

NO_PROCESSES = (
    f"No more processes or threads can be started ({os.strerror(errno.EAGAIN)}). End other programs, raise the limit"
    " (ulimit -u), or lower text.num_workers and train.num_threads."
)
NO_MEMORY = (
    f"There is not enough memory ({os.strerror(errno.ENOMEM)}). Lower train.batch_size, model.cell_dim, vocab.size or"
    " embed.batch_tokens."
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


def test_a_bug_is_no_known_problem() -> None:
    assert explain_failure(RuntimeError("what is this")) is None
