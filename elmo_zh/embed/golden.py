"""The golden sentences of a bundle with their vectors, to check on any machine that the same vectors come out."""

from dataclasses import dataclass

import h5py
import numpy as np
from numpy.typing import NDArray

from elmo_zh.bundle.layout import BundleLayout
from elmo_zh.bundle.read import Bundle
from elmo_zh.errors import BundleError


@dataclass(frozen=True, kw_only=True)
class Golden:
    """The content of golden.hdf5: raw sentences, their tokens, and their vectors, shape (L + 1, n, 2P) each."""

    texts: list[str]
    sentences: list[list[str]]
    vectors: list[NDArray[np.float32]]
    tolerance: float


def load_golden(bundle: Bundle) -> Golden:
    """Load the golden sentences of a bundle.

    Raises:
        BundleError: If the file is damaged.
    """
    path = BundleLayout(bundle.path).golden
    try:
        with h5py.File(path, "r") as file:
            names = sorted(file["tokens"], key=int)
            sentences = [[token.decode("utf-8") for token in file["tokens"][name][()]] for name in names]
            if not all(sentences) or not sentences:
                raise ValueError("sentences are missing")
            return Golden(
                texts=[file["texts"][name][()].decode("utf-8") for name in names],
                sentences=sentences,
                vectors=[np.asarray(file[name][()], np.float32) for name in names],
                tolerance=float(file.attrs["tolerance"]),
            )
    except (OSError, KeyError, ValueError, TypeError, AttributeError) as error:
        raise BundleError(f"{path} is damaged ({error}). Export or copy the bundle again.") from None
