"""Do the usages that `senses` finds agree with the senses that people marked?

Usage: python benchmarks/usages.py BUNDLE [--senses FILE.jsonl ...] [--words]

The marked words of data/senses.tsv, and of FILE.jsonl with the keys context, target_word, target_position and sense;
senses marked fewer than five times are left out. By the vectors of each layer as `senses` takes them ("layer K"), by
those of the occurrences alone ("alone"), and by the mean of the word2vec vectors (of the bundle) of the five tokens on
either side: the adjusted Rand index of usages and senses, mean over words with
an interval by drawing words again. One cluster has index 0, chance too. The number of usages is chosen as by `senses`,
or two, or the number of senses; "right" is how often the number chosen is that of the senses. Then how often the choice
is one usage where that is right: for a random half of the occurrences of one sense and for all of them (ten or more),
and for a normal distribution with the variances of each word. The sentences of data/senses.tsv are the sample's own.
"""

import argparse
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score
from substitutes import Occurrences, interval, labelled_occurrences, sample_occurrences

from elmo_zh import ElmoEmbedder
from elmo_zh.bundle.word2vec_table import Word2Vec
from elmo_zh.contexts.nearest import unit_rows
from elmo_zh.contexts.senses import choose_number, find_clusters, join_directions, near_vector
from elmo_zh.vocabulary.vocabulary import is_word

LEAST_OF_SENSE, LEAST_OF_ONE, WINDOW = 5, 10, 5
Word = tuple[str, NDArray[np.str_], dict[str, NDArray[np.floating]]]


def window_mean(word2vec: Word2Vec, tokens: Sequence[str], place: int) -> NDArray[np.float32]:
    """Return the mean vector of the tokens around a place."""
    around = [*tokens[max(0, place - WINDOW) : place], *tokens[place + 1 : place + 1 + WINDOW]]
    [vectors] = word2vec.embed_tokens([around])
    return vectors.mean(axis=0) if around else np.zeros(vectors.shape[1], np.float32)


def line_mean(vectors: NDArray[np.float32], tokens: Sequence[str], place: int) -> NDArray[np.float64]:
    """Return the mean vector of the other words of a line, as an index has them: without punctuation."""
    rows = [row for row, token in enumerate(tokens) if row != place and is_word(token)]
    return unit_rows(vectors[rows]).mean(axis=0) if rows else np.zeros(vectors.shape[1])


def near_mean(vectors: NDArray[np.float32], tokens: Sequence[str], place: int) -> NDArray[np.float64]:
    """Return the vector of the other words near by, as an index has them, from the token layer."""
    rows = np.array([row for row, token in enumerate(tokens) if row != place and is_word(token)], np.int64)
    return near_vector(vectors[rows], rows - place)


def load_words(embedder: ElmoEmbedder, occurrences: Occurrences, word2vec: Word2Vec) -> Iterator[Word]:
    """Yield each word with at least two senses: the sense of each occurrence, and its vectors by representation."""
    for word, found in sorted(occurrences.items()):
        # A repeated sentence would be a cluster of its own.
        distinct = {(tuple(tokens), place): sense for sense, (tokens, place) in found}
        counts = Counter(distinct.values())
        kept = {key: sense for key, sense in distinct.items() if counts[sense] >= LEAST_OF_SENSE}
        if len(set(kept.values())) < 2:
            continue
        ways: dict[str, NDArray[np.floating]] = {"word2vec": np.stack([window_mean(word2vec, *key) for key in kept])}
        lines = embedder.embed_tokens([list(tokens) for tokens, _ in kept])
        near = np.stack([near_mean(each[0], *key) for each, key in zip(lines, kept, strict=True)])
        for layer in range(1, embedder.num_layers):
            own = unit_rows(np.stack([each[layer, place] for each, (_, place) in zip(lines, kept, strict=True)]))
            around = np.stack([line_mean(each[layer], *key) for each, key in zip(lines, kept, strict=True)])
            ways |= {f"layer {layer} alone": own, f"layer {layer}": join_directions(own, around, near)}
        yield word, np.array(list(kept.values())), ways


