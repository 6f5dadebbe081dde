"""How far rjieba's tokens are jieba's, and how fast each segmenter is.

Usage: python benchmarks/segmenters.py CORPUS... [--set text.jieba_hmm=false] [--examples N]

Takes the normalised sentences of each file as the segment stage does, and times each segmenter on them in one process,
by processor seconds. Beside `rjieba` stands the package left alone, without what elmo_zh.text.segmenters.rjieba puts
right. Then the classes of places where each of the two differs from jieba: a place is the text between two token ends
that both have in common.
"""

import argparse
import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path

from rjieba import Jieba

from elmo_zh.config import Config, load_config
from elmo_zh.corpus.content import suffix_of
from elmo_zh.corpus.sources import find_sources
from elmo_zh.corpus.text_files import iter_lines
from elmo_zh.text.preparation import TextPreparation
from elmo_zh.text.segmenters import Segmenter, build_segmenter
from elmo_zh.text.sentences import split_sentences

SEGMENTERS = ("jieba", "rjieba", "character", "whitespace")
LEFT_ALONE = "rjieba alone"
RARE_HAN = re.compile("[\u3400-\u4dbf\u9fd6-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
# The first that is found in a place names its class.
CLASSES = {
    "percent sign": re.compile("%"),
    "dot": re.compile(r"\."),
    "hyphen": re.compile("-"),
    "underscore": re.compile("_"),
    "+ # &": re.compile("[+#&]"),
    "other Latin or digits": re.compile("[A-Za-z0-9]"),
    "white space": re.compile(r"\s"),
    "Han only": re.compile("[\u4e00-\u9fd5]"),
    "other": re.compile(""),
}

Tokens = list[str]


def load_sentences(path: Path, preparation: TextPreparation) -> list[str]:
    pieces = (piece for line in iter_lines(path) for piece in split_sentences(line))
    return list(filter(None, map(preparation.normalise, pieces)))


def build_segmenters(config: Config) -> dict[str, Segmenter]:
    alone, use_hmm = Jieba(), config.text.jieba_hmm
    built = {name: build_segmenter(load_config(config, None, [f"text.segmenter={name}"]).text) for name in SEGMENTERS}
    return {**built, LEFT_ALONE: lambda sentence: [t for t in alone.cut(sentence, use_hmm) if t != " "]}


def timed(segment: Segmenter, sentences: Sequence[str]) -> tuple[list[Tokens], float]:
    start = time.process_time()
    tokens = [segment(sentence) for sentence in sentences]
    return tokens, time.process_time() - start


def ends(tokens: Tokens) -> set[int]:
    return set(accumulate(map(len, tokens)))


def num_common(left: Tokens, right: Tokens) -> int:
    """Return how many tokens of `left` stand at the same place in `right`."""
    spans = [set(zip(accumulate(map(len, tokens)), map(len, tokens), strict=True)) for tokens in (left, right)]
    return len(spans[0] & spans[1])


def differences(left: Tokens, right: Tokens) -> Iterator[tuple[str, str, str]]:
    """Yield class, left and right tokens of each place where the two are not the same."""
    text = "".join(left)
    common, start = ends(left) & ends(right), 0
    for ours, theirs in zip(cut_at(left, common), cut_at(right, common), strict=True):
        end = start + sum(map(len, ours))
        if ours != theirs:
            yield class_of(text[start:end], text[max(0, start - 1) : end + 1]), " ".join(ours), " ".join(theirs)
        start = end


def cut_at(tokens: Tokens, places: set[int]) -> Iterator[Tokens]:
    group: Tokens = []
    for token, end in zip(tokens, accumulate(map(len, tokens)), strict=True):
        group.append(token)
        if end in places:
            yield group
            group = []


def class_of(place: str, with_neighbours: str) -> str:
    if RARE_HAN.search(with_neighbours):
        return "rare Han, in it or beside it"
    return next(name for name, pattern in CLASSES.items() if pattern.search(place))


def compare(files: Sequence[Path], config: Config) -> tuple[dict[str, Counter[str]], dict[str, Counter[str]]]:
    """Print a row a file; return the classes of each segmenter's differences, and the examples of each class."""
    preparation, segmenters = TextPreparation.build(config.text), build_segmenters(config)
    totals: Counter[str] = Counter()
    classes: dict[str, Counter[str]] = defaultdict(Counter)
    examples: dict[str, Counter[str]] = defaultdict(Counter)
    for path in files:
        row: Counter[str] = Counter()
        sentences = load_sentences(path, preparation)
        row["bytes"] = sum(len(sentence.encode()) for sentence in sentences)
        results = {}
        for name, segment in segmenters.items():
            results[name], seconds = timed(segment, sentences)
            row[f"{name} us"] = round(seconds * 1e6)
        row["sentences"], row["tokens"] = len(sentences), sum(map(len, results["jieba"]))
        for name in ("rjieba", LEFT_ALONE):
            for expected, found in zip(results["jieba"], results[name], strict=True):
                row[f"{name} sentences"] += expected == found
                row[f"{name} tokens"] += len(found) if expected == found else num_common(expected, found)
                for kind, theirs, ours in differences(expected, found) if expected != found else ():
                    classes[name][kind] += 1
                    examples[f"{name} {kind}"][f"{theirs} | {ours}"] += 1
        print_row(path.name, row)
        totals += row
    print_row("all", totals)
    return classes, examples


def print_row(name: str, row: Counter[str]) -> None:
    shares = [
        f"{100 * row[f'{which} {what}'] / max(1, row[what]):11.4f}"
        for which in ("rjieba", LEFT_ALONE)
        for what in ("sentences", "tokens")
    ]
    rates = [f"{row['bytes'] / max(1, row[f'{which} us']):10.2f}" for which in (*SEGMENTERS, LEFT_ALONE)]
    print(f"{name:24}{row['bytes'] / 1e6:8.1f}{row['sentences']:11,}{row['tokens']:12,}", *shares, *rates, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", nargs="+")
    parser.add_argument("--set", action="append", default=[], metavar="section.key=value")
    parser.add_argument("--examples", type=int, default=5)
    options = parser.parse_args()
    config = load_config(Config(), None, options.set)
    print(
        "Sentences and tokens in % of jieba's that are the same: rjieba, rjieba alone. MB/s:", *SEGMENTERS, LEFT_ALONE
    )
    sources = find_sources(options.corpus).sources
    paths = [each.path for each in sources if each.is_named or suffix_of(each.file_name) in ("", ".txt", ".text")]
    classes, examples = compare(paths, config)
    for name, counts in classes.items():
        print(f"\n{name} differs from jieba at {counts.total():,} places (jieba | {name}):")
        for kind, count in counts.most_common():
            print(f"{count:9,}  {kind}")
            for example, times in examples[f"{name} {kind}"].most_common(options.examples):
                print(f"{'':11}{times:,} x  {example}")


if __name__ == "__main__":
    main()
