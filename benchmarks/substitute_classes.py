"""How many of the first ten substitutes are in the word's class of a thesaurus?

Usage: python benchmarks/substitute_classes.py BUNDLE TAGGED.conllu THESAURUS

At drawn places of nouns, verbs and adjectives in sentences with universal part-of-speech tags, by both rankings; each
mean with an interval by drawing places again. THESAURUS has lines of a code and its words, separated by spaces; codes
with the same first four characters are one class, and other codes than those of eight characters are left out (the form
of Tongyici Cilin).
"""

import argparse
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from substitutes import interval

from elmo_zh import ElmoEmbedder
from elmo_zh.checks import Place
from elmo_zh.choices import RANKINGS

PARTS_OF_SPEECH = ("NOUN", "VERB", "ADJ")
TOP, LEAST_TOKENS = 10, 6


def load_classes(path: Path) -> dict[str, set[str]]:
    """Return the classes of each word."""
    classes = defaultdict(set)
    content = path.read_bytes()
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        text = content.decode("gb18030")
    for line in text.splitlines():
        code, *words = line.split() or [""]
        for word in words if len(code) == 8 else ():
            classes[word].add(code[:4])
    return classes


def iter_sentences(path: Path) -> Iterator[list[tuple[str, str]]]:
    """Yield sentences of a CoNLL-U file as pairs of word and part of speech."""
    for block in path.read_text(encoding="utf-8").strip().split("\n\n"):
        rows = [line.split("\t") for line in block.split("\n") if not line.startswith("#")]
        yield [(row[1], row[3]) for row in rows if row[0].isdecimal()]


def draw_places(
    embedder: ElmoEmbedder, path: Path, classes: dict[str, set[str]], count: int, seed: int
) -> dict[str, list[Place]]:
    """Return so many places of each part of speech, of words that the model and the thesaurus know."""
    vocabulary = embedder.bundle.require_probabilities()
    pools = defaultdict(list)
    for sentence in iter_sentences(path):
        tokens = [word for word, _ in sentence]
        for position, (word, tag) in enumerate(sentence):
            if len(tokens) >= LEAST_TOKENS and word in vocabulary and word in classes:
                pools[tag].append((tokens, position))
    drawn = random.Random(seed)
    return {tag: drawn.sample(pools[tag], count) for tag in PARTS_OF_SPEECH}


def describe(values: Sequence[float]) -> str:
    low, high = interval(values)
    return f"{np.mean(values):.3f} ({low:.3f} to {high:.3f})"


def report(arguments: argparse.Namespace) -> Iterator[str]:
    embedder = ElmoEmbedder.load(arguments.bundle, device="cpu")
    classes = load_classes(arguments.thesaurus)
    drawn = draw_places(embedder, arguments.tagged, classes, arguments.places, arguments.seed)
    places = [place for each in drawn.values() for place in each]
    words = {
        name: [each.words[:TOP] for each in embedder.substitutes_many(places, TOP + 1, ranking=name)]
        for name in RANKINGS
    }
    yield f"share of the first {TOP} in the word's class, {len(places)} places: mean (95% interval)"
    yield f"{'':8}" + "".join(f" {name:>23}" for name in RANKINGS)
    shares: dict[str, list[float]] = {name: [] for name in RANKINGS}
    for name, found in words.items():
        for (tokens, position), substitutes in zip(places, found, strict=True):
            own = classes[tokens[position]]
            shares[name].append(float(np.mean([bool(classes.get(word, set()) & own) for word in substitutes])))
    for row, tag in enumerate([*drawn, "all"]):
        part = slice(None) if tag == "all" else slice(row * arguments.places, (row + 1) * arguments.places)
        yield f"{tag:8}" + "".join(f" {describe(shares[name][part]):>23}" for name in RANKINGS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("bundle", metavar="BUNDLE", help="folder of the model")
    parser.add_argument("tagged", type=Path, metavar="TAGGED", help="CoNLL-U file")
    parser.add_argument("thesaurus", type=Path, metavar="THESAURUS", help="lines of a code and its words")
    parser.add_argument("--places", type=int, default=100, help="places of each part of speech (default 100)")
    parser.add_argument("--seed", type=int, default=36, help="seed of the draw (default 36)")
    for line in report(parser.parse_args()):
        print(line, flush=True)


if __name__ == "__main__":
    main()
