"""Do two occurrences of a word share more substitutes if the word has the same sense?

Usage: python benchmarks/substitutes.py BUNDLE [--senses FILE.jsonl]

The area under the ROC curve of the overlap (0.5 is chance), by both rankings: the mean over words, with an interval by
drawing words again; on the marked words of data/senses.tsv, and of FILE.jsonl with the keys context, target_word,
target_position and sense. The sentences of data/senses.tsv are the sample's own.
"""

import argparse
import gzip
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations, product
from pathlib import Path

import numpy as np

from elmo_zh import ElmoEmbedder
from elmo_zh.checks import Place
from elmo_zh.choices import RANKINGS
from elmo_zh.text.sentences import split_sentences

DATA = Path(__file__).parent.parent / "data"
TOP, DRAWS = 20, 2000
Occurrences = dict[str, list[tuple[str, Place]]]


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
    yield f"model: text of {training.get('train_tokens', 0):,} tokens"
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
    parser.add_argument("--senses", type=Path, metavar="FILE", help="JSON lines of marked words")
    parser.add_argument("--most", type=int, default=40, help="occurrences of a word of --senses to take (default 40)")
    parser.add_argument("--words", action="store_true", help="also show the area of each word")
    for line in report(parser.parse_args()):
        print(line, flush=True)


if __name__ == "__main__":
    main()
