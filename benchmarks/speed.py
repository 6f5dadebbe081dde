"""Measure the speed of training and embedding on this machine, compared with its plain matrix products.

Usage: python benchmarks/speed.py [--seconds S] [--only TEXT]     (make bench)

SMALL is configs/small.toml's model (cell 1024, projection 256, 2 layers) with a vocabulary of 30,000, batch 64 and
4,096 negatives; FULL is the published size (cell 4096, projection 512), 50,000 words, batch 128 and 8,192 negatives.
Character mode has the published filters, over made-up words. Words are drawn by the Zipf-Mandelbrot law; a batch of
SMALL has about a thousand distinct ones, as in news text (training/computation.py). Training uses the default recipe.
Embedding takes sentences of 20 words, 1,000 at a time. Each row is measured in a process of its own, together with two
rates of matrix products at the shapes of its recurrence: torch's product, and the packed kernel that the model uses.
The share is the fraction of torch's rate that the products of LSTMs and softmax reach. Prints a table and writes
benchmarks/records/DATE-speed.json.
"""

import argparse
import json
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import torch

from elmo_zh.allocator import keep_freed_memory, let_idle_threads_sleep
from elmo_zh.config import Config, ModelConfig
from elmo_zh.embed.sentence_vectors import SentenceVectors
from elmo_zh.model.kernels.execution import side_by_side
from elmo_zh.model.kernels.products import can_pack, multiply, pack
from elmo_zh.model.language_model import LanguageModel, build_shape, weights_of
from elmo_zh.model.precision import BFLOAT16, PRECISIONS
from elmo_zh.model.sentence_reader import build_torch_reader
from elmo_zh.training.computation import SENTENCE_TOKENS, build_trial, draw_lexicon, draw_words
from elmo_zh.training.learner import scores_every_word
from elmo_zh.training.optimizer import step_tokens

EMBEDDED_SENTENCES = 1000
SMALL = Config()
FULL = replace(
    SMALL,
    vocab=replace(SMALL.vocab, size=50_000),
    model=replace(SMALL.model, cell_dim=4096, projection_dim=512),
    train=replace(SMALL.train, batch_size=128, num_negatives=8192),
)
SIZES = {"SMALL": SMALL, "FULL": FULL}


def per_second(work: Callable[[], object], seconds: float) -> float:
    """Return how often `work` runs per second, after two warm-up runs."""
    for _ in range(2):
        work()
    count, started_at = 0, time.perf_counter()
    while time.perf_counter() - started_at < seconds:
        work()
        count += 1
    return count / (time.perf_counter() - started_at)


@torch.no_grad()
def product_gflops(config: Config, dtype: torch.dtype, seconds: float) -> dict[str, float]:
    """Return the rates of the recurrence's product, (2, B, 2P) x (2, 2P, 4D), with torch and with the packed kernel."""
    rows, width, columns = config.train.batch_size, 2 * config.model.projection_dim, 4 * config.model.cell_dim
    left, right = torch.randn(2, rows, width, dtype=dtype), torch.randn(2, width, columns, dtype=dtype)
    gflop = 2 * left.numel() * columns / 1e9
    is_packed = can_pack(torch.zeros(1), dtype)
    packed = [pack(right[direction], is_packed) for direction in range(2)]

    def both() -> object:
        return side_by_side(lambda direction: multiply(left[direction], packed[direction], None, is_packed))

    return {
        "torch_gflops": per_second(lambda: torch.bmm(left, right), seconds) * gflop,
        "packed_gflops": per_second(both, seconds) * gflop,
    }


def forward_flops(model: ModelConfig, num_scored: int) -> float:
    """Return the FLOPs of matrix products for one token, both directions: of the LSTMs, and of `num_scored` words."""
    cell = 2 * model.projection_dim * 4 * model.cell_dim + model.cell_dim * model.projection_dim
    return 2.0 * 2 * (model.num_layers * cell + num_scored * model.projection_dim)


def step_flops(config: Config, rows: int) -> float:
    """Return the FLOPs of matrix products in one training step; backward takes twice those of forward.

    Those of the character CNN, which reads each distinct word of a step once, are the windows and the highways.
    """
    train, model = config.train, config.model
    flops = step_tokens(train) * forward_flops(model, rows if scores_every_word(train, rows) else train.num_negatives)
    characters = build_shape(model, rows).characters
    if characters is not None:
        filters = characters.num_filters
        windows = sum(width * count for width, count in characters.filters) * characters.embedding_dim * 12
        layers = characters.num_highways * 2 * filters**2 + filters * model.projection_dim
        words = draw_words(rows, (2 * step_tokens(train),), np.random.default_rng(1))
        flops += len(np.unique(words)) * 2.0 * (windows + layers)
    return 3 * flops


def training_flops_per_token(config: Config) -> float:
    """Return the FLOPs of matrix products per trained token, both directions."""
    return step_flops(config, config.vocab.size) / step_tokens(config.train)


