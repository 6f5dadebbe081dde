"""The one place where exceptions of libraries and of the system become error messages."""

import errno
import os

import click

from elmo_zh.config.load import sections_with
from elmo_zh.errors import ElmoZhError
from elmo_zh.invocation import explain_missing
from elmo_zh.run.disk_space import ADVICE, is_full_disk, system_error_number

_COMMANDS_WITH_SETTINGS = ("plan", "segment", "vocab", "word2vec", "encode", "train", "pipeline")
# Settings that are options of other commands under another name.
_SETTINGS_OF_OPTIONS = {"--segmented": "text.segmenter=whitespace"}

_MEMORY_ADVICE = {
    **dict.fromkeys(("train", "pipeline"), "Lower train.batch_size, model.cell_dim or vocab.size."),
    **dict.fromkeys(("plan", "segment", "vocab", "encode"), "Lower text.num_workers."),
}
_USE_LESS = "Put each paragraph on a line of its own, lower embed.batch_tokens, or process less text."


def explain_failure(error: Exception, command: str = "") -> list[str] | None:
    """Return the messages for a known problem in a command, or None for a bug, which needs its traceback."""
    if isinstance(error, ElmoZhError):
        return list(error.messages)
    if isinstance(error, ImportError) and (message := explain_missing(error, command)):
        return [message]
    text = " ".join(str(error).split())
    number = system_error_number(error)
    filename = error.filename if isinstance(error, OSError) else None
    if is_full_disk(error):
        return [f"The disk is full{f' ({filename})' if filename else ''}. {ADVICE}"]
    if number == errno.ENAMETOOLONG:
        return [
            f"{filename}: the name is too long. Give a shorter one: up to 20 bytes are added to the name while"
            " the file is being written."
        ]
    if number == errno.ENOMEM:
        return [_no_memory(os.strerror(number), command)]
    if (number == errno.EAGAIN and not filename) or "can't start new thread" in text:
        return [
            f"No more processes or threads can be started ({os.strerror(errno.EAGAIN)}). Close other programs, raise"
            " the limit (ulimit -u), or lower text.num_workers and train.num_threads."
        ]
    if isinstance(error, MemoryError) or "out of memory" in text or "can't allocate memory" in text:
        return [_no_memory(text[:200] or "MemoryError", command)]
    if number or isinstance(error, OSError):
        what = os.strerror(number) if number else text
        return [f"{f'{filename}: ' if filename else ''}{what}. Check the path, its permissions and the disk."]
    return None


def _no_memory(detail: str, command: str) -> str:
    return f"There is not enough memory ({detail}). {_MEMORY_ADVICE.get(command, _USE_LESS)}"


def with_advice(error: click.UsageError) -> click.UsageError:
    """Return a usage error that names the argument or the setting that the user probably meant by an unknown option."""
    context = error.ctx
    if not isinstance(error, click.NoSuchOption) or context is None:
        return error
    for argument in context.command.params:
        shown = (argument.metavar or argument.name or "").strip("[].").upper()
        if isinstance(argument, click.Argument) and shown == error.option_name.lstrip("-").upper():
            return click.UsageError(f"{error.message} {shown} is an argument: give it without --.", context)
    if context.info_name in _COMMANDS_WITH_SETTINGS:
        setting = _SETTINGS_OF_OPTIONS.get(error.option_name)
        key = error.option_name.lstrip("-").replace("-", "_")
        if named := [setting] if setting else [f"{section}.{key}=VALUE" for section in sections_with(key)]:
            return click.UsageError(f"{error.message} Use the setting: --set {' or --set '.join(named)}", context)
    if error.possibilities:
        close = ", ".join(sorted(error.possibilities))
        return click.UsageError(f"No such option {error.option_name!r}. Did you mean {close}?", context)
    return error
