"""Load the golden sentences of a bundle with their vectors; `read_golden` runs in the process for untrusted files."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from elmo_zh.errors import BundleError
from elmo_zh.hdf5.foreign import read_foreign
from elmo_zh.hdf5.readers import Answer, holds_its_data, own_dataset

# Far above the three sentences of a bundle. The bytes are for all vectors together.
_MOST_SENTENCES, _MOST_TOKENS, _MOST_CHARACTERS = 100, 1000, 2**16
_MOST_VECTOR_BYTES = 2**28


@dataclass(frozen=True, kw_only=True)
class Golden:
    """The content of golden.hdf5: raw sentences, their tokens, and their vectors, each of shape (L + 1, n, 2P)."""

    texts: list[str]
    sentences: list[list[str]]
    vectors: list[NDArray[np.float32]]
    tolerance: float


def load_golden(path: Path) -> Golden:
    """Load golden.hdf5, checking its sizes before allocating memory."""
    found = read_foreign(read_golden, path)
    sentences = found.fields["sentences"]
    return Golden(
        texts=[sentence["text"] for sentence in sentences],
        sentences=[sentence["tokens"] for sentence in sentences],
        vectors=[np.asarray(found.array(sentence["name"]), np.float32) for sentence in sentences],
        tolerance=found.fields["tolerance"],
    )


def read_golden(path: Path) -> Answer:
    """Yield the tolerance, then the text, tokens and vectors of each sentence."""
    try:
        yield from _read(path)
    except (OSError, KeyError, ValueError, TypeError, AttributeError) as error:
        raise BundleError(f"{path} is damaged ({error}). Export or copy the bundle again.") from None


def _read(path: Path) -> Answer:
    with h5py.File(path, "r") as file:
        sentences, arrays = [], {}
        bytes_left = _MOST_VECTOR_BYTES
        for name in _names(file):
            vectors = arrays[name] = own_dataset(file, name)
            _require_data(vectors)
            # Several names may lead to one dataset, so the file may be smaller than its vectors.
            bytes_left -= vectors.nbytes
            if vectors.dtype.kind != "f" or bytes_left < 0:
                raise ValueError(f"the vectors of a sentence are {vectors.dtype} {vectors.shape}")
            tokens = _read_tokens(own_dataset(file, f"tokens/{name}"))
            text = _read_text(own_dataset(file, f"texts/{name}"), ())
            sentences.append({"name": name, "text": text, "tokens": tokens})
        yield {"tolerance": float(file.attrs["tolerance"]), "sentences": sentences}, arrays


def _names(file: Any) -> list[str]:
    tokens = file.get("tokens", getlink=True)
    if not isinstance(tokens, h5py.HardLink) or not 0 < len(file["tokens"]) <= _MOST_SENTENCES:
        raise ValueError("sentences are missing, or too many")
    return sorted(file["tokens"], key=int)


def _read_tokens(dataset: Any) -> list[str]:
    """Return the tokens of a sentence, read one by one, because all of them may refer to the same long text."""
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


def _require_data(dataset: Any) -> None:
    if not holds_its_data(dataset):
        raise ValueError(f"{dataset.name} is not in this file as a whole")
