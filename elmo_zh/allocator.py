"""How the C library gives memory back, and how much oneDNN keeps."""

import ctypes
import os
import sys
from collections.abc import MutableMapping

# From glibc's malloc.h.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_GIGABYTE = 2**30


def keep_freed_memory() -> None:
    """Let glibc keep freed blocks of up to a gigabyte for the next step instead of returning each to the kernel.

    Every training step takes and frees the same large tensors, and fetching their pages from the kernel anew each
    time costs a good part of the step. Does nothing where the C library has no mallopt.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _GIGABYTE)
        mallopt(_M_TRIM_THRESHOLD, _GIGABYTE)


def peak_memory_bytes() -> int:
    """Return the bytes of memory that this process has taken at most; 0 on Windows, which does not count them so."""
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def keep_few_kernels() -> None:
    """Let oneDNN, and what torch puts around it, keep few of the kernels that they make for every shape of a product.

    Sentences packed together make hundreds of shapes, and a thousand kernels of each kind are kept by default: half a
    gigabyte that a long text slowly fills. Made anew they cost no time that could be measured. Works only before torch
    is imported; a user's own settings stay.
    """
    for name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
        os.environ.setdefault(name, "64")


# Rounds: some tenths of a millisecond, longer than most operations take and shorter than a time loop.
_SPIN_COUNT = "20000"
_SETTINGS = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")


def let_idle_threads_sleep(environment: MutableMapping[str, str] = os.environ) -> None:
    """Let a thread that has nothing to do go to sleep soon; to be called before torch is imported.

    By itself GNU's OpenMP lets it turn round in circles for milliseconds, on the very core on which the second
    direction works (`kernels.side_by_side`): a tenth of the time of a large model, almost half of a small one. What the
    user has set in the environment stays.
    """
    if not any(name in environment for name in _SETTINGS):
        environment["GOMP_SPINCOUNT"] = _SPIN_COUNT
