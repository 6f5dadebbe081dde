"""Forecast how long training will take, from a few real steps on random words or, if a step is long, its products."""

import time
import timeit
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch

from elmo_zh.allocator import keep_freed_memory
from elmo_zh.config import Config
from elmo_zh.model.language_model import build_shape
from elmo_zh.model.precision import choose_device
from elmo_zh.training.computation import choose_computation
from elmo_zh.training.memory import count_numbers, predict_memory
from elmo_zh.training.optimizer import Schedule, step_tokens
from elmo_zh.training.trial import build_trial, draw_lexicon, forward_flops, step_flops
from elmo_zh.vocabulary.vocabulary import SPECIALS

# A configuration whose step would take longer, if it were products alone, is not tried.
_LONGEST_STEP_SECONDS = 3.0
# As many steps as fit into the time, but at least two: the first one compiles kernels.
_LEAST_STEPS, _MOST_STEPS, _TRIAL_SECONDS = 2, 40, 2.0


@dataclass(frozen=True, kw_only=True)
class CorpusSize:
    """Size of a corpus for training: tokens and sentences to train on, held-out tokens, words frequent enough."""

    train_tokens: int
    train_sentences: int
    heldout_tokens: int
    frequent_words: int


def forecast_training(configs: Mapping[str, Config], size: CorpusSize) -> dict[str, dict[str, Any]]:
    """Return what training takes with each configuration; those of the smallest steps are tried first.

    Each has rows of the vocabulary; tokens to train on, in one direction; epochs; seconds of all steps and evaluations;
    tokens_per_second; parameters; memory_bytes; checkpoint_bytes; bundle_bytes; and is_measured, whether steps were
    tried, or their time follows from what was measured of a smaller configuration.
    """
    keep_freed_memory()
    threads = torch.get_num_threads()
    rows_of = {name: _rows(config, size) for name, config in configs.items()}
    flops_of = {name: step_flops(config, rows_of[name]) for name, config in configs.items()}
    found: dict[str, dict[str, Any]] = {}
    tried: dict[tuple[Any, ...], float] = {}
    # Rate of the largest configuration tried, by mode: small ones spend their time elsewhere.
    rates: dict[str, float] = {}
    order = sorted(configs, key=flops_of.__getitem__)
    product_rate = _product_rate(configs[order[0]])
    for name in order:
        config, rows, flops = configs[name], rows_of[name], flops_of[name]
        mode = config.model.mode
        is_tried = mode not in rates or flops / product_rate <= _LONGEST_STEP_SECONDS
        if is_tried:
            key = (config.model, config.train, rows)
            tried[key] = tried.get(key) or _step_seconds(config, rows)
            rates[mode] = flops / tried[key]
        found[name] = {**_forecast(config, rows, size, flops, rates[mode]), "is_measured": is_tried}
    torch.set_num_threads(threads)
    return {name: found[name] for name in configs}


def _product_rate(config: Config) -> float:
    """Return the floating point operations per second in plain products of sizes as the LSTMs have them."""
    device = choose_device(config.train.device)
    choose_computation(config.train, config.model, device, {})
    left, right = torch.ones(64, 512, device=device), torch.ones(512, 4096, device=device)
    # Reading the sum waits for the device.
    seconds = timeit.repeat(lambda: float((left @ right).sum()), repeat=20, number=1)
    return 2.0 * 64 * 512 * 4096 / min(seconds)


def _rows(config: Config, size: CorpusSize) -> int:
    words = size.frequent_words + len(SPECIALS)
    return max(len(SPECIALS) + 1, min(words, config.vocab.size) if config.vocab.size else words)


def _forecast(config: Config, rows: int, size: CorpusSize, flops: float, rate: float) -> dict[str, Any]:
    """Return what training takes if a step has so many operations, at a rate per second."""
    train, model = config.train, config.model
    predictions = max(1, size.train_tokens + size.train_sentences)
    steps = Schedule.build(train, predictions).num_steps
    tokens = steps * step_tokens(train)
    num_evaluations = 2 + tokens // max(1, train.evaluate_every_tokens)
    evaluated = num_evaluations * min(train.evaluate_sample_tokens, size.heldout_tokens) + size.heldout_tokens
    product_bytes = choose_computation(train, model, choose_device(train.device), {}).product_bytes
    shape = build_shape(model, rows)
    network, tables, states = count_numbers(model, train, shape, rows)
    # The bundle has the token table also where the softmax shares it.
    token_table = rows * model.projection_dim if shape.characters is None else 0
    return {
        "rows": rows,
        "tokens": tokens,
        "epochs": tokens / predictions,
        "seconds": (steps * flops + evaluated * forward_flops(model, rows)) / rate,
        "tokens_per_second": step_tokens(train) * rate / flops,
        "parameters": network + tables,
        "memory_bytes": predict_memory(model, train, product_bytes, rows, size.train_tokens),
        "checkpoint_bytes": 4 * (network + tables + states),
        "bundle_bytes": 4 * (network + tables + token_table),
    }


def _step_seconds(config: Config, rows: int) -> float:
    """Return the duration of the shortest of a few training steps."""
    device = choose_device(config.train.device)
    computation = choose_computation(config.train, config.model, device, {})
    lexicon = draw_lexicon(rows, config.model.num_slots)
    learner = build_trial(config, lexicon, device, computation.product_precision)
    ends = [time.monotonic()]
    while len(ends) <= _LEAST_STEPS or (len(ends) <= _MOST_STEPS and ends[-1] - ends[0] <= _TRIAL_SECONDS):
        learner.train_step(len(ends) - 1, 1.0, average_loss=lambda loss: loss)
        ends.append(time.monotonic())
    return min(end - start for start, end in pairwise(ends))
