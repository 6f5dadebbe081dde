"""Recognise full disks from the errors of the system and of libraries, and name the output that did not fit."""

import errno
import re
import shutil
from pathlib import Path

from elmo_zh.errors import FullDiskError, OutputError
from elmo_zh.language import N_, _
from elmo_zh.run.reporter import Reporter, format_bytes

ADVICE = N_(
    "Free some space and run the same command again, without --force; finished stages and checkpoints are kept."
)
# HDF5 (OSError or RuntimeError), safetensors (SafetensorError) and torch, which maps files (RuntimeError: "unable to
# open file <...> in read-only mode: Input/output error (5)"), give the system's error number only in their text.
_NUMBER_IN_TEXT = re.compile(r"(?:os error |errno = |unable to (?:open|mmap) .*: .*\()(\d+)")
# An output certainly needs at least this fraction of the estimated space.
_CERTAIN_FRACTION = 0.5


def system_error_number(error: Exception) -> int | None:
    """Return the system error number that an exception carries or mentions in its text."""
    if isinstance(error, OSError) and error.errno:
        return error.errno
    match = _NUMBER_IN_TEXT.search(" ".join(str(error).split()))
    return int(match[1]) if match else None


def is_full_disk(error: Exception) -> bool:
    """Return whether an exception says that the disk, or the user's quota on it, is full."""
    return isinstance(error, FullDiskError) or system_error_number(error) in (errno.ENOSPC, errno.EDQUOT)


def full_disk_error(path: Path, written_bytes: int) -> FullDiskError:
    """Return the error for an output that does not fit on its disk, or into the user's quota on it."""
    message = _("The disk is full: no space is left for {path} after {size}. {advice}")
    return FullDiskError(message.format(path=path, size=format_bytes(written_bytes), advice=_(ADVICE)))


def require_disk_space(
    output: Path,
    needed_bytes: float,
    *,
    is_exact: bool = True,
    reporter: Reporter | None = None,
    advice: str = "",
) -> str:
    """Return a message on the disk space needed and free; raise OutputError if too little is free.

    Unless `is_exact`, `needed_bytes` is an estimate: half of it must be free, and `reporter` warns if not all of it is.
    `advice` names options that make the output smaller.
    """
    folder = next(folder for folder in output.absolute().parents if folder.is_dir())
    free = shutil.disk_usage(folder).free
    sizes = {"needed": format_bytes(needed_bytes), "free": format_bytes(free)}
    missing = _("{path} needs {needed} of disk space, but only {free} is free.").format(path=output, **sizes)
    if needed_bytes * (1 if is_exact else _CERTAIN_FRACTION) > free:
        step = _("Free some space, or write less: {advice}.") if advice else _("Free some space, or use another disk.")
        raise OutputError(f"{missing} {step.format(advice=advice)}")
    if reporter and needed_bytes > free:
        reporter.warn(missing)
    return _("{needed} of disk space needed, {free} free").format(**sizes)
