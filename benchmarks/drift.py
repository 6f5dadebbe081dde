"""Does drift measure how much the use of a word has changed? Measured with changes of known size.

Usage: python benchmarks/drift.py BUNDLE TEXT...

The sentences are divided at random into an old and a new half, so nothing differs between them. Then pairs of words
change places in a share of their occurrences in the new half: with a share of 0.3, three in ten occurrences of each
word are where the other one was. Shares go from 0 to 1 in tenths. The table has Spearman's rank correlation between
the share and each measure over the changed words, for each layer and for aligned word2vec vectors of both halves; the
same for mean ranks: of excess in all layers, of apd and prt, and of excess, prt and jsd in the top layer; how many
words are found (q below 0.05) by share; and how many words that no one has touched have p below 0.05.
"""

import argparse
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata, spearmanr

from elmo_zh import ContextIndex, ElmoEmbedder, measure_drift
from elmo_zh.config import TextConfig, Word2vecConfig
from elmo_zh.contexts import IndexOptions
from elmo_zh.contexts.build_index import IndexJob
from elmo_zh.contexts.drift_statistics import MEASURES
from elmo_zh.contexts.index_text import IndexSettings
from elmo_zh.contexts.nearest import unit_rows
from elmo_zh.corpus.input_texts import input_text
from elmo_zh.corpus.sources import find_sources
from elmo_zh.run.job import run_job
from elmo_zh.run.reporter import SilentReporter
from elmo_zh.vocabulary.vocabulary import SPECIALS, Vocabulary
from elmo_zh.word2vec import train_word2vec
from elmo_zh.word2vec.vectors import TrainingJob

SHARES = np.arange(11) / 10
DRAWS = 2000
LEVEL = 0.05
LEAST_FOR_WORD2VEC = 5

Sentences = list[list[str]]


def read_halves(paths: Sequence[Path], generator: np.random.Generator) -> tuple[Sentences, Sentences]:
    """Return the different sentences of segmented files, divided at random."""
    lines = list(dict.fromkeys(line for path in paths for line in path.read_text(encoding="utf-8").splitlines()))
    order = generator.permutation(len(lines))
    halves = [[lines[each].split(" ") for each in np.sort(part)] for part in np.array_split(order, 2)]
    return halves[0], halves[1]


def choose_words(
    halves: Sequence[Sentences],
    known: Vocabulary,
    num_words: int,
    limits: tuple[int, int],
    generator: np.random.Generator,
) -> list[str]:
    """Return words of Han characters that are about as frequent as wanted in both halves, by falling frequency."""
    counts = [Counter(token for sentence in half for token in sentence) for half in halves]
    suited = sorted(
        word
        for word, count in counts[0].items()
        if limits[0] <= min(count, counts[1][word]) and max(count, counts[1][word]) <= limits[1]
        and word in known and all("一" <= character <= "鿿" for character in word)
    )  # fmt: skip
    chosen = generator.choice(suited, min(num_words, len(suited)), replace=False).tolist()
    return sorted(chosen, key=lambda word: (-counts[0][word], word))


def swap(sentences: Sentences, pairs: Sequence[tuple[str, str, float]], generator: np.random.Generator) -> None:
    """Let the words of each pair change places in a share of their occurrences."""
    places: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for number, sentence in enumerate(sentences):
        for place, token in enumerate(sentence):
            places[token].append((number, place))
    for first, second, share in pairs:
        for word, other in ((first, second), (second, first)):
            found = places[word]
            for each in generator.permutation(len(found))[: round(share * len(found))]:
                number, place = found[each]
                sentences[number][place] = other


def build(embedder: ElmoEmbedder, text: Path, words: Sequence[str], most: int) -> ContextIndex:
    output = text.with_suffix(".index")
    settings = IndexSettings(
        layers=tuple(range(1, embedder.num_layers)),
        words=frozenset(words),
        segmented=True,
        options=IndexOptions(max_per_word=most),
    )
    sources = find_sources([str(text)]).sources
    texts = [input_text(source, TextConfig(), segmented=True) for source in sources]
    job = IndexJob(embedder=embedder, texts=texts, output=output, settings=settings)
    run_job(job, force=True, reporter=SilentReporter())
    return ContextIndex.load(output)


def train_vectors(text: Path, sentences: Sentences, algorithm: str) -> dict[str, NDArray[np.float32]]:
    counts = Counter(token for sentence in sentences for token in sentence)
    words = [word for word, count in counts.most_common() if count >= LEAST_FOR_WORD2VEC and word not in SPECIALS]
    vocabulary = Vocabulary((*SPECIALS, *words))
    rows = [len(sentences), len(sentences), 0, *(counts[word] for word in words)]
    config = Word2vecConfig(algorithm=algorithm, epochs=10)
    job = TrainingJob(files=[text], vocabulary=vocabulary, counts=rows, dimension=100, config=config)
    vectors = train_word2vec(job, SilentReporter())
    return {vocabulary.tokens[row]: vector for row, vector in zip(vectors.rows, vectors.vectors, strict=True)}


def distances_of_aligned(old: dict[str, NDArray[np.float32]], new: dict[str, NDArray[np.float32]]) -> dict[str, float]:
    """Return cosine distances after an orthogonal Procrustes alignment of unit vectors (Hamilton et al. 2016)."""
    shared = sorted(old.keys() & new.keys())
    first, second = (unit_rows(np.stack([each[word] for word in shared])) for each in (old, new))
    left, _, right = np.linalg.svd(first.T @ second)
    distances = 1 - ((first @ (left @ right)) * second).sum(axis=1)
    return dict(zip(shared, distances.tolist(), strict=True))


