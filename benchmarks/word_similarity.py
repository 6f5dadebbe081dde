"""Do the cosines of two words agree with people's judgement of their similarity?

Usage: python benchmarks/word_similarity.py BUNDLE FILE...

FILE has lines of two words and a score, separated by tabs, such as wordsim-240.txt of github.com/Leonard-Xu/CWE. Prints
Spearman's rank correlation over all pairs, by word2vec and by each layer, where each word is a sentence of its own.
Words outside the vocabulary get vectors from the known words in them, so that no pair is left out.
"""

import argparse
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from elmo_zh import ElmoEmbedder
from elmo_zh.bundle.word2vec_table import Word2Vec


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle")
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    arguments = parser.parse_args()
    embedder, word2vec = ElmoEmbedder.load(arguments.bundle), Word2Vec.load(arguments.bundle)
    print(f"{'pairs of words':20s}{'pairs':>8s}{'word2vec':>12s}{'token layer':>16s}{'layer 1':>12s}{'layer 2':>12s}")
    for path in arguments.files:
        rows = [
            [cell.strip() for cell in line.split("\t")]
            for line in path.read_text(encoding="utf-8").splitlines()
            if line.strip()
        ]
        words = sorted({word for row in rows for word in row[:2]})
        vectors = embedder.embed_tokens([[word] for word in words])
        tables = [word2vec.of_words(words).table[-len(words) :].astype(np.float32)]
        tables += [np.stack([vector[layer, 0] for vector in vectors]) for layer in range(vectors[0].shape[0])]
        numbers = {word: number for number, word in enumerate(words)}
        left, right = (np.array([numbers[row[side]] for row in rows]) for side in (0, 1))
        print(f"{path.stem:20s}{len(rows):8,}", end="")
        for table, width in zip(tables, (12, 16, 12, 12), strict=True):
            units = table / np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-9)
            correlation = spearmanr((units[left] * units[right]).sum(axis=1), [float(row[2]) for row in rows]).statistic
            print(f"{100 * correlation:{width}.1f}", end="")
        print()


if __name__ == "__main__":
    main()