def embed_flops(config: Config) -> float:
    """Return the FLOPs of matrix products per embedded token, both directions."""
    return forward_flops(config.model, 0)


def train_tokens_per_second(config: Config, seconds: float) -> float:
    """Return the tokens trained per second in whole steps, from the streams to the optimisers."""
    precision = PRECISIONS[config.train.precision]
    learner = build_trial(
        config, draw_lexicon(config.vocab.size, config.model.num_slots), torch.device("cpu"), precision
    )
    numbers = count()
    return per_second(lambda: learner.train_step(next(numbers), 1.0, lambda loss: loss), seconds) * step_tokens(
        config.train
    )


def embed_tokens_per_second(config: Config, precision: str, seconds: float) -> float:
    """Return the tokens embedded per second, all layers, of new sentences."""
    model = LanguageModel.build(build_shape(config.model, config.vocab.size), tie_softmax=False)
    model.initialise(1)
    lexicon, generator = draw_lexicon(config.vocab.size, config.model.num_slots), np.random.default_rng(1)
    read_batch = None if precision == "float32" else build_torch_reader(model.bilm, precision, "cpu")
    weights, batch_tokens = weights_of(model.bilm, None), config.embed.batch_tokens
    vectors = SentenceVectors(weights, lexicon, batch_tokens, "unk", read_batch)

    def embed() -> object:
        rows = draw_words(config.vocab.size, (EMBEDDED_SENTENCES, SENTENCE_TOKENS), generator)
        return vectors.read([[lexicon.vocabulary.tokens[row] for row in sentence] for sentence in rows])

    return per_second(embed, seconds) * EMBEDDED_SENTENCES * SENTENCE_TOKENS


def list_rows() -> list[dict[str, str]]:
    """Return the rows of the table to measure."""
    trained = [name for name, precision in PRECISIONS.items() if not precision.is_quantised]
    rows = [
        {"work": "train", "size": size, "mode": mode, "precision": precision, "softmax": "sampled"}
        for size in SIZES
        for mode in ("token", "character")
        for precision in trained
    ]
    rows += [
        {"work": "train", "size": "SMALL", "mode": "token", "precision": precision, "softmax": "full"}
        for precision in trained
    ]
    return rows + [
        {"work": "embed", "size": size, "mode": mode, "precision": precision, "softmax": "none"}
        for size in SIZES
        for mode in ("token", "character")
        for precision in PRECISIONS
    ]


def measure(row: dict[str, str], seconds: float) -> dict[str, Any]:
    """Return a row of the table with its figures."""
    keep_freed_memory()
    config = SIZES[row["size"]]
    config = replace(
        config,
        model=replace(config.model, mode=row["mode"]),
        train=replace(config.train, precision=row["precision"], softmax=row["softmax"]),
    )
    # torch has no int8 product to compare with, so int8 is compared with bfloat16.
    precision = PRECISIONS[row["precision"]]
    compared = BFLOAT16 if precision.is_quantised else precision
    rates = product_gflops(config, compared.dtype, min(3.0, seconds))
    if row["work"] == "train":
        tokens, flops = train_tokens_per_second(config, seconds), training_flops_per_token(config)
    else:
        tokens, flops = embed_tokens_per_second(config, row["precision"], seconds), embed_flops(config)
    gflops = tokens * flops / 1e9
    return {
        **row,
        "tokens_per_second": tokens,
        "gflops": gflops,
        **rates,
        "share_of_torch": gflops / rates["torch_gflops"],
        "share_of_packed": gflops / rates["packed_gflops"],
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=15.0, help="seconds for each measurement")
    parser.add_argument(
        "--only", default="", help="measure only rows that contain this text, such as 'train SMALL token'"
    )
    parser.add_argument("--row", type=json.loads, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.row:
        print(json.dumps(measure(arguments.row, arguments.seconds)))
        return
    let_idle_threads_sleep()  # inherited by the processes that measure rows
    rows = []
    print(f"{'work':42} {'tokens/s':>9} {'GFLOP/s':>8} {'torch':>6} {'packed':>7} {'share':>6} {'memory':>7}")
    for row in list_rows():
        name = " ".join(row.values())
        if arguments.only not in name:
            continue
        command = [sys.executable, __file__, "--seconds", str(arguments.seconds), "--row", json.dumps(row)]
        rows.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
        figures = rows[-1]
        print(
            f"{name:42} {figures['tokens_per_second']:9,.0f} {figures['gflops']:8,.0f} {figures['torch_gflops']:6,.0f}"
            f" {figures['packed_gflops']:7,.0f} {figures['share_of_torch']:6.0%} {figures['peak_bytes'] / 1e9:4.1f} GB",
            flush=True,
        )
    record = {"date": str(date.today()), "machine": platform.machine(), "threads": torch.get_num_threads(),
              "torch": torch.__version__, "seconds_each": arguments.seconds, "rows": rows}  # fmt: skip
    if not arguments.only:
        output = Path(__file__).parent / "records" / f"{date.today()}-speed.json"
        output.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