def measure(word: Word, way: str) -> dict[str, float]:
    """Return the figures of a word by one representation."""
    _, senses, ways = word
    chosen, vectors = find_clusters(ways[way]), ways[way]
    figures = {
        "chosen": adjusted_rand_score(senses, chosen.labels),
        "usages": len(chosen.centres),
        "right": len(chosen.centres) == len(set(senses)),
        "two": adjusted_rand_score(senses, find_clusters(vectors, 2).labels),
        "senses": adjusted_rand_score(senses, find_clusters(vectors, len(set(senses))).labels),
    }
    cloud = np.random.default_rng(7).standard_normal(chosen.places.shape) * chosen.places.std(axis=0)
    figures["normal"] = choose_number(cloud, 1).number == 1
    most, count = Counter(senses).most_common(1)[0]
    if count >= LEAST_OF_ONE:
        own = np.flatnonzero(senses == most)
        half = np.random.default_rng(7).permutation(own)[: count // 2]
        figures["one"] = len(find_clusters(vectors[own]).centres) == 1
        figures["half"] = len(find_clusters(vectors[half]).centres) == 1
    return figures


def merged(sets: Iterable[Occurrences]) -> Occurrences:
    """Return the occurrences of several files together."""
    found: Occurrences = defaultdict(list)
    for each in sets:
        for word, occurrences in each.items():
            found[word] += occurrences
    return found


def describe(values: Sequence[float]) -> str:
    low, high = interval(values)
    return f"{np.mean(values):.3f} ({low:.3f} to {high:.3f})"


def report(arguments: argparse.Namespace) -> Iterator[str]:
    embedder = ElmoEmbedder.load(arguments.bundle, device="cpu")
    word2vec = Word2Vec.load(arguments.bundle)
    yield f"model: text of {embedder.bundle.info['training'].get('train_tokens', 0):,} tokens"
    sets = {"data/senses.tsv": sample_occurrences(embedder)}
    if arguments.senses:
        sets["marked words"] = merged(labelled_occurrences(path, 10**9) for path in arguments.senses)
    for name, occurrences in sets.items():
        words = list(load_words(embedder, occurrences, word2vec))
        yield f"{name}: {len(words)} words, {sum(len(senses) for _, senses, _ in words):,} occurrences"
        heads = f"{'number chosen':>23} usages right {'two':>23} {'number of senses':>23}"
        yield f"{'vectors':13} {heads}   one sense  half of it  normal"
        for way in words[0][2]:
            found = [measure(word, way) for word in words]
            by_name = {key: [each[key] for each in found if key in each] for key in (*found[0], "one", "half")}
            ranges = [f"{describe(by_name[key]):>23}" for key in ("chosen", "two", "senses")]
            one, half = (f"{np.mean(by_name[key]):.2f} of {len(by_name[key])}" for key in ("one", "half"))
            yield (
                f"{way:13} {ranges[0]} {np.mean(by_name['usages']):6.2f} {np.mean(by_name['right']):5.2f} {ranges[1]}"
                f" {ranges[2]}  {one:>10}  {half:>10}  {np.mean(by_name['normal']):6.2f}"
            )
            for (word, senses, _), each in zip(words, found, strict=True) if arguments.words else ():
                yield f"  {word} {len(set(senses))} senses, {each['usages']} usages: {each['chosen']:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("bundle", metavar="BUNDLE", help="folder of the model")
    parser.add_argument("--senses", type=Path, nargs="+", metavar="FILE", help="JSON lines of marked words")
    parser.add_argument("--words", action="store_true", help="also show each word")
    for line in report(parser.parse_args()):
        print(line, flush=True)


if __name__ == "__main__":
    main()
