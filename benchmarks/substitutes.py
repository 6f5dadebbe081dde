"""How good are substitutes? Chooses the prior and its power, and asks whether they tell senses apart.

Usage: python benchmarks/substitutes.py BUNDLE HELDOUT [--counts RUN/vocab.counts] [--senses FILE.jsonl]

HELDOUT is segmented text, one sentence a line, that the model was not trained on. At drawn places with a word of the
vocabulary, the words are ranked by p_f p_b / prior^power, and the rank of the true word is noted, beside its rank by
each direction alone. Then, for two occurrences of a word: do their substitutes overlap more if the word has the same
sense? The area under the ROC curve of the overlap (0.5 is chance), the mean over words, with an interval by drawing
words again; on the marked words of data/senses.tsv, and of FILE.jsonl with the keys context, target_word,
target_position and sense. The sentences of data/senses.tsv are the sample's own.
"""

import argparse
import gzip
import json
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations, product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from elmo_zh import ElmoEmbedder
from elmo_zh.choices import RANKINGS
from elmo_zh.embed.substitutes import Place, SubstituteFinder, combine, log_softmax, zipf_log_prior
from elmo_zh.text.sentences import split_sentences
from elmo_zh.vocabulary.vocabulary import SPECIALS, UNKNOWN_ID

DATA = Path(__file__).parent.parent / "data"
POWERS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5)
TOP, BATCH, DRAWS = 20, 64, 2000
Occurrences = dict[str, list[tuple[str, Place]]]


def heldout_places(path: Path, embedder: ElmoEmbedder, count: int) -> list[Place]:
    """Return drawn places of words of the vocabulary, with their sentences."""
    places = []
    for line in path.read_text(encoding="utf-8").split("\n"):
        tokens = line.split(" ")
        known = ~embedder.find_unknown(tokens)
        places += [(tokens, place) for place in range(len(tokens)) if known[place] and tokens[place]]
    return random.Random(1).sample(places, min(count, len(places)))


Priors = dict[str, NDArray[np.float32]]


def log_priors(embedder: ElmoEmbedder, counts: Path | None) -> Priors:
    """Return the candidates for the log of the prior, each of shape (V,)."""
    vocabulary = embedder.bundle.require_probabilities()
    bias = log_softmax(embedder.bundle.weights.arrays["softmax.bias"])
    priors = {"zipf": zipf_log_prior(len(vocabulary)), "bias": bias}
    if counts:
        rows = dict(line.split("\t") for line in counts.read_text(encoding="utf-8").split("\n") if line)
        found = np.array([int(rows.get(token, 1)) for token in vocabulary.tokens], np.float32)
        priors["counts"] = np.log(found + 1) - np.log((found + 1).sum())
    return priors


