"""Errors that the user can fix. Each message is one line: what, where, found versus expected, and the next step."""


class ElmoZhError(Exception):
    """A problem that the user can fix; carries one or more one-line messages."""

    def __init__(self, *messages: str) -> None:
        super().__init__("\n".join(messages))
        self.messages = messages


class ConfigError(ElmoZhError):
    """A setting is unknown, has the wrong type or is out of range."""


class OptionError(ConfigError):
    """A command-line option has an invalid value, or two options contradict each other."""


class CorpusError(ElmoZhError):
    """The given text cannot be read, or contains nothing to read."""


class RunError(ElmoZhError):
    """A file in a run folder is missing, or does not match what the command needs."""


class BundleError(ElmoZhError):
    """A model bundle is missing or damaged, or its files do not match its description."""


class OutputError(ElmoZhError):
    """An output already exists or cannot be written."""


class FullDiskError(OutputError):
    """An output does not fit on its disk; the same command resumes once there is space."""


class ClusterError(ElmoZhError):
    """A cluster's workers are missing, have died, or cannot see the files that they need."""
