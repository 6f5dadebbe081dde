"""How the C library gives memory back."""

import ctypes

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
