"""Time loops compiled by TorchScript."""

import functools
import threading
import warnings
from collections.abc import Callable
from typing import Any

import torch

_lock = threading.Lock()


def scripted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function compiled by TorchScript, or as it is where that is not to be had any more.

    A time loop is hundreds of short operations. Compiled, it runs without Python's lock, so that two directions on two
    threads do not keep each other waiting: an eighth of a training step. torch calls TorchScript deprecated, but its
    successor needs a C++ compiler on the machine.
    """
    # Both directions ask for it at once: it is compiled once, and no other thread's warnings are changed meanwhile.
    with _lock:
        return _compile(function)


@functools.cache
def _compile(function: Callable[..., Any]) -> Callable[..., Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            compiled: Callable[..., Any] = torch.jit.script(function)
        except (AttributeError, RuntimeError):
            return function
    return compiled
