"""How well does a model predict texts of several kinds, beside the bigram model of its own training text?

Usage: python benchmarks/starter.py BUNDLE RUN FILE...

RUN is the run that the bundle was exported from: its token ids train the bigram model. FILE holds one paragraph a line,
none of them in the training text. Prints a Markdown table with a row for each file: tokens, unknown words, and exact
perplexity and bits per character of the model and of the Kneser-Ney bigram model, mean of both directions.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

from elmo_zh.bundle.read import Bundle, load_bundle
from elmo_zh.contexts.line_scorer import LineScorer
from elmo_zh.corpus.text_files import iter_lines
from elmo_zh.id_store import load_id_store
from elmo_zh.run.layout import RunDir
from elmo_zh.run.tables import table
from elmo_zh.scoring import TextCost
from elmo_zh.training.evaluation import KneserNeyBigram, pairs
from elmo_zh.vocabulary.vocabulary import BEGIN_ID, END_ID, load_vocabulary


def bigram_models(run: RunDir) -> list[tuple[int, KneserNeyBigram]]:
    """Return each direction, 1 or -1, with its bigram model."""
    store = load_id_store(run.ids, load_vocabulary(run.vocab))
    num_tokens = len(store.lexicon.vocabulary)
    found = pairs(store.train, np.arange(len(store.train)), store.lexicon)
    return [
        (direction, KneserNeyBigram(*found[:, ::direction].T, num_tokens, start))
        for direction, start in ((1, BEGIN_ID), (-1, END_ID))
    ]


def bigram_nats(models: list[tuple[int, KneserNeyBigram]], bundle: Bundle, sentences: list[list[str]]) -> float:
    """Return the cost of sentences in nats, mean of the directions."""
    assert bundle.vocabulary is not None
    marked = [[BEGIN_ID, *bundle.vocabulary.encode(sentence), END_ID] for sentence in sentences]
    adjacent = np.concatenate([np.stack([ids[:-1], ids[1:]], axis=1) for ids in map(np.array, marked)])
    return sum(-float(np.log(model.probabilities(*adjacent[:, ::way].T)).sum()) for way, model in models) / 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("run", type=Path)
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    arguments = parser.parse_args()
    bundle, models = load_bundle(arguments.bundle), bigram_models(RunDir(arguments.run))
    scorer, preparation = LineScorer(bundle, split_sentences=True), bundle.build_preparation()
    rows = []
    for path in arguments.files:
        lines = list(dict.fromkeys(line for line in iter_lines(path) if line.strip()))
        scores = [score for score in scorer.score(lines) if score.num_sentences]
        cost = sum(scores, TextCost())
        sentences = [tokens for line in lines for tokens in preparation.sentences(line) if tokens]
        assert sum(map(len, sentences)) == cost.num_tokens
        figures = [f"{cost.num_tokens:,}", f"{cost.num_unknown / cost.num_tokens:.1%}"]
        for nats in (cost.mean_nats, bigram_nats(models, bundle, sentences)):
            measured = replace(cost, forward_nats=nats, backward_nats=nats).figures()
            figures += [f"{measured.perplexity:,.1f}", f"{measured.bits_per_character:.3f}"]
        rows.append((path.stem, *figures))
        print(*rows[-1], sep="\t", flush=True)
    head = ("text", "tokens", "unknown", "perplexity", "bits per character", "bigram: perplexity", "bits per character")
    print(table(head, rows))


if __name__ == "__main__":
    main()
