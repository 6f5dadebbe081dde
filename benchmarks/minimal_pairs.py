"""How often does a model prefer the grammatical sentence of a minimal pair? For ZhoBLiMP, SLING and CLiMP.

Usage: python benchmarks/minimal_pairs.py BUNDLE FOLDER

BUNDLE is a folder or the name of an installed model. FOLDER holds one file for each paradigm: data/ZhoBLiMP of
github.com/sjtu-compling/ZhoBLiMP (after unpacking data/ZhoBLiMP.tar.gz), SLING_Data of
github.com/Yixiao-Song/SLING_Data_Code, or CLiMP_corpus of github.com/beileixiang/CLiMP (after unpacking its zip file).

Prints the percentage of right pairs by five measures, for each phenomenon (the mean over its paradigms) and each
paradigm. Probability, perplexity and SLLN-LP are those of `score --pairs`; forward and backward are the probability
under one direction alone. All include the spelling of unknown words, except perplexity.
"""

import argparse
import csv
import json
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from elmo_zh.contexts.line_scorer import LineScore, LineScorer

HEADER = ("probability", "perplexity", "SLLN-LP", "forward", "backward")


def load_paradigm(path: Path, folder: Path) -> tuple[str, list[str]]:
    """Return the phenomenon that a file is about, and its sentences, alternately good and bad."""
    if path.suffix == ".jsonl":
        records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        # SLING has a folder for each phenomenon, and its records name it in several ways.
        phenomenon = records[0]["phenomenon"] if path.parent == folder else path.parent.name
        return phenomenon, [record[f"sentence_{name}"] for record in records for name in ("good", "bad")]
    rows = list(csv.reader(path.read_text(encoding="utf-8").splitlines()))
    if len(rows[0]) == 1:  # CLiMP's ba construction has no columns
        return path.stem.removesuffix("_1000"), [sentence for [sentence] in rows]
    assert [row[4] for row in rows[1:]] == ["1", "0"] * (len(rows) // 2), f"{path}: good and bad do not alternate"
    return rows[1][1], [row[3] for row in rows[1:]]


def measures(score: LineScore) -> list[float]:
    """Return a sentence's values by each measure of the header: the higher, the better."""
    assert score.perplexity is not None
    assert score.slln_lp is not None
    costs = [score.mean_nats, score.forward_nats, score.backward_nats]
    by_both, forward, backward = (-cost - score.spelling_nats for cost in costs)
    return [by_both, -score.perplexity, score.slln_lp, forward, backward]


def iter_paradigms(scorer: LineScorer, folder: Path) -> Iterator[tuple[str, str, NDArray[np.bool_]]]:
    """Yield each file's phenomenon, its paradigm, and which pairs are right by each measure, shape (pairs, 5)."""
    paths = [path for path in sorted(folder.rglob("*")) if path.suffix in (".jsonl", ".csv") and path.name[0] != "."]
    for path in paths:
        phenomenon, sentences = load_paradigm(path, folder)
        values = np.array([measures(score) for score in scorer.score(sentences)])
        yield phenomenon, path.stem.removesuffix("_1000"), values[::2] > values[1::2]


def print_row(name: str, count: int, shares: NDArray[np.float64]) -> None:
    print(f"{name:44s}{count:7,}", *(f"{100 * share:13.1f}" for share in shares), sep="", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle")
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    scorer = LineScorer.load(arguments.bundle)
    print(f"{'paradigm':44s}{'pairs':>7s}", *(f"{name:>13s}" for name in HEADER), sep="")
    pairs, phenomena = [], dict[str, list[NDArray[np.float64]]]()
    for phenomenon, paradigm, right in iter_paradigms(scorer, arguments.folder):
        print_row(paradigm, len(right), right.mean(axis=0))
        pairs.append(right)
        phenomena.setdefault(phenomenon, []).append(right.mean(axis=0))
    print(f"\n{'phenomenon':42s}{'paradigms':>9s}", *(f"{name:>13s}" for name in HEADER), sep="")
    by_phenomenon = {name: np.mean(shares, axis=0) for name, shares in sorted(phenomena.items())}
    for name, shares in by_phenomenon.items():
        print_row(name, len(phenomena[name]), shares)
    everything = np.concatenate(pairs)
    print()
    print_row("all pairs", len(everything), everything.mean(axis=0))
    print_row("mean of paradigms", len(pairs), np.mean([right.mean(axis=0) for right in pairs], axis=0))
    print_row("mean of phenomena", len(by_phenomenon), np.mean(list(by_phenomenon.values()), axis=0))
    print(f"{time.process_time():.0f} processor seconds")


if __name__ == "__main__":
    main()
