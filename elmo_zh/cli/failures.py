"""The one place where failures of libraries and of the system become messages."""

import errno

from elmo_zh.errors import ElmoZhError

_NO_ROOM = (
    "There is no room left on the disk{where}. Make room and type the same command again;"
    " finished stages and checkpoints are kept."
)
_NO_MEMORY = (
    "There is not enough memory ({detail}). Lower train.batch_size, model.cell_dim, vocab.size or embed.batch_tokens."
)


def explain_failure(error: Exception) -> list[str] | None:
    """Return one line for each known problem, or None for a defect of ours, whose traceback is wanted."""
    if isinstance(error, ElmoZhError):
        return list(error.messages)
    text = " ".join(str(error).split())
    if _is_no_room(error, text):
        where = f" ({error.filename})" if isinstance(error, OSError) and error.filename else ""
        return [_NO_ROOM.format(where=where)]
    if isinstance(error, MemoryError) or "out of memory" in text or "can't allocate memory" in text:
        return [_NO_MEMORY.format(detail=text[:200] or "MemoryError")]
    if isinstance(error, OSError):
        name = f"{error.filename}: " if error.filename else ""
        return [f"{name}{error.strerror or text}. Check the path and its permissions."]
    return None


def _is_no_room(error: Exception, text: str) -> bool:
    """Recognise a full disk, which HDF5 and safetensors report in words only."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return True
    return any(sign in text for sign in ("errno = 28", "os error 28", "No space left on device"))
