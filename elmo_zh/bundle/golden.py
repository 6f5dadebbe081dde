"""Load the golden sentences of a bundle with their vectors."""

from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from elmo_zh.errors import BundleError
from elmo_zh.hdf5.foreign_file import ForeignFile
from elmo_zh.language import _

# How far vectors may be from the stored ones.
GOLDEN_TOLERANCE = 1e-5
# Far above the three sentences of a bundle.
_MOST_SENTENCES, _MOST_TOKENS, _MOST_CHARACTERS = 100, 1000, 2**16


@dataclass(frozen=True, kw_only=True)
class Golden:
    """The content of golden.hdf5: raw sentences, their tokens, and their vectors, each of shape (L + 1, n, 2P)."""

    texts: list[str]
    sentences: list[list[str]]
    vectors: list[NDArray[np.float32]]


def load_golden(path: Path) -> Golden:
    """Load golden.hdf5; raise BundleError if it is damaged, or has more text than a bundle needs."""
    file = ForeignFile.open(path)
    try:
        names = sorted((name.removeprefix("tokens/") for name in file.names() if name.startswith("tokens/")), key=int)
        texts = [file.strings[f"texts/{name}"][0] for name in names]
        sentences = [list(file.strings[f"tokens/{name}"]) for name in names]
        shapes = {name: file.arrays[name][2] for name in names}
        if not (0 < len(names) <= _MOST_SENTENCES and all(0 < len(tokens) <= _MOST_TOKENS for tokens in sentences)):
            raise ValueError("sentences are missing, too many or too long")
        if sum(map(len, chain(texts, *sentences))) > _MOST_CHARACTERS:
            raise ValueError("the words are too long")
    except (LookupError, ValueError) as error:
        message = _("{path} is damaged ({error}). Export or copy the bundle again.")
        raise BundleError(message.format(path=path, error=error)) from None
    vectors = list(dict(file.read_arrays(shapes)).values())
    return Golden(texts=texts, sentences=sentences, vectors=vectors)
