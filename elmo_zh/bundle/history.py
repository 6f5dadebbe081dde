"""History of a model: the corpus, the run and the date of its training.

It is in a file of its own without a digest, since the date would make every bundle of the same weights different.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from elmo_zh.errors import BundleError
from elmo_zh.run.files import read_json

_MOST_NAMES = 3


@dataclass(frozen=True, kw_only=True)
class History:
    """The history of a model that its bundle records; empty values mean unknown.

    Attributes:
        run: Name of the run.
        corpus: Names of the first sources of the corpus.
        num_sources: Number of sources.
        trained_at: End of the training, in ISO 8601.
    """

    run: str = ""
    corpus: Sequence[str] = ()
    num_sources: int = 0
    trained_at: str = ""

    @classmethod
    def of(cls, run: str, sources: Sequence[str], trained_at: str) -> "History":
        """Return the history of a run, with the first sources in the order of their names."""
        names = tuple(sorted(sources)[:_MOST_NAMES])
        return cls(run=run, corpus=names, num_sources=len(sources), trained_at=trained_at)


UNKNOWN_HISTORY = History()


def load_history(path: Path) -> History:
    """Load a history file, or return an unknown history if it is missing, as in older and converted bundles.

    Raises:
        BundleError: If the file is damaged.
    """
    if not path.is_file():
        return UNKNOWN_HISTORY
    try:
        history = History(**read_json(path))
        if history.trained_at:
            datetime.fromisoformat(history.trained_at)
        if not isinstance(history.corpus, list) or not all(isinstance(name, str) for name in history.corpus):
            raise TypeError("corpus is not a list of names")
        if not isinstance(history.run, str) or type(history.num_sources) is not int:
            raise TypeError("run is not a name, or num_sources not a number")
    except (ValueError, TypeError) as error:
        raise BundleError(f"{path} is damaged ({error}). Export the bundle again, or remove this file.") from None
    return history
