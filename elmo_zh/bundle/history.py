"""Where a model comes from: the corpus, the run and the date, as its bundle records them, and the line that says so.

They are in a file of their own without a digest, since the date would make every bundle of the same weights different.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmo_zh.errors import BundleError
from elmo_zh.run.reporter import counted

if TYPE_CHECKING:
    from elmo_zh.bundle.read import Bundle

_MOST_NAMES = 3
OWN_PROGRAM = "elmo-zh"


@dataclass(frozen=True, kw_only=True)
class History:
    """What a bundle records of its training, besides the figures; empty values are unknown.

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
    """Return the history in a file; an unknown one if there is none, as in older and converted bundles.

    Raises:
        BundleError: If the file is damaged.
    """
    if not path.is_file():
        return UNKNOWN_HISTORY
    try:
        history = History(**json.loads(path.read_text(encoding="utf-8")))
        if history.trained_at:
            datetime.fromisoformat(history.trained_at)
        if not all(isinstance(name, str) for name in history.corpus):
            raise TypeError("corpus is no list of names")
    except (ValueError, TypeError) as error:
        raise BundleError(f"{path} is damaged ({error}). Export the bundle again, or remove this file.") from None
    return history


def describe_model(bundle: "Bundle") -> dict[str, Any]:
    """Return which model this is: path, digest, program, run, corpus, number of training tokens, date."""
    return {
        "path": str(bundle.path),
        "digest": bundle.digest,
        "made_by": bundle.info["origin"].get("program", OWN_PROGRAM),
        "train_tokens": bundle.info["training"].get("train_tokens"),
        **asdict(bundle.history),
    }


def model_line(bundle: "Bundle") -> str:
    """Return the line that says which model a command uses."""
    found = describe_model(bundle)
    path = bundle.path
    place = f"{path} ({_shown(path.resolve())})" if path.resolve() != path.absolute() else f"{path}"
    if found["made_by"] != OWN_PROGRAM:
        return f"Model: {place}, converted from {found['made_by']}."
    return f"Model: {place}, {_describe_training(found, bundle.history)}."


def _describe_training(found: Mapping[str, Any], history: History) -> str:
    tokens = found["train_tokens"]
    amount = counted(tokens, "token") if isinstance(tokens, int) else ""
    if history.corpus:
        more = history.num_sources - 1
        corpus = history.corpus[0] + (f" and {counted(more, 'other source')}" if more else "")
        text = f"{corpus} ({amount})" if amount else corpus
    else:
        text = amount or "an unknown text"
    date = f", {local_date(history.trained_at)}" if history.trained_at else ""
    return f"trained on {text}{date}"


def local_date(moment: str) -> str:
    """Return the local date and time of a moment in ISO 8601, such as 2026-11-22 16:18."""
    return datetime.fromisoformat(moment).astimezone().strftime("%Y-%m-%d %H:%M")


def _shown(path: Path) -> str:
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
