"""Whether a file is still what it was."""

from dataclasses import dataclass

from elmo_zh.corpus.sources import Source
from elmo_zh.errors import CorpusError


@dataclass(frozen=True, kw_only=True)
class Stamp:
    """What changes when a file does, without reading it."""

    num_bytes: int
    modified_ns: int

    @classmethod
    def of(cls, source: Source) -> "Stamp":
        """Return that of a source.

        Raises:
            CorpusError: If it is gone.
        """
        try:
            status = source.path.stat()
        except FileNotFoundError:
            raise CorpusError(f"{source.name} is gone. Type the command again without it, or put it back.") from None
        return cls(num_bytes=status.st_size, modified_ns=status.st_mtime_ns)

    def require(self, source: Source) -> None:
        """Raise CorpusError if the source's file has another stamp by now, or is gone."""
        if Stamp.of(source) != self:
            raise changed_error(source.name)


def changed_error(name: str) -> CorpusError:
    """Return the error for a file that is not what it was when its reading began."""
    return CorpusError(f"{name} changed while it was read. Type the command again when nothing writes it any more.")
