"""What the OpenMP threads of torch do between two operations."""

import os
from collections.abc import MutableMapping

# Rounds: some tenths of a millisecond, longer than most operations take and shorter than a time loop.
_SPIN_COUNT = "20000"
_SETTINGS = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")


def let_idle_threads_sleep(environment: MutableMapping[str, str] = os.environ) -> None:
    """Let a thread that has nothing to do go to sleep soon; to be called before torch is imported.

    By itself GNU's OpenMP lets it turn round in circles for milliseconds, on the very core on which the second
    direction works (`model.side_by_side`): a tenth of the time of a large model, almost half of a small one. What the
    user has set in the environment stays.
    """
    if not any(name in environment for name in _SETTINGS):
        environment["GOMP_SPINCOUNT"] = _SPIN_COUNT
