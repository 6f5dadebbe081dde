"""Check that a bundle works correctly on this machine."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elmo_zh.bundle.golden import GOLDEN_TOLERANCE, Golden, load_golden
from elmo_zh.bundle.layout import BundleLayout
from elmo_zh.bundle.read import Bundle
from elmo_zh.choices import EMBED_PRECISIONS
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.errors import BundleError
from elmo_zh.hdf5.foreign_file import ForeignFile
from elmo_zh.vocabulary.vocabulary import SPECIALS

# For vectors that are computed twice: far above rounding errors, far below the effect of any fault.
_TOLERANCE = 1e-5
_NUM_WORDS, _NUM_NEIGHBOURS = 8, 5
# Neighbours are searched for among this many of the most frequent words.
_CANDIDATES = 20_000


@dataclass(frozen=True, kw_only=True)
class Check:
    """One check and its result."""

    name: str
    passed: bool | None  # Whether the check passed; None if it does not apply to this model
    found: str  # The finding, or why nothing could be checked


@dataclass(frozen=True, kw_only=True)
class Neighbours:
    """The words most similar to a given word in one table, for a person to judge."""

    table: str
    word: str
    neighbours: tuple[str, ...]


def run_selftest(bundle: Bundle, device: str = "auto") -> list[Check]:
    """Run all checks on a bundle; its file digests were already checked when it was loaded."""
    embedder = ElmoEmbedder(bundle, device, unknown="unk")
    golden = load_golden(BundleLayout(bundle.path).golden)
    sentences = golden.sentences
    found = embedder.compute_vectors(sentences)
    words = _known_words(bundle)
    return [
        _check_tokens(bundle, embedder, golden),
        _check(
            f"the stored vectors of {len(sentences)} sentences are reproduced",
            _difference(found, golden.vectors),
            GOLDEN_TOLERANCE,
        ),
        _check_direction(embedder, words, "the forward LM cannot see the future", forward=True),
        _check_direction(embedder, words, "the backward LM cannot see the past", forward=False),
        _check_independence(embedder, sentences, found),
        _check_tables(bundle),
    ]


def _known_words(bundle: Bundle) -> list[str]:
    """Return distinct words that the model can tell apart: from its vocabulary, or made of known characters."""
    if bundle.vocabulary is not None and len(bundle.vocabulary) >= len(SPECIALS) + 2:
        return list(bundle.vocabulary.tokens[len(SPECIALS) :][:_NUM_WORDS])
    return list(bundle.alphabet.numbers or "今天气很好我们去")[:_NUM_WORDS]


def _check(name: str, difference: float, tolerance: float) -> Check:
    return Check(name=name, passed=difference <= tolerance, found=f"largest difference {difference:.1e}")


def _difference(left: Sequence[NDArray[np.float32]], right: Sequence[NDArray[np.float32]]) -> float:
    """Return the largest difference between two lists of arrays, relative for numbers above 1; inf if shapes differ."""
    if any(a.shape != b.shape for a, b in zip(left, right, strict=True)):
        return float("inf")
    return max(_distance(a, b) for a, b in zip(left, right, strict=True))


def _distance(left: NDArray[np.float32], right: NDArray[np.float32]) -> float:
    if not (np.isfinite(left).all() and np.isfinite(right).all()):
        return float("inf")
    return float(np.abs(left - right).max(initial=0.0) / np.abs(right).max(initial=1.0))


def _check_tokens(bundle: Bundle, embedder: ElmoEmbedder, golden: Golden) -> Check:
    name = "raw text is segmented into the recorded tokens"
    if bundle.text is None:
        return Check(name=name, passed=None, found="the bundle does not say how its training text was segmented")
    try:
        same = [embedder.tokens(text) for text in golden.texts] == golden.sentences
    except BundleError as error:
        return Check(name=name, passed=False, found=error.messages[0])
    segmenter = json.dumps(bundle.info["segmenter"]["name"])
    return Check(name=name, passed=same, found=f"segmenter {segmenter}")


def _check_direction(embedder: ElmoEmbedder, words: list[str], name: str, *, forward: bool) -> Check:
    """Change the last word that an LM reads: this word's vector must change, and no other may."""
    tokens = [*words, *words]
    place = len(tokens) - 1 if forward else 0
    changed = list(tokens)
    changed[place] = words[0] if forward else words[-1]
    before, after = embedder.compute_vectors([tokens])[0], embedder.compute_vectors([changed])[0]
    half = slice(None, embedder.dimension // 2) if forward else slice(embedder.dimension // 2, None)
    unread = slice(None, place) if forward else slice(1, None)
    leaked = _distance(before[:, unread, half], after[:, unread, half])
    noticed = _distance(before[1:, place, half], after[1:, place, half])
    return Check(
        name=name,
        passed=leaked <= _TOLERANCE < noticed,
        found=(
            f"changing a word changes the vectors of words read before it by {leaked:.1e}, and its own vector by"
            f" {noticed:.1e}"
        ),
    )


def _check_independence(
    embedder: ElmoEmbedder, sentences: list[list[str]], together: Sequence[NDArray[np.float32]]
) -> Check:
    alone = [embedder.compute_vectors([tokens])[0] for tokens in sentences]
    backwards = embedder.compute_vectors(sentences[::-1])[::-1]
    difference = max(_difference(together, alone), _difference(together, backwards))
    return _check("vectors do not depend on the batch or the sentence order", difference, _TOLERANCE)


def _check_tables(bundle: Bundle) -> Check:
    name = "vocabulary and embedding files match the model"
    vocabulary, layout = bundle.vocabulary, BundleLayout(bundle.path)
    if vocabulary is None:
        return Check(name=name, passed=None, found="the model has no vocabulary")
    problems = []
    if vocabulary.digest() != bundle.info.get("vocabulary_digest"):
        problems.append(f"vocab.data has digest {vocabulary.digest()}, not the digest recorded at export")
    if layout.vocab_embedding.exists():
        ours = bundle.weights.token_table
        file = ForeignFile.open(layout.vocab_embedding)
        if not np.array_equal(file.read_array("embedding", ours.shape), ours):
            problems.append("vocab_embedding.hdf5 and weights.hdf5 contain different embeddings")
    number = len(vocabulary)
    rows = f"{number:,} vocabulary entries; their digest is the one recorded at export"
    return Check(name=name, passed=not problems, found="; ".join(problems) or rows)


def find_neighbours(bundle: Bundle) -> list[Neighbours]:
    """Return the neighbours of the most frequent words in each of the model's tables."""
    if bundle.vocabulary is None:
        return []
    size, weights = min(len(bundle.vocabulary), _CANDIDATES), bundle.weights
    name = "token layer and softmax" if weights.is_tied else "token layer"
    tables = {name: weights.token_vectors(bundle.build_lexicon(), range(size))}
    if weights.has_softmax and not weights.is_tied:
        tables["softmax"] = weights.arrays["softmax.weight"][:size]
    words = bundle.vocabulary.tokens
    chosen = [row for row in range(len(SPECIALS), size) if words[row].isalpha()][:_NUM_WORDS]
    return [
        Neighbours(table=name, word=words[row], neighbours=tuple(words[near] for near in _nearest(table, row)))
        for name, table in tables.items()
        for row in chosen
    ]


def _nearest(table: NDArray[np.float32], row: int) -> list[int]:
    """Return the rows most similar to a row by cosine, except the row itself and the special tokens."""
    similar = table @ table[row] / np.maximum(np.linalg.norm(table, axis=1), np.finfo(np.float32).tiny)
    similar[: len(SPECIALS)] = similar[row] = -np.inf
    count = min(_NUM_NEIGHBOURS, len(table) - len(SPECIALS) - 1)
    return [int(near) for near in np.argsort(-similar, kind="stable")[:count]]


@dataclass(frozen=True, kw_only=True)
class Deviation:
    """The deviation of the vectors of one layer at one precision from float32, over all tokens."""

    precision: str
    layer: int
    largest: float  # Largest absolute difference of an element
    mean: float  # Mean absolute difference of the elements
    cosine: float  # Mean cosine of a vector and the same vector in float32
    lowest_cosine: float  # Lowest of these cosines


def measure_deviations(bundle: Bundle, sentences: Sequence[Sequence[str]]) -> list[Deviation]:
    """Compare segmented sentences' vectors at every other precision with their float32 vectors, on the CPU."""
    found = {
        name: np.concatenate(ElmoEmbedder(bundle, "cpu", name).compute_vectors(sentences), axis=1, dtype=np.float64)
        for name in EMBED_PRECISIONS
    }
    exact = found.pop("float32")
    return [
        _compare(name, layer, vectors[layer], exact[layer])
        for name, vectors in found.items()
        for layer in range(len(exact))
    ]


def _compare(precision: str, layer: int, found: NDArray[np.float64], exact: NDArray[np.float64]) -> Deviation:
    difference = np.abs(found - exact)
    lengths = np.linalg.norm(found, axis=1) * np.linalg.norm(exact, axis=1)
    cosines = (found * exact).sum(axis=1) / lengths
    return Deviation(
        precision=precision,
        layer=layer,
        largest=float(difference.max()),
        mean=float(difference.mean()),
        cosine=float(cosines.mean()),
        lowest_cosine=float(cosines.min()),
    )
