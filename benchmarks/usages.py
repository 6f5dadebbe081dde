"""Do the usages that `senses` finds agree with the senses that people marked?

Usage: python benchmarks/usages.py BUNDLE WORD2VEC [--senses FILE.jsonl] [--words] [--output FILE]

The marked words of data/senses.tsv, and of FILE.jsonl with the keys context, target_word, target_position and sense;
senses marked fewer than five times are left out. For each layer, and for the mean of the word2vec vectors (WORD2VEC is
RUN/word2vec.txt) of the five tokens on either side: the adjusted Rand index of usages and senses, mean over words with
an interval by drawing words again. One cluster has index 0, chance too. The number of usages is chosen as by `senses`,
or two, or the number of senses. Then how often the choice is one usage where that is right: for the occurrences of one
sense of each word (20 or more), and for a normal distribution with the variances of each word. The sentences of
data/senses.tsv are the sample's own.
"""

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score
from substitutes import Occurrences, interval, labelled_occurrences, sample_occurrences

from elmo_zh import ElmoEmbedder
from elmo_zh.contexts.clusters import choose_number, find_clusters

LEAST_OF_SENSE, LEAST_OF_ONE, WINDOW = 5, 20, 5
Word = tuple[str, NDArray[np.str_], dict[str, NDArray[np.float32]]]


def read_word2vec(path: Path) -> dict[str, NDArray[np.float32]]:
    """Return the vectors of a file in word2vec's text format."""
    with path.open(encoding="utf-8") as file:
        next(file)
        rows = (line.rstrip("\n").split(" ") for line in file)
        return {row[0]: np.array(row[1:], np.float32) for row in rows}


def window_mean(vectors: dict[str, NDArray[np.float32]], tokens: Sequence[str], place: int) -> NDArray[np.float32]:
    """Return the mean vector of the tokens around a place; zeros if none has a vector."""
    around = [*tokens[max(0, place - WINDOW) : place], *tokens[place + 1 : place + 1 + WINDOW]]
    found = [vectors[token] for token in around if token in vectors]
    return np.mean(found, axis=0) if found else np.zeros_like(next(iter(vectors.values())))


def load_words(
    embedder: ElmoEmbedder, occurrences: Occurrences, word2vec: dict[str, NDArray[np.float32]]
) -> Iterator[Word]:
    """Yield each word with at least two senses: the sense of each occurrence, and its vectors by representation."""
    for word, found in sorted(occurrences.items()):
        # A repeated sentence would be a cluster of its own.
        distinct = {(tuple(tokens), place): sense for sense, (tokens, place) in found}
        counts = Counter(distinct.values())
        kept = {key: sense for key, sense in distinct.items() if counts[sense] >= LEAST_OF_SENSE}
        if len(set(kept.values())) < 2:
            continue
        layers = embedder.embed_tokens([list(tokens) for tokens, _ in kept])
        vectors = [each[:, place] for each, (_, place) in zip(layers, kept, strict=True)]
        ways = {"word2vec": np.stack([window_mean(word2vec, *key) for key in kept])}
        ways |= {f"layer {k}": np.stack([each[k] for each in vectors]) for k in range(1, embedder.num_layers)}
        yield word, np.array(list(kept.values())), ways


def measure(word: Word, way: str) -> dict[str, float]:
    """Return the figures of a word by one representation."""
    _, senses, ways = word
    chosen, vectors = find_clusters(ways[way]), ways[way]
    figures = {
        "chosen": adjusted_rand_score(senses, chosen.labels),
        "usages": len(chosen.centres),
        "two": adjusted_rand_score(senses, find_clusters(vectors, 2).labels),
        "senses": adjusted_rand_score(senses, find_clusters(vectors, len(set(senses))).labels),
    }
    cloud = np.random.default_rng(7).standard_normal(chosen.places.shape) * chosen.places.std(axis=0)
    figures["normal"] = choose_number(cloud, 1).number == 1
    most, count = Counter(senses).most_common(1)[0]
    if count >= LEAST_OF_ONE:
        figures["one"] = len(find_clusters(vectors[senses == most]).centres) == 1
    return figures


def describe(values: Sequence[float]) -> str:
    low, high = interval(values)
    return f"{np.mean(values):.3f} ({low:.3f} to {high:.3f})"


def report(arguments: argparse.Namespace) -> Iterator[str]:
    embedder = ElmoEmbedder.load(arguments.bundle, device="cpu")
    word2vec = read_word2vec(arguments.word2vec)
    yield f"model: text of {embedder.bundle.info['training'].get('train_tokens', 0):,} tokens"
    sets = {"data/senses.tsv": sample_occurrences(embedder)}
    if arguments.senses:
        sets[arguments.senses.name] = labelled_occurrences(arguments.senses, 10**9)
    for name, occurrences in sets.items():
        words = list(load_words(embedder, occurrences, word2vec))
        yield f"{name}: {len(words)} words, {sum(len(senses) for _, senses, _ in words):,} occurrences"
        heads = f"{'number chosen':>23} {'usages':>6} {'two':>23} {'number of senses':>23}"
        yield f"{'vectors':9} {heads}   one sense  normal"
        for way in words[0][2]:
            found = [measure(word, way) for word in words]
            by_name = {key: [each[key] for each in found if key in each] for key in (*found[0], "one")}
            ranges = [f"{describe(by_name[key]):>23}" for key in ("chosen", "two", "senses")]
            one = f"{np.mean(by_name['one']):.2f} of {len(by_name['one'])}" if by_name["one"] else "-"
            yield (
                f"{way:9} {ranges[0]} {np.mean(by_name['usages']):6.2f} {ranges[1]} {ranges[2]}"
                f"  {one:>10}  {np.mean(by_name['normal']):6.2f}"
            )
            for (word, senses, _), each in zip(words, found, strict=True) if arguments.words else ():
                yield f"  {word} {len(set(senses))} senses, {each['usages']} usages: {each['chosen']:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("bundle", metavar="BUNDLE", help="folder of the model")
    parser.add_argument("word2vec", type=Path, metavar="WORD2VEC", help="vectors in word2vec's text format")
    parser.add_argument("--senses", type=Path, metavar="FILE", help="JSON lines of marked words")
    parser.add_argument("--words", action="store_true", help="also show each word")
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write the table to this file")
    arguments = parser.parse_args()
    lines = []
    for line in report(arguments):
        print(line, flush=True)
        lines.append(line)
    if arguments.output:
        arguments.output.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
