"""A lock that does not hang in a forked process."""

import os
import threading
import weakref


class ForkSafeLock:
    """A reentrant lock, free in a forked process even if another thread held it when the process was forked.

    A forked process has only the thread that forked, so nobody would ever release such a lock there.
    """

    def __init__(self, owner: object, *made_when_needed: str) -> None:
        """Create a lock.

        Args:
            owner: The object that the lock protects.
            made_when_needed: Attributes of it that are None until they are needed. They become None again in a forked
                process if another thread held the lock, since that thread may have been changing them.
        """
        self._lock = threading.RLock()
        self._owner, self._made_when_needed = weakref.ref(owner), made_when_needed
        _locks.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def free_in_child(self) -> None:
        """Free the lock in a forked process."""
        if self._lock.acquire(blocking=False):
            self._lock.release()
            return
        self._lock = threading.RLock()
        if owner := self._owner():
            for name in self._made_when_needed:
                setattr(owner, name, None)


_locks: "weakref.WeakSet[ForkSafeLock]" = weakref.WeakSet()


def _free_locks() -> None:
    for lock in _locks:
        lock.free_in_child()


os.register_at_fork(after_in_child=_free_locks)
