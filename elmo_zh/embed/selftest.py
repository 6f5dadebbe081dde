"""Check that a bundle works correctly on this machine."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elmo_zh.bundle import BundleLayout
from elmo_zh.bundle.read import Bundle
from elmo_zh.bundle.write import GOLDEN_TOLERANCE, Golden, load_golden
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.errors import BundleError
from elmo_zh.language import N_, _


@dataclass(frozen=True, kw_only=True)
class Check:
    """One check and its result."""

    name: str  # In English
    passed: bool | None  # Whether the check passed; None if it does not apply to this model
    found: str  # The finding, or why nothing could be checked


def run_selftest(bundle: Bundle, device: str = "auto") -> list[Check]:
    """Run all checks on a bundle; its file digests were already checked when it was loaded."""
    embedder = ElmoEmbedder(bundle, device, unknown="unk")
    golden = load_golden(BundleLayout(bundle.path).golden)
    together = embedder.compute_vectors(golden.sentences)
    alone = [embedder.compute_vectors([tokens])[0] for tokens in golden.sentences]
    return [
        _check_tokens(bundle, embedder, golden),
        _compare(N_("the stored vectors are reproduced"), together, golden.vectors),
        _compare(N_("vectors do not depend on the other sentences of a batch"), together, alone),
    ]


def _compare(name: str, vectors: Sequence[NDArray[np.float32]], expected: Sequence[NDArray[np.float32]]) -> Check:
    """Compare arrays by their largest difference, divided by the largest expected absolute value if that is above 1.

    The difference is infinite if shapes differ or a number is not finite.
    """
    difference = 0.0
    for left, right in zip(vectors, expected, strict=True):
        if left.shape != right.shape or not (np.isfinite(left).all() and np.isfinite(right).all()):
            difference = np.inf
        else:
            difference = max(difference, np.abs(left - right).max(initial=0.0) / np.abs(right).max(initial=1.0))
    found = _("largest difference {difference}").format(difference=f"{difference:.1e}")
    return Check(name=name, passed=bool(difference <= GOLDEN_TOLERANCE), found=found)


def _check_tokens(bundle: Bundle, embedder: ElmoEmbedder, golden: Golden) -> Check:
    name = N_("raw text is segmented into the recorded tokens")
    try:
        same = [embedder.tokens(text) for text in golden.texts] == golden.sentences
    except BundleError as error:
        return Check(name=name, passed=None if bundle.text is None else False, found=error.messages[0])
    return Check(name=name, passed=same, found=bundle.info["segmenter"]["name"])
