"""Does an unknown word read better as its subwords (--unknown backoff) than as <UNK>?

Usage: python benchmarks/unknown_words.py BUNDLE SEGMENTED_HELDOUT [--pairs FILE ...] [--sentences N]

A token-mode bundle. Of held-out sentences with unknown words: the exact perplexity of the words right after one in
each LM's order of reading (its neighbours), and of all words. Of word pairs with a person's judgement (word TAB word
TAB score): Spearman's correlation with the cosine of their vectors, over pairs with an unknown word and over all; each
word is a sentence of its own. Prints a table.
"""

import argparse
import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import spearmanr
from torch.nn import functional

from elmo_zh.bundle.read import Bundle, load_bundle
from elmo_zh.choices import UNKNOWN_WAYS
from elmo_zh.corpus.text_files import iter_lines
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.embed.sentence_vectors import TokenLayerVectors
from elmo_zh.model.batches import pad_sentences
from elmo_zh.text.segmenters.registry import split_tokens
from elmo_zh.vocabulary.vocabulary import BEGIN_ID, END_ID, UNKNOWN_ID

BATCH = 32


@torch.no_grad()
def costs(bundle: Bundle, words: TokenLayerVectors, sentences: list[list[str]]) -> dict[str, list[float]]:
    """Return the cost in nats of each word after an unknown one, and of each word, in both directions."""
    found: dict[str, list[float]] = {"neighbours": [], "all words": []}
    assert bundle.vocabulary is not None
    assert bundle.softmax is not None
    rows = {word: number for number, word in enumerate(dict.fromkeys(word for line in sentences for word in line))}
    vectors = words(list(rows))
    numbers, mask = pad_sentences([np.array([0, *(rows[word] + 2 for word in line), 1]) for line in sentences])
    layers, _ = bundle.bilm.read_sentences(
        functional.embedding(numbers, vectors), mask, bundle.bilm.start_state(len(sentences))
    )
    P = bundle.bilm.shape.projection_dim
    for row, line in enumerate(sentences):
        ids = np.array([BEGIN_ID, *bundle.vocabulary.encode(line), END_ID])
        top = layers[-1, row, : len(ids)]
        for hidden, read, target in ((top[:-1, :P], ids[:-1], ids[1:]), (top[1:, P:], ids[1:], ids[:-1])):
            scores = torch.log_softmax(hidden @ bundle.softmax.weight.T + bundle.softmax.bias, dim=1)
            nats = -scores[torch.arange(len(target)), torch.from_numpy(target)].numpy()
            found["all words"] += nats.tolist()
            found["neighbours"] += nats[read == UNKNOWN_ID].tolist()
    return found


def similarity(
    bundle: Bundle, way: str, pairs: list[tuple[str, str, float]], layer: int
) -> dict[str, tuple[float, int]]:
    """Return Spearman's correlation and the number of pairs, with an unknown word and in all."""
    embedder = ElmoEmbedder(bundle, "cpu", unknown=way)
    words = sorted({word for pair in pairs for word in pair[:2]})
    vectors = {
        word: found[layer, 0] for word, found in zip(words, embedder.embed_tokens([[w] for w in words]), strict=True)
    }
    assert bundle.vocabulary is not None
    result = {}
    for name, chosen in (
        ("with an unknown word", [p for p in pairs if any(word not in bundle.vocabulary for word in p[:2])]),
        ("all", pairs),
    ):
        cosines = [float(np.dot(vectors[a], vectors[b]) / np.linalg.norm(vectors[a]) / np.linalg.norm(vectors[b]))
                   for a, b, _ in chosen]  # fmt: skip
        result[name] = (float(spearmanr(cosines, [score for *_, score in chosen]).statistic), len(chosen))
    return result


def read_pairs(path: Path) -> list[tuple[str, str, float]]:
    """Return the pairs of a file."""
    found = [line.split("\t") for line in iter_lines(path) if line.strip()]
    return [(first, second, float(score)) for first, second, score in found]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("heldout", type=Path)
    parser.add_argument("--pairs", type=Path, nargs="*", default=[])
    parser.add_argument("--sentences", type=int, default=1000)
    arguments: Any = parser.parse_args()
    bundle = load_bundle(arguments.bundle)
    assert bundle.vocabulary is not None
    lines = [tokens for line in iter_lines(arguments.heldout) if (tokens := split_tokens(line))]
    lines = [line for line in lines if any(word not in bundle.vocabulary for word in line)][: arguments.sentences]
    for way in UNKNOWN_WAYS:
        words, total = (
            TokenLayerVectors(bundle.bilm, bundle.build_lexicon(), unknown=way),
            {"neighbours": [], "all words": []},
        )
        for start in range(0, len(lines), BATCH):
            for name, nats in costs(bundle, words, lines[start : start + BATCH]).items():
                total[name] += nats
        for name, nats in total.items():
            print(f"{way:8} perplexity of {name:12} {math.exp(float(np.mean(nats))):9.2f}  ({len(nats):,} predictions)")
        for path in arguments.pairs:
            pairs = read_pairs(path)
            for layer in range(bundle.bilm.shape.num_layers + 1):
                for name, (value, count) in similarity(bundle, way, pairs, layer).items():
                    print(f"{way:8} {path.stem}, layer {layer}, pairs {name:20} {value:6.3f}  ({count})")


if __name__ == "__main__":
    main()
