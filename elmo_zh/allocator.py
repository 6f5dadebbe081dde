"""Process-wide settings for memory allocation, oneDNN's caches and idle threads; the peak memory of the process."""

import ctypes
import os
import sys
from collections.abc import MutableMapping

# From glibc's malloc.h.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_GIGABYTE = 2**30


def keep_freed_memory() -> None:
    """Have glibc keep freed memory, since requesting it from the kernel again slows down training.

    Other C libraries are left as they are.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _GIGABYTE)
        mallopt(_M_TRIM_THRESHOLD, _GIGABYTE)


def peak_memory_bytes() -> int:
    """Return the peak memory of this process in bytes."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def keep_few_kernels() -> None:
    """Limit oneDNN's caches, which can grow to half a gigabyte. Call this before torch is imported.

    Limits that the environment already sets are kept.
    """
    for name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
        os.environ.setdefault(name, "64")


# Iterations of the spin loop: a few tenths of a millisecond, longer than most operations, shorter than a loop over
# time steps.
_SPIN_COUNT = "20000"
_SETTINGS = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")


def let_idle_threads_sleep(environment: MutableMapping[str, str] = os.environ) -> None:
    """Make idle OpenMP threads go to sleep sooner. Call this before torch is imported.

    By default, an idle thread of GNU OpenMP spins for milliseconds on a core that the other LM needs
    (`kernels.execution`). That slows down training, especially of small models. Nothing
    changes if the environment already sets GOMP_SPINCOUNT or OMP_WAIT_POLICY.
    """
    if not any(name in environment for name in _SETTINGS):
        environment["GOMP_SPINCOUNT"] = _SPIN_COUNT
