"""The known problems. Each message is one line: what, where, found and expected, and what to do next."""


class ElmoZhError(Exception):
    """A problem that the user can do something about; carries one or more one-line messages."""

    def __init__(self, *messages: str) -> None:
        super().__init__("\n".join(messages))
        self.messages = messages


class ConfigError(ElmoZhError):
    """A setting is unknown, of the wrong type or out of range."""


class CorpusError(ElmoZhError):
    """The text that was given cannot be read or holds nothing to read."""


class RunError(ElmoZhError):
    """A run folder lacks something, or holds something that does not fit what is asked."""


class BundleError(ElmoZhError):
    """A model bundle is missing, damaged or not what it says it is."""


class OutputError(ElmoZhError):
    """An output exists already or cannot be written."""


class ClusterError(ElmoZhError):
    """The workers that tasks were to run on are not there, die, or do not see what they need."""
