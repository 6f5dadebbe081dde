"""Compare the default training recipe with the published one on the same text, by exact held-out perplexity.

Usage: python benchmarks/recipes.py CORPUS... --work FOLDER [--tokens N] [--set section.key=value ...]
       python benchmarks/recipes.py --work FOLDER --measure     (score existing runs only)
       python benchmarks/recipes.py ... --beside RECORD.json    (draw the curves of an earlier record too)

Both recipes train the model of configs/small.toml. The published recipe is that of configs/original.toml (Adagrad with
learning rate 0.2, random embeddings, carried state), with small.toml's batch size, vocabulary and negatives. Each
checkpoint is scored in two ways: every sentence from zero state, and with the state carried over the held-out text in
its order, which is the best case for a model trained with carried state. Prints a table and writes
benchmarks/records/DATE-recipes.json and .png. An interrupted benchmark resumes.
"""

import argparse
import json
import shutil
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from elmo_zh.cli.console import Console
from elmo_zh.config import Config, load_config
from elmo_zh.id_store.encoded_sentences import IdStore
from elmo_zh.id_store.layout import load_id_store
from elmo_zh.model.language_model import LanguageModel, build_shape
from elmo_zh.run.layout import RunDir
from elmo_zh.run.record import StageContext
from elmo_zh.scoring.exact import Figures, batch_costs, costs_from, total_cost
from elmo_zh.stages.encode import encode
from elmo_zh.stages.segment import segment
from elmo_zh.stages.train import train
from elmo_zh.stages.vocab import vocab
from elmo_zh.stages.word2vec import word2vec
from elmo_zh.training.checkpoint import CheckpointFolder
from elmo_zh.training.evaluation import measure_text
from elmo_zh.training.metrics import MetricsFile
from elmo_zh.training.optimizer import step_tokens
from elmo_zh.vocabulary.vocabulary import load_vocabulary

PUBLISHED = ["word2vec.enabled=false", "train.carry_state=true", "train.optimizer=adagrad", "train.learning_rate=0.2",
             "train.table_learning_rate=0.2", "train.schedule=constant", "train.warmup_tokens=0",
             "model.tie_softmax=false", "train.dropout=0.1", "train.adagrad_accumulator=1.0",
             "train.softmax_bias=zero"]  # fmt: skip
RECIPES: dict[str, list[str]] = {"published": PUBLISHED, "default": []}