def correlation(shares: NDArray[np.float64], values: NDArray[np.float64]) -> str:
    """Return Spearman's rank correlation with its 95% interval, by drawing the words again."""
    generator = np.random.default_rng(1)
    draws = [generator.integers(len(shares), size=len(shares)) for _ in range(DRAWS)]
    drawn = [spearmanr(shares[each], values[each]).statistic for each in draws]
    low, high = np.quantile(drawn, (0.025, 0.975))
    return f"{spearmanr(shares, values).statistic:6.3f}  ({low:.3f} to {high:.3f})"


def report(arguments: argparse.Namespace, folder: Path) -> Iterator[str]:
    embedder = ElmoEmbedder.load(arguments.bundle, device="cpu")
    generator = np.random.default_rng(arguments.seed)
    halves = read_halves(arguments.texts, generator)
    limits = (arguments.least, arguments.most)
    num_words = 2 * arguments.pairs + arguments.untouched
    words = choose_words(halves, embedder.bundle.vocabulary, num_words, limits, generator)
    untouched = {words[each] for each in generator.choice(len(words), arguments.untouched, replace=False)}
    swapped = [word for word in words if word not in untouched]
    drawn = generator.permutation(np.resize(SHARES, len(swapped) // 2)).tolist()
    pairs = list(zip(swapped[::2], swapped[1::2], drawn, strict=False))
    swap(halves[1], pairs, generator)
    share_of = {word: share for first, second, share in pairs for word in (first, second)}
    texts = [folder / "old.txt", folder / "new.txt"]
    for text, half in zip(texts, halves, strict=True):
        text.write_text("".join(" ".join(sentence) + "\n" for sentence in half), encoding="utf-8")
    yield (
        f"{len(halves[0]):,} and {len(halves[1]):,} sentences; {len(share_of)} words swapped,"
        f" {len(untouched)} untouched, {limits[0]} to {limits[1]} occurrences in each half"
    )
    yield from report_model([build(embedder, text, words, limits[1]) for text in texts], share_of, untouched, arguments)
    for algorithm in ("cbow", "skipgram"):
        old, new = (train_vectors(text, half, algorithm) for text, half in zip(texts, halves, strict=True))
        distances = distances_of_aligned(old, new)
        known = [word for word in share_of if word in distances]
        found = np.array([distances[word] for word in known])
        yield f"word2vec  {algorithm:10}  {correlation(np.array([share_of[word] for word in known]), found)}"


def report_model(
    indexes: Sequence[ContextIndex], share_of: dict[str, float], untouched: set[str], arguments: argparse.Namespace
) -> Iterator[str]:
    yield f"{'layer':8}  {'measure':10}  Spearman's rank correlation of share and measure (95% interval)"
    tests = []
    ranked: dict[tuple[int, str], NDArray[np.float64]] = {}
    for layer in indexes[0].layers:
        for by in MEASURES:
            drift = measure_drift(*indexes, layer=layer, by=by, permutations=arguments.permutations)
            found = {each.word: each for each in drift.words}
            known = [word for word in share_of if word in found]
            values = np.array([getattr(found[word], by) for word in known])
            shares = np.array([share_of[word] for word in known])
            ranked[layer, by] = rankdata(values)
            yield f"{layer:<8}  {by:10}  {correlation(shares, values)}"
            hits = [
                f"{np.mean([found[word].q < LEVEL for word in known if share_of[word] == share]):5.2f}"
                for share in SHARES
            ]
            false = np.mean([found[word].p < LEVEL for word in untouched if word in found])
            tests.append(f"{layer:<8}  {by:10}  {' '.join(hits)}  {false:9.3f}")
    top = indexes[0].layers[-1]
    for name, parts in (
        ("layers", [(layer, "excess") for layer in indexes[0].layers]),
        ("apd, prt", [(top, "apd"), (top, "prt")]),
        ("3 of them", [(top, "excess"), (top, "prt"), (top, "jsd")]),
    ):
        yield f"mean rank {name:10}  {correlation(shares, sum(ranked[part] for part in parts))}"
    yield f"{'found':20}  {' '.join(f'{share:5.1f}' for share in SHARES)}  untouched with p < {LEVEL}"
    yield from tests


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("bundle", metavar="BUNDLE", help="folder of the model")
    parser.add_argument("texts", type=Path, nargs="+", metavar="TEXT", help="segmented text, one sentence a line")
    parser.add_argument("--pairs", type=int, default=44, help="pairs of words that change places (default 44)")
    parser.add_argument("--untouched", type=int, default=60, help="words that do not (default 60)")
    parser.add_argument("--least", type=int, default=30, help="least occurrences in each half (default 30)")
    parser.add_argument("--most", type=int, default=120, help="most occurrences in each half (default 120)")
    parser.add_argument("--permutations", type=int, default=10_000, help="permutations of a word (default 10,000)")
    parser.add_argument("--seed", type=int, default=1, help="seed of everything drawn (default 1)")
    arguments = parser.parse_args()
    with TemporaryDirectory() as folder:
        for line in report(arguments, Path(folder)):
            print(line, flush=True)


if __name__ == "__main__":
    main()