def true_ranks(scores: NDArray[np.float32], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the rank from 1 of a row in each line of scores, shape (N, V)."""
    true_scores = np.take_along_axis(scores, rows[:, None], axis=1)
    return np.asarray(1 + (scores > true_scores).sum(axis=1))


def rank_table(
    embedder: ElmoEmbedder, places: Sequence[Place], priors: dict[str, NDArray[np.float32]]
) -> dict[str, list[int]]:
    """Return the rank of the true word at each place, by way of ranking."""
    finder = SubstituteFinder(embedder.bundle)
    vocabulary = embedder.bundle.require_probabilities()
    ranks = defaultdict(list)
    for start in range(0, len(places), BATCH):
        chosen = places[start : start + BATCH]
        forward, backward = finder.log_probabilities(chosen, "slot")
        rows = np.array(vocabulary.encode([tokens[place] for tokens, place in chosen]))
        assert UNKNOWN_ID not in rows
        zeros = np.zeros(len(vocabulary), np.float32)
        ways = {"forward alone": combine(forward, zeros, zeros), "backward alone": combine(zeros, backward, zeros)}
        ways |= {f"{name} ^ {power}": combine(forward, backward, power * prior)
                 for name, prior in priors.items() for power in POWERS}  # fmt: skip
        for way, scores in ways.items():
            ranks[way] += true_ranks(scores, rows).tolist()
    return ranks


def marked_sentence(mark: dict[str, str]) -> tuple[str, int]:
    """Return the sentence that a mark stands in, and how many characters stand before the word in it."""
    paragraph = (DATA / "sample" / mark["file"]).read_text(encoding="utf-8").split("\n")[int(mark["line"])]
    place = 0
    for sentence in split_sentences(paragraph):
        if place <= int(mark["start"]) < place + len(sentence):
            return sentence, int(mark["start"]) - place
        place += len(sentence)
    raise ValueError(f"no sentence at {mark}")


def token_index(tokens: list[str], sentence: str, start: int) -> int:
    """Return which token begins after `start` characters of the sentence, spaces not counted."""
    wanted = len(sentence[:start].replace(" ", ""))
    begins = np.cumsum([0, *(len(token) for token in tokens)])
    return int(np.flatnonzero(begins == wanted)[0])


def sample_occurrences(embedder: ElmoEmbedder) -> Occurrences:
    """Return the marked words of the sample."""
    lines = (DATA / "senses.tsv").read_text(encoding="utf-8").strip().split("\n")
    names = lines[0].split("\t")
    found = defaultdict(list)
    for line in lines[1:]:
        mark = dict(zip(names, line.split("\t"), strict=True))
        sentence, start = marked_sentence(mark)
        tokens = embedder.tokens(sentence)
        index = token_index(tokens, sentence, start)
        if tokens[index] == mark["word"]:
            found[mark["word"]].append((mark["sense"], (tokens, index)))
    return found


def labelled_occurrences(path: Path, most: int) -> Occurrences:
    """Return the words of a file of JSON lines, at most so many occurrences of each."""
    found = defaultdict(list)
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    for record in map(json.loads, text.decode().splitlines()):
        tokens, place = list(record["context"]), record["target_position"]
        tokens[place] = record["target_word"]
        if len(found[record["target_word"]]) < most:
            found[record["target_word"]].append((" ".join(record["sense"]), (tokens, place)))
    return found


def word_areas(embedder: ElmoEmbedder, occurrences: Occurrences, ranking: str) -> Iterator[tuple[str, float, int]]:
    """Yield each word that has pairs of both kinds, the area under its curve, and its number of pairs."""
    for word, found in sorted(occurrences.items()):
        substitutes = embedder.substitutes_many([place for _, place in found], TOP + 1, ranking=ranking)
        sets = [set(each.words[:TOP]) for each in substitutes]
        same, other = [], []
        for (left, (sense, _)), (right, (another, _)) in combinations(enumerate(found), 2):
            (same if sense == another else other).append(len(sets[left] & sets[right]))
        if same and other:
            difference = np.subtract.outer(same, other)
            yield word, float((difference > 0).mean() + (difference == 0).mean() / 2), len(same) + len(other)


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95% interval of the mean, by drawing the values again."""
    generator = np.random.default_rng(1)
    means = generator.choice(values, (DRAWS, len(values))).mean(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    return float(low), float(high)


def report(arguments: argparse.Namespace) -> Iterator[str]:
    embedder = ElmoEmbedder.load(arguments.bundle, device="cpu")
    training = embedder.bundle.info["training"]
    perplexity = (training.get("heldout") or {}).get("perplexity", float("nan"))
    yield f"model: text of {training.get('train_tokens', 0):,} tokens, held-out perplexity {perplexity:.1f}"
    places = heldout_places(arguments.heldout, embedder, arguments.places)
    size = len(embedder.bundle.require_probabilities()[1]) - len(SPECIALS)
    yield f"rank of the true word among {size:,} at {len(places):,} held-out places"
    yield f"{'ranking':16} {'median':>7} {'MRR':>7} {'top 1':>7} {'top 20':>7}"
    for way, found in rank_table(embedder, places, log_priors(embedder, arguments.counts)).items():
        ranks = np.array(found)
        top = f"{(ranks == 1).mean():7.4f} {(ranks <= TOP).mean():7.4f}"
        yield f"{way:16} {np.median(ranks):7.1f} {(1 / ranks).mean():7.4f} {top}"
    sets = {"data/senses.tsv": sample_occurrences(embedder)}
    if arguments.senses:
        sets[arguments.senses.name] = labelled_occurrences(arguments.senses, arguments.most)
    for (name, occurrences), ranking in product(sets.items(), RANKINGS):
        areas = list(word_areas(embedder, occurrences, ranking))
        pairs = sum(number for _, _, number in areas)
        yield f"overlap of {TOP} substitutes by {ranking}, {name}: {len(areas)} words, {pairs:,} pairs"
        for word, area, pairs in areas if arguments.words else ():
            yield f"  {word}  {area:.3f}  {pairs:,} pairs"
        values = [area for _, area, _ in areas]
        low, high = interval(values)
        yield f"area under the curve, mean over words: {np.mean(values):.3f} (95% interval {low:.3f} to {high:.3f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("bundle", metavar="BUNDLE", help="folder of the model")
    parser.add_argument("heldout", type=Path, metavar="HELDOUT", help="segmented text, one sentence a line")
    parser.add_argument("--counts", type=Path, metavar="FILE", help="vocab.counts of the run, for the true prior")
    parser.add_argument("--senses", type=Path, metavar="FILE", help="JSON lines of marked words")
    parser.add_argument("--places", type=int, default=2000, help="places to draw (default 2000)")
    parser.add_argument("--most", type=int, default=40, help="occurrences of a word of --senses to take (default 40)")
    parser.add_argument("--words", action="store_true", help="also show the area of each word")
    for line in report(parser.parse_args()):
        print(line, flush=True)


if __name__ == "__main__":
    main()
