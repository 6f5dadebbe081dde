"""Convert models of other programs into bundles, and bundles into other layouts.

This module declares the options of a conversion, and does not import torch.
"""

from dataclasses import dataclass
from pathlib import Path

from elmo_zh.config import TextConfig
from elmo_zh.config.declare import declare
from elmo_zh.language import N_

_FILE = {"dir_okay": False}
_INSTEAD = N_("File to use instead of the one that is found in SOURCE.")


@dataclass(frozen=True, kw_only=True)
class Conversion:
    """The options of a conversion."""

    options: Path | None = declare(None, _INSTEAD, path=_FILE, metavar="FILE")
    weights: Path | None = declare(None, _INSTEAD, path=_FILE, metavar="FILE")
    vocab: Path | None = declare(None, _INSTEAD, path=_FILE, metavar="FILE")
    token_embeddings: Path | None = declare(None, _INSTEAD, names=("--embedding",), path=_FILE, metavar="FILE")
    warm_on: Path | None = declare(
        None,
        "Text from which to compute a warm state (the mean state at the ends of sentences).",
        path=_FILE,
        metavar="TEXT",
    )
    segmented: bool = declare(
        False, "The text is already segmented: one sentence per line, with a single space between tokens."
    )
    straight_marks: bool = declare(
        False, "Do not swap the begin and end marks of words. All released ELMoForManyLangs models need the swap."
    )
    text: TextConfig | None = None  # How the training text was prepared, if the user says so
    user_dictionary: Path | None = None

    def named_files(self) -> dict[str, Path]:
        """Return the model's files that the user specified, with their command-line options as keys."""
        files = (self.options, self.weights, self.vocab, self.token_embeddings)
        named = zip(("--options", "--weights", "--vocab", "--embedding"), files, strict=True)
        return {name: path for name, path in named if path is not None}
