"""Errors that the user can fix. A message is one line: what is wrong and where, and usually the next step."""

from typing import Self

from elmo_zh.language import N_, _


class ElmoZhError(Exception):
    """A problem that the user can fix; carries one or more one-line messages."""

    def __init__(self, *messages: str) -> None:
        super().__init__("\n".join(messages))
        self.messages = messages

    @classmethod
    def damaged(cls, path: object, reason: object, again: str = "") -> Self:
        """Return the error for a damaged file; `again` is the command that writes it, if there is one."""
        message = _("{path} is damaged ({reason}). Copy it again, or recreate it.")
        if again:
            message = _("{path} is damaged ({reason}). Recreate it with: {command}")
        shown = " ".join(str(reason).split())
        return cls(message.format(path=path, reason=shown, command=again))

    @classmethod
    def unusable(cls, path: object, reason: object) -> Self:
        """Return the error for a damaged file, folder or line that the command can do without."""
        message = _("{path} is damaged ({reason}). Delete it, and run the command again.")
        return cls(message.format(path=path, reason=" ".join(str(reason).split())))

    @classmethod
    def missing(cls, path: object, again: str = "") -> Self:
        """Return the error for a missing file; `again` is the command that writes it, if there is one."""
        message = _("{path} is missing. Check the path; if it is right, copy or recreate the file.")
        if again:
            message = _("{path} is missing. Create it with: {command}")
        return cls(message.format(path=path, command=again))

    @classmethod
    def unfit(cls, path: object, other: object, again: str) -> Self:
        """Return the error for a file that does not match `other`, a file or a setting; `again` writes the file."""
        message = _("{path} does not match {other}. Recreate it with: {command}")
        return cls(message.format(path=path, other=other, command=again))

    @classmethod
    def unexpected(cls, given: object, allowed: object) -> Self:
        """Return the error for a value that is not allowed."""
        return cls(_("{value}; expected {allowed}.").format(value=given, allowed=allowed))

    @classmethod
    def needs(cls, value: object, other: object) -> Self:
        """Return the error for a setting or an option that only works with another one."""
        return cls(_("{value} needs {other}.").format(value=value, other=other))

    @classmethod
    def of_format(cls, path: object, number: object) -> Self:
        """Return the error for a file in the format of another version."""
        message = _(
            "{path} has format {format}, which this version of elmo-zh cannot read. Update elmo-zh, or write {path}"
            " again."
        )
        return cls(message.format(path=path, format=number))


# The reason why a file is damaged: what it is made of is not what is recorded in another file.
OTHER_DIGEST = N_("its digest differs from the one in {name}")
# For a setting or an option that has no effect, with the command, setting or option that is the reason.
NO_EFFECT = N_("{name} has no effect with {other}.")


class ConfigError(ElmoZhError):
    """A setting or an option is unknown, or its value is invalid."""


class OptionError(ConfigError):
    """A command-line option is invalid, contradicts another one, or needs one that is missing."""

    @classmethod
    def together(cls, option: str, other: str) -> Self:
        """Return the error for two options that contradict each other."""
        message = _("{option} and {other} cannot be combined. Leave out one of them.")
        return cls(message.format(option=option, other=other))


class CorpusError(ElmoZhError):
    """The given texts or data cannot be read or used."""

    @classmethod
    def no_text(cls, names: object) -> Self:
        """Return the error for texts, given by name, that contain nothing to read."""
        return cls(_("{names}: no text found. Use files that contain text.").format(names=names))


INSIDE_RUN = N_("{path} is inside {run}, and a run cannot start from its own files. Choose another --run.")


class RunError(ElmoZhError):
    """A run or a task cannot be used or continued, for example because a file is missing or damaged."""


class BundleError(ElmoZhError):
    """A model is missing, damaged or not the expected one, or lacks what the command needs."""


class OutputError(ElmoZhError):
    """An output already exists or cannot be written, or an earlier output is missing or damaged."""


class FullDiskError(OutputError):
    """An output does not fit on its disk."""


class ClusterError(ElmoZhError):
    """Workers on this machine or in a cluster are missing, have died, or cannot see the files that they need."""
