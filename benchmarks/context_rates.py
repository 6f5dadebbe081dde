"""Compare the speed of `index` with that of `embed`, and of `score` with that of `evaluate`, on the same text.

Usage: python benchmarks/context_rates.py BUNDLE TEXT [--rounds N] [--max-per-word N] [--pairs index score]

TEXT is raw text. All work is done in this process, by the functions that the commands call, after the model is loaded
and the segmenter's dictionary is read; each round does all of it in turns, so that a change of the machine's speed
reaches all. `embed` writes all layers in float16 in the packed layout, `index` the layers of the words that its
defaults choose. `evaluate` and `score` read the same sentences. A rate is the text's tokens per second, the median of
the rounds, by the clock and by processor time. The GFLOP/s of `evaluate` are those of its matrix products; beside them
stand those of plain products (torch): of the recurrence at 64 sentences, and of the softmax at 512 words.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
from speed import forward_flops, per_second, product_gflops

from elmo_zh import ElmoEmbedder
from elmo_zh.allocator import keep_few_kernels, keep_freed_memory
from elmo_zh.config import Config, TextConfig
from elmo_zh.contexts import IndexOptions
from elmo_zh.contexts.build_index import IndexJob
from elmo_zh.contexts.index_settings import IndexSettings
from elmo_zh.contexts.line_scorer import LineReading, LineScorer
from elmo_zh.contexts.score_texts import ScoreJob, evaluate_texts
from elmo_zh.corpus.input_texts import InputText, input_text, opened_inputs
from elmo_zh.embed.dump import DumpJob, DumpSettings
from elmo_zh.embed.formats import OutputForm
from elmo_zh.run.job import run_job
from elmo_zh.run.reporter import SilentReporter

QUIET = SilentReporter()
PAIRS = {"index": "embed", "score": "evaluate"}
PRODUCT_SECONDS = 2.0
SOFTMAX_ROWS = 512


def build_work(
    embedder: ElmoEmbedder, text: InputText, folder: Path, max_per_word: int
) -> dict[str, Callable[[], object]]:
    """Return what each command does with the text; outputs of earlier rounds are replaced."""
    layers = tuple(range(embedder.num_layers))
    settings = IndexSettings(layers=layers, options=IndexOptions(max_per_word=max_per_word))
    scorer = LineScorer(embedder.bundle, "cpu", LineReading(split_sentences=True))
    return {
        "embed": lambda: run_job(
            DumpJob(
                embedder=embedder,
                text=text,
                output=folder / "text.hdf5",
                settings=DumpSettings(segmented=False, layers="all", dtype="float16"),
                form=OutputForm(layout="packed"),
            ),
            force=True,
            reporter=QUIET,
        ),
        "index": lambda: run_job(
            IndexJob(embedder=embedder, texts=[text], output=folder / "text.index", settings=settings),
            force=True,
            reporter=QUIET,
        ),
        "evaluate": lambda: evaluate_texts(scorer, [text], reporter=QUIET),
        "score": lambda: run_job(
            ScoreJob(scorer=scorer, texts=[text], output=folder / "text.tsv"), force=True, reporter=QUIET
        ),
    }


def measure(work: dict[str, Callable[[], object]], rounds: int) -> dict[str, tuple[float, float]]:
    """Return the median seconds and processor seconds of each work, done in turns."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in work}
    for _ in range(rounds):
        for name, run in work.items():
            started, used = time.perf_counter(), time.process_time()
            run()
            found[name].append((time.perf_counter() - started, time.process_time() - used))
            print(f"  {name:9} {found[name][-1][0]:7.2f} s, {found[name][-1][1]:7.2f} s of processor time", flush=True)
    return {name: (statistics.median(s for s, _ in each), statistics.median(u for _, u in each))
            for name, each in found.items()}  # fmt: skip


@torch.no_grad()
def softmax_gflops(projection_dim: int, num_words: int) -> float:
    """Return the rate of the softmax's product at some words, with torch."""
    hidden, weight = torch.randn(SOFTMAX_ROWS, projection_dim), torch.randn(projection_dim, num_words)
    rate = per_second(lambda: hidden @ weight, PRODUCT_SECONDS)
    return rate * 2 * hidden.numel() * num_words / 1e9


def print_product_rates(embedder: ElmoEmbedder, tokens_per_second: float) -> None:
    """Print what evaluation reaches of plain products."""
    shape, num_words = embedder.bundle.bilm.shape, len(embedder.bundle.require_probabilities()[1])
    model = replace(
        Config().model, cell_dim=shape.cell_dim, projection_dim=shape.projection_dim, num_layers=shape.num_layers
    )
    reached = tokens_per_second * forward_flops(model, num_words) / 1e9
    rates = product_gflops(replace(Config(), model=model), torch.float32, PRODUCT_SECONDS)
    plain = {"recurrence": rates["torch_gflops"], "softmax": softmax_gflops(shape.projection_dim, num_words)}
    print(f"evaluate: {reached:,.0f} GFLOP/s in matrix products ({num_words:,} words scored for each token)")
    for name, rate in plain.items():
        print(f"  {reached / rate:.0%} of torch's product of the {name}, {rate:,.0f} GFLOP/s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("bundle", metavar="BUNDLE", help="folder of the model, or the name of an installed one")
    parser.add_argument("text", type=Path, metavar="TEXT", help="file of raw text")
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each (default 3)")
    parser.add_argument("--max-per-word", type=int, default=1000, help="as that of index (default 1000; 0: all)")
    parser.add_argument("--pairs", nargs="+", choices=list(PAIRS), default=list(PAIRS), help="default: both")
    arguments = parser.parse_args()
    keep_few_kernels()
    keep_freed_memory()
    embedder = ElmoEmbedder.load(arguments.bundle, device="cpu")
    with opened_inputs([str(arguments.text)], QUIET) as sources, tempfile.TemporaryDirectory() as folder:
        [source] = sources.sources
        text = input_text(source, TextConfig())
        num_tokens = sum(len(embedder.tokens(line)) for line in text.lines_if_text(QUIET))
        work = build_work(embedder, text, Path(folder), arguments.max_per_word)
        chosen = [name for pair in arguments.pairs for name in (PAIRS[pair], pair)]
        print(f"{num_tokens:,} tokens, {torch.get_num_threads()} threads, torch {torch.__version__}")
        found = measure({name: work[name] for name in chosen}, arguments.rounds)
    for name in chosen:
        seconds, used = found[name]
        print(f"{name:9} {num_tokens / seconds:9,.0f} tokens/s, {num_tokens / used:9,.0f} per second of processor time")
    for name in arguments.pairs:
        (seconds, used), (other_seconds, other_used) = found[name], found[PAIRS[name]]
        print(f"{name} has {other_seconds / seconds:.1%} of the rate of {PAIRS[name]}, by processor time"
              f" {other_used / used:.1%}")  # fmt: skip
    if "score" in arguments.pairs:
        print_product_rates(embedder, num_tokens / found["evaluate"][0])


if __name__ == "__main__":
    main()
