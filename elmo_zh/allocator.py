"""How the C library gives memory back, and how much oneDNN keeps."""

import ctypes
import os

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


def keep_few_kernels() -> None:
    """Let oneDNN, and what torch puts around it, keep few of the kernels that they make for every shape of a product.

    Sentences packed together make hundreds of shapes, and a thousand kernels of each kind are kept by default: half a
    gigabyte that a long text slowly fills. Made anew they cost no time that could be measured. Works only before torch
    is imported; a user's own settings stay.
    """
    for name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
        os.environ.setdefault(name, "64")
