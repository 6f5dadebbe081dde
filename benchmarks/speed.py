"""How fast training and embedding are on this machine, beside the rate of its plain matrix products.

Usage: python benchmarks/speed.py [--seconds S]     (make bench)

SMALL is configs/small.toml's model (cell 1024, projection 256, 2 layers) with a vocabulary of 30,000; its character
mode has the published filters, over words of one to four Chinese characters as frequent as in text. Products are
measured at the shapes of its recurrence (two directions in one batched product), so that the shares are fair. Prints
a table and writes benchmarks/records/DATE-speed.json.
"""

import argparse
import json
import platform
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path

import numpy as np
import torch

from elmo_zh.allocator import keep_freed_memory
from elmo_zh.batches import build_inputs, mark_sentence, pad_sentences
from elmo_zh.config import Config
from elmo_zh.lexicon import Lexicon
from elmo_zh.model.language_model import LanguageModel, build_shape
from elmo_zh.model.softmax import LogUniformSampler
from elmo_zh.training.optimizer import Optimizers, clip_gradients, step_tokens
from elmo_zh.vocabulary import SPECIALS, Vocabulary

VOCABULARY = 30_000
SENTENCE_TOKENS = 20


def per_second(work: Callable[[], object], seconds: float) -> float:
    """Return how often `work` runs in a second, after two runs that do not count."""
    for _ in range(2):
        work()
    count, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        work()
        count += 1
    return count / (time.perf_counter() - start)


def product_gflops(dtype: torch.dtype, seconds: float) -> float:
    """Return the rate of the products that make up the recurrence: (2, 64, 256) x (2, 256, 4096)."""
    left, right = torch.randn(2, 64, 256, dtype=dtype), torch.randn(2, 256, 4096, dtype=dtype)
    return per_second(lambda: torch.bmm(left, right), seconds) * 2 * left.numel() * 4096 / 1e9


def build_lexicon(config: Config) -> Lexicon:
    """Return what gives words their ids: a vocabulary of made-up words, and character slots in character mode."""
    generator = np.random.default_rng(2)
    lengths = generator.choice([1, 2, 3, 4], VOCABULARY, p=[0.15, 0.55, 0.2, 0.1])
    words = {
        "".join(chr(0x4E00 + character) for character in generator.integers(0, 3000, length)) for length in lengths
    }
    spare = (f"词{number}" for number in range(VOCABULARY))
    tokens = [*SPECIALS, *sorted(words), *spare][:VOCABULARY]
    return Lexicon(Vocabulary(tokens), config.model.num_slots)


def training_flops_per_token(config: Config) -> float:
    """Return the products of one trained token (both directions): forward, and twice that backward."""
    model, train = config.model, config.train
    cell = 2 * model.projection_dim * 4 * model.cell_dim + model.cell_dim * model.projection_dim
    softmax = train.num_negatives * model.projection_dim
    return 3 * 2 * 2 * (model.num_layers * cell + softmax)


def train_tokens_per_second(config: Config, seconds: float) -> float:
    """Return trained tokens in a second: forward, loss, backward, clipping and optimiser."""
    model = LanguageModel.build(build_shape(config.model, VOCABULARY), tie_softmax=False)
    model.initialise(1)
    model.prepare_for_training(torch.bfloat16 if config.train.precision == "bfloat16" else None)
    optimizers = Optimizers(config.train, model.bilm, model.softmax)
    sampler, generator = LogUniformSampler(VOCABULARY, config.train.num_negatives), np.random.default_rng(1)
    shape = (2, config.train.unroll_steps, config.train.batch_size)
    # Words as frequent as in text: by Zipf's law.
    words = np.minimum(generator.zipf(1.3, (2, *shape)) + 2, VOCABULARY - 1)
    ids, targets = torch.from_numpy(words[0]), torch.from_numpy(words[1]).flatten()
    lexicon = build_lexicon(config)
    keep = torch.from_numpy((generator.random((*shape[1:], 1)) > 1 / SENTENCE_TOKENS).astype(np.float32))
    state = model.bilm.zero_state(config.train.batch_size)

    def step() -> None:
        activations, _ = model.bilm(build_inputs(lexicon, ids), state, keep, config.train.dropout)
        loss = model.softmax.sampled_loss(activations[-1].flatten(0, 2), targets, sampler.draw(generator))
        optimizers.zero_grad()
        (loss * config.train.unroll_steps).backward()
        clip_gradients(optimizers.parameters, config.train.max_grad_norm)
        optimizers.step(1.0)

    return per_second(step, seconds) * step_tokens(config.train)


def embed_tokens_per_second(config: Config, seconds: float, batch: int) -> float:
    """Return embedded tokens in a second, all layers, sentences of 20 words."""
    model = LanguageModel.build(build_shape(config.model, VOCABULARY), tie_softmax=False)
    model.initialise(1)
    words = np.random.default_rng(1).integers(3, VOCABULARY, (batch, SENTENCE_TOKENS))
    ids, mask = pad_sentences([mark_sentence(sentence) for sentence in words])
    lexicon = build_lexicon(config)

    def embed() -> object:
        return model.bilm.layer_activations(build_inputs(lexicon, ids), mask)

    return per_second(embed, seconds) * batch * SENTENCE_TOKENS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=15.0, help="for each measurement")
    seconds = parser.parse_args().seconds
    keep_freed_memory()
    config = Config()
    characters = Config(model=type(config.model)(mode="character"))
    flops = training_flops_per_token(config)
    rows = []
    for precision in ("float32", "bfloat16"):
        rate = product_gflops(getattr(torch, precision), min(3.0, seconds))
        settings = {"vocab": config.vocab, "model": config.model}
        train = type(config.train)(**{**vars(config.train), "precision": precision})
        tokens = train_tokens_per_second(Config(**settings, train=train), seconds)
        rows.append({"work": f"train SMALL, {precision}", "tokens_per_second": tokens, "product_gflops": rate,
                     "share_of_products": tokens * flops / 1e9 / rate})  # fmt: skip
        tokens = train_tokens_per_second(Config(model=characters.model, train=train), seconds)
        rows.append({"work": f"train SMALL, character mode, {precision}", "tokens_per_second": tokens})
    rate = product_gflops(torch.float32, min(3.0, seconds))
    embed_flops = training_flops_per_token(config) / 3 - 4 * config.train.num_negatives * config.model.projection_dim
    tokens = embed_tokens_per_second(config, seconds, 64)
    rows.append({"work": "embed SMALL, float32", "tokens_per_second": tokens, "product_gflops": rate,
                 "share_of_products": tokens * embed_flops / 1e9 / rate})  # fmt: skip
    tokens = embed_tokens_per_second(characters, seconds, 64)
    rows.append({"work": "embed SMALL, character mode, float32", "tokens_per_second": tokens})
    print(f"{'work':38} {'tokens/s':>9} {'products, GFLOP/s':>18} {'share':>6}")
    for row in rows:
        beside = f" {row['product_gflops']:18,.0f} {row['share_of_products']:6.0%}" if "product_gflops" in row else ""
        print(f"{row['work']:38} {row['tokens_per_second']:9,.0f}{beside}")
    record = {"date": str(date.today()), "machine": platform.machine(), "threads": torch.get_num_threads(),
              "torch": torch.__version__, "seconds_each": seconds, "rows": rows}  # fmt: skip
    output = Path(__file__).parent / "records" / f"{date.today()}-speed.json"
    output.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
