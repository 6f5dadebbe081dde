"""The golden sentences of a bundle with their vectors, to check on any machine that the same vectors come out."""

from dataclasses import dataclass
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from elmo_zh.bundle.layout import BundleLayout
from elmo_zh.bundle.read import Bundle
from elmo_zh.errors import BundleError
from elmo_zh.hdf5 import holds_its_data, own_dataset

# Far more than the three sentences of a bundle have.
_MOST_SENTENCES, _MOST_TOKENS, _MOST_CHARACTERS = 100, 1000, 2**16


@dataclass(frozen=True, kw_only=True)
class Golden:
    """The content of golden.hdf5: raw sentences, their tokens, and their vectors, shape (L + 1, n, 2P) each."""

    texts: list[str]
    sentences: list[list[str]]
    vectors: list[NDArray[np.float32]]
    tolerance: float


def load_golden(bundle: Bundle) -> Golden:
    """Load the golden sentences of a bundle; what a stranger's file claims is checked before memory is taken.

    Raises:
        BundleError: If the file is damaged, or is not one of golden sentences.
    """
    path = BundleLayout(bundle.path).golden
    try:
        with h5py.File(path, "r") as file:
            names = _names(file)
            sentences = [_read_tokens(own_dataset(file, f"tokens/{name}")) for name in names]
            return Golden(
                texts=[_read_text(own_dataset(file, f"texts/{name}"), ()) for name in names],
                sentences=sentences,
                vectors=[_read_vectors(own_dataset(file, name)) for name in names],
                tolerance=float(file.attrs["tolerance"]),
            )
    except (OSError, KeyError, ValueError, TypeError, AttributeError) as error:
        raise BundleError(f"{path} is damaged ({error}). Export or copy the bundle again.") from None


def _names(file: Any) -> list[str]:
    tokens = file.get("tokens", getlink=True)
    if not isinstance(tokens, h5py.HardLink) or not 0 < len(file["tokens"]) <= _MOST_SENTENCES:
        raise ValueError("sentences are missing, or too many")
    return sorted(file["tokens"], key=int)


def _read_tokens(dataset: Any) -> list[str]:
    """Return the tokens of a sentence; one by one, as all of them may claim the same long text."""
    if dataset.ndim != 1 or not 0 < len(dataset) <= _MOST_TOKENS:
        raise ValueError(f"the tokens of a sentence have shape {dataset.shape}")
    tokens: list[str] = []
    for index in range(len(dataset)):
        tokens.append(_read_text(dataset, index))
        if sum(map(len, tokens)) > _MOST_CHARACTERS:
            raise ValueError("the tokens of a sentence are too long")
    return tokens


def _read_text(dataset: Any, place: Any) -> str:
    _require_data(dataset)
    return str(dataset[place].decode("utf-8"))


def _read_vectors(dataset: Any) -> NDArray[np.float32]:
    """Return an array of any shape, which the self-test compares."""
    _require_data(dataset)
    return np.asarray(dataset[()], np.float32)


def _require_data(dataset: Any) -> None:
    if not holds_its_data(dataset):
        raise ValueError(f"{dataset.name} is not in this file as a whole")
