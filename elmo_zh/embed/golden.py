"""The golden sentences of a bundle with their vectors, to check on any machine that the same vectors come out."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elmo_zh.bundle.layout import BundleLayout
from elmo_zh.bundle.read import Bundle
from elmo_zh.embed.golden_reader import read_golden
from elmo_zh.hdf5.foreign import read_foreign


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
    first, *sentences = read_foreign(read_golden, BundleLayout(bundle.path).golden)
    return Golden(
        texts=[sentence.fields["text"] for sentence in sentences],
        sentences=[sentence.fields["tokens"] for sentence in sentences],
        vectors=[np.asarray(sentence.arrays[0], np.float32) for sentence in sentences],
        tolerance=first.fields["tolerance"],
    )
