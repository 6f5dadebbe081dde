"""The one place where exceptions of libraries and of the system become error messages."""

import errno
import os
import re

import click

from elmo_zh.config.load import name_here, sections_with
from elmo_zh.errors import ElmoZhError
from elmo_zh.invocation import explain_missing
from elmo_zh.language import N_, _
from elmo_zh.run.disk_space import ADVICE, is_full_disk, system_error_number

_COMMANDS_WITH_SETTINGS = ("plan", "segment", "vocab", "word2vec", "encode", "train", "pipeline")
# Settings that are options of other commands under another name.
_SETTINGS_OF_OPTIONS = {"--segmented": "text.segmenter=whitespace"}

_MEMORY_ADVICE = {
    **dict.fromkeys(("train", "pipeline"), N_("Lower train.batch_size, model.cell_dim or vocab.size.")),
    **dict.fromkeys(("plan", "segment", "vocab", "encode"), N_("Lower text.num_workers.")),
}
_USE_LESS = N_("Put each paragraph on a line of its own, lower embed.batch_tokens, or process less text.")
# What the system says (os.strerror), for the catalogue.
_OF_THE_SYSTEM = (
    *(N_("No such file or directory"), N_("Permission denied"), N_("Operation not permitted"), N_("File too large")),
    *(N_("Is a directory"), N_("Not a directory"), N_("Read-only file system"), N_("No space left on device")),
    *(N_("Disk quota exceeded"), N_("Input/output error"), N_("Too many open files"), N_("Address already in use")),
    *(N_("Cannot allocate memory"), N_("Resource temporarily unavailable")),
)


def explain_failure(error: Exception, command: str = "") -> list[str] | None:
    """Return the messages for a known problem in a command, or None for a bug, which needs its traceback."""
    if isinstance(error, ElmoZhError):
        return list(error.messages)
    if isinstance(error, ImportError) and (message := explain_missing(error, command)):
        return [message]
    text = " ".join(str(error).split())
    number = system_error_number(error)
    filename = error.filename if isinstance(error, OSError) else None
    system = _(os.strerror(number)) if number else text
    place = f"{filename}: " if filename else ""
    if is_full_disk(error):
        return [_("{place}The disk is full. {ADVICE}").format(place=place, ADVICE=_(ADVICE))]
    if number == errno.ENAMETOOLONG:
        return [_("{filename}: the name is too long. Give one that is 20 bytes shorter.").format(filename=filename)]
    if (number == errno.EAGAIN and not filename) or "can't start new thread" in text:
        return [
            _(
                "No more processes or threads can be started. Close other programs, raise the limit (ulimit -u), or"
                " lower text.num_workers and train.num_threads."
            )
        ]
    if number == errno.ENOMEM or isinstance(error, MemoryError) or re.search("out of memory|t allocate memory", text):
        advice = _(_MEMORY_ADVICE.get(command, _USE_LESS))
        detail = system[:200] or "MemoryError"
        return [_("There is not enough memory ({detail}). {advice}").format(detail=detail, advice=advice)]
    if number or isinstance(error, OSError):
        return [_("{place}{system}. Check the path, its permissions and the disk.").format(place=place, system=system)]
    return None


def with_advice(error: click.UsageError) -> click.UsageError:
    """Return a usage error that names the argument or the setting that the user probably meant by an unknown option."""
    context = error.ctx
    if not isinstance(error, click.NoSuchOption) or context is None:
        return error
    for argument in context.command.params:
        shown = (argument.metavar or argument.name or "").strip("[].").upper()
        if isinstance(argument, click.Argument) and shown == error.option_name.lstrip("-").upper():
            advice = _("{shown} is an argument: give it without --.").format(shown=shown)
            return click.UsageError(f"{error.message} {advice}", context)
    if context.info_name in _COMMANDS_WITH_SETTINGS:
        setting = _SETTINGS_OF_OPTIONS.get(error.option_name)
        key = error.option_name.lstrip("-").replace("-", "_")
        if named := [setting] if setting else [f"{section}.{key}=VALUE" for section in sections_with(key)]:
            advice = _("Use the setting: --set {setting}").format(setting=", --set ".join(named))
            return click.UsageError(f"{error.message} {advice}", context)
        if advice := name_here(key):
            return click.UsageError(f"{error.message} {advice}", context)
    return error