def train_recipes(corpus: list[str], work: Path, tokens: int, settings: list[str]) -> None:
    """Prepare the text once, and train both recipes on it."""
    console, checkpoint_tokens = Console(quiet=False), max(1, tokens // 10)
    budget = [f"train.max_tokens={tokens}", "train.epochs=0", "train.keep_checkpoints=1000",
              f"train.checkpoint_every_tokens={checkpoint_tokens}",
              f"train.evaluate_every_tokens={checkpoint_tokens}"]  # fmt: skip
    base = RunDir(work / "base")
    config = load_config(Config(), None, [*budget, *settings])
    context = StageContext(run=base, config=config, reporter=console)
    segment(context, corpus)
    for stage in (vocab, word2vec, encode):
        stage(context)
    for name, changes in RECIPES.items():
        if not (work / name).exists():
            shutil.copytree(base.path, work / name)
        config = load_config(Config(), None, [*budget, *changes, *settings])
        train(StageContext(run=RunDir(work / name), config=config, reporter=console))


def score(model: LanguageModel, store: IdStore, chosen: np.ndarray[Any, Any], *, carried: bool) -> Figures:
    """Return the exact figures of held-out sentences, each from zero state or with the previous sentence's state."""
    sentences = [store.heldout[int(index)] for index in chosen]
    if not carried:
        costs = batch_costs(model.bilm, model.softmax, store.lexicon, sentences)
        return Figures.build(measure_text(store, chosen), *total_cost(costs))
    totals, state = np.zeros(2), model.bilm.zero_state(1)
    for sentence in sentences:
        costs, state = costs_from(model.bilm, model.softmax, store.lexicon, sentence, state)
        totals += costs.sum(axis=1)
    return Figures.build(measure_text(store, chosen), *totals)


def measure(run: RunDir, heldout_tokens: int, max_tokens: int) -> list[dict[str, Any]]:
    """Return the figures of every checkpoint that was saved on schedule."""
    config = run.load_config(None, [])
    vocabulary = load_vocabulary(run.vocab)
    store = load_id_store(run.ids, vocabulary)
    lengths = store.heldout.lengths(np.arange(len(store.heldout)))
    # The first sentences in their order, because carrying a state makes sense only there.
    chosen = np.arange(int(np.searchsorted(np.cumsum(lengths), heldout_tokens)) + 1)[: len(lengths)]
    model = LanguageModel.build(build_shape(config.model, len(vocabulary)), tie_softmax=config.model.is_tied)
    seconds = {
        line["tokens"]: line["elapsed_seconds"] for line in MetricsFile(run.metrics).lines() if "train_loss" in line
    }
    folder, rows = CheckpointFolder(run.checkpoints), []
    for step in folder.steps():
        tokens = step * step_tokens(config.train)
        if folder.state(step)["interrupted"] or tokens > 1.01 * max_tokens:
            continue
        model.load_named_tensors(folder.load(step, with_optimizer=False).model)
        zero, carried = (score(model, store, chosen, carried=is_carried) for is_carried in (False, True))
        nearest = min(seconds, key=lambda logged: abs(logged - tokens))
        rows.append({"tokens": tokens, "seconds": seconds[nearest] * tokens / nearest, "zero_state": zero.perplexity,
                     "carried_state": carried.perplexity, "bits_per_character": zero.bits_per_character})  # fmt: skip
        print(
            f"{run.path.name:10} {tokens:>11,} {rows[-1]['seconds']:9,.0f} {zero.perplexity:12,.1f}"
            f" {carried.perplexity:12,.1f}",
            flush=True,
        )
    return rows


def draw(curves: dict[str, list[dict[str, Any]]], output: Path) -> None:
    figure = Figure(figsize=(10, 4.5), layout="constrained")
    for axes, across, label in zip(
        figure.subplots(1, 2, sharey=True),
        ("tokens", "seconds"),
        ("million tokens (one direction)", "minutes"),
        strict=True,
    ):
        unit = 1e6 if across == "tokens" else 60
        for number, (name, rows) in enumerate(curves.items()):
            for way, style in (("zero_state", "-o"), ("carried_state", "--")):
                axes.plot(
                    [r[across] / unit for r in rows],
                    [r[way] for r in rows],
                    style,
                    color=f"C{number}",
                    markersize=3,
                    label=f"{name}, {way.replace('_', ' ')}",
                )
        axes.set_yscale("log")
        axes.set_xlabel(label)
        axes.grid(alpha=0.3, which="both")
    figure.axes[0].set_ylabel("exact held-out perplexity")
    figure.axes[0].legend()
    figure.savefig(output, dpi=110, metadata={"Software": None})


def earlier_curves(record: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the curves of an earlier record; its default recipe is named by its date."""
    found = json.loads(record.read_text(encoding="utf-8"))
    return {
        f"default of {found['date']}" if name == "default" else name: rows for name, rows in found["curves"].items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", nargs="*")
    parser.add_argument("--work", type=Path, required=True, help="folder for the runs")
    parser.add_argument("--tokens", type=int, default=10_000_000, help="token budget of each recipe")
    parser.add_argument(
        "--heldout-tokens", type=int, default=20_000, help="number of held-out tokens to score at each checkpoint"
    )
    parser.add_argument("--set", action="append", default=[], help="setting of both recipes, section.key=value")
    parser.add_argument("--measure", action="store_true", help="only score existing checkpoints")
    parser.add_argument("--beside", type=Path, help="record whose curves are drawn too, measured on the same text")
    arguments = parser.parse_args()
    if not arguments.measure:
        train_recipes(arguments.corpus, arguments.work, arguments.tokens, arguments.set)
    print(f"{'recipe':10} {'tokens':>11} {'seconds':>9} {'zero state':>12} {'carried':>12}   exact held-out perplexity")
    curves = earlier_curves(arguments.beside) if arguments.beside else {}
    for name in RECIPES:
        if (arguments.work / name).exists():
            curves[name] = measure(RunDir(arguments.work / name), arguments.heldout_tokens, arguments.tokens)
    last, best = curves["default"][-1], min(r["carried_state"] for r in curves["published"])
    overtaken_at = next((row["tokens"] for row in curves["default"] if row["zero_state"] <= best), None)
    print(
        f"At the end: default {last['zero_state']:,.1f} (zero state), published {best:,.1f} (best case, carried state),"
        f" {1 - last['zero_state'] / best:.0%} lower. The default reaches the published result after"
        f" {overtaken_at or 'no'} tokens."
    )
    output = Path(__file__).parent / "records" / f"{date.today()}-recipes"
    output.with_suffix(".json").write_text(
        json.dumps({"date": str(date.today()), "curves": curves}, indent=1) + "\n", encoding="utf-8"
    )
    draw(curves, output.with_suffix(".png"))


if __name__ == "__main__":
    main()
