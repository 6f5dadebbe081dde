"""How long training will take: a few real steps on words of chance, or, where a step takes long, by its products."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from elmo_zh.allocator import keep_freed_memory
from elmo_zh.config import Config
from elmo_zh.model.language_model import build_shape
from elmo_zh.model.precision import choose_device
from elmo_zh.training.computation import choose_computation
from elmo_zh.training.memory import predict_memory, scores_every_word
from elmo_zh.training.optimizer import Schedule, step_tokens
from elmo_zh.training.trial import build_trial, draw_words
from elmo_zh.vocabulary.lexicon import Lexicon
from elmo_zh.vocabulary.vocabulary import SPECIALS, Vocabulary

# A configuration whose step should take longer, were it products alone, is not tried.
_LONGEST_STEP_SECONDS = 3.0
# As many steps as fit into the time, but two in any case: the first one makes kernels ready.
_LEAST_STEPS, _MOST_STEPS, _TRIAL_SECONDS = 2, 40, 2.0


@dataclass(frozen=True, kw_only=True)
class CorpusSize:
    """What training takes from a corpus: tokens and sentences to train on, held-out tokens, words frequent enough."""

    train_tokens: int
    train_sentences: int
    heldout_tokens: int
    frequent_words: int


@dataclass(frozen=True, kw_only=True)
class TrainingForecast:
    """What training with one configuration takes.

    Attributes:
        rows: Of the vocabulary.
        tokens: To train, one direction.
        epochs: Passes over the text.
        seconds: Of all steps and evaluations.
        tokens_per_second: Of steps alone.
        is_measured: Whether steps were tried; else derived from what was measured of another configuration.
        parameters: Numbers that are trained.
        memory_bytes: At most.
        checkpoint_bytes: Of one checkpoint.
        bundle_bytes: Of the exported bundle.
    """

    rows: int
    tokens: int
    epochs: float
    seconds: float
    tokens_per_second: float
    is_measured: bool
    parameters: int
    memory_bytes: int
    checkpoint_bytes: int
    bundle_bytes: int


def forecast_training(configs: Mapping[str, Config], size: CorpusSize) -> dict[str, TrainingForecast]:
    """Return what training takes with each configuration, those of the smallest steps tried first."""
    keep_freed_memory()
    threads = torch.get_num_threads()
    order = sorted(configs, key=lambda name: _step_flops(configs[name], _rows(configs[name], size)))
    done: dict[str, TrainingForecast] = {}
    tried: dict[tuple[Any, ...], float] = {}
    # Of products alone; then, by mode, of the largest configuration tried: small ones spend their time elsewhere.
    rates = {"": _product_rate(configs[order[0]])}
    for name in order:
        config, rows = configs[name], _rows(configs[name], size)
        mode, flops = config.model.mode, _step_flops(config, rows)
        is_tried = flops / rates[""] <= _LONGEST_STEP_SECONDS or mode not in rates
        if is_tried:
            key = (config.model, config.train, rows)
            tried[key] = tried.get(key) or _step_seconds(config, rows)
            rates[mode] = flops / tried[key]
        done[name] = _forecast(config, rows, size, flops / rates[mode], rates[mode], is_measured=is_tried)
    torch.set_num_threads(threads)
    return {name: done[name] for name in configs}


def _product_rate(config: Config) -> float:
    """Return the rate of plain products, of such sizes as the LSTMs have, in a second."""
    device = choose_device(config.train.device)
    choose_computation(config.train, device, {})
    left, right = torch.ones(64, 512, device=device), torch.ones(512, 4096, device=device)
    shortest = float("inf")
    for _ in range(20):
        start = time.monotonic()
        float((left @ right).sum())  # reading it waits for the device
        shortest = min(shortest, time.monotonic() - start)
    return 2.0 * 64 * 512 * 4096 / shortest


def _rows(config: Config, size: CorpusSize) -> int:
    words = size.frequent_words + len(SPECIALS)
    return max(len(SPECIALS) + 1, min(words, config.vocab.size) if config.vocab.size else words)


def _forecast(
    config: Config, rows: int, size: CorpusSize, step_seconds: float, rate: float, *, is_measured: bool
) -> TrainingForecast:
    train, model = config.train, config.model
    predictions = max(1, size.train_tokens + size.train_sentences)
    steps = Schedule.build(train, predictions).num_steps
    tokens = steps * step_tokens(train)
    num_evaluations = 2 + tokens // max(1, train.evaluate_every_tokens)
    evaluated = num_evaluations * min(train.evaluate_sample_tokens, size.heldout_tokens) + size.heldout_tokens
    product_bytes = choose_computation(train, choose_device(train.device), {}).product_bytes
    shape = build_shape(model, rows)
    has_table = shape.characters is None
    table = rows * model.projection_dim
    network = shape.num_parameters() - (table if has_table else 0)
    tables = table * (2 if has_table and not model.is_tied else 1) + rows
    # Beside AdamW the tables' optimiser keeps a number for each row.
    num_tables = 1 if model.is_tied or not has_table else 2
    states, table_states = (2, rows * (num_tables + 1)) if train.optimizer == "adamw" else (1, tables)
    return TrainingForecast(
        rows=rows,
        tokens=tokens,
        epochs=tokens / predictions,
        seconds=steps * step_seconds + evaluated * _scoring_flops(config, rows) / rate,
        tokens_per_second=step_tokens(train) / step_seconds,
        is_measured=is_measured,
        parameters=network + tables,
        memory_bytes=predict_memory(model, train, product_bytes, rows, size.train_tokens),
        checkpoint_bytes=4 * (network * (1 + states) + tables + table_states),
        bundle_bytes=4 * (network + tables + (table if has_table else 0)),
    )


def _layer_flops(config: Config) -> float:
    """Return the products of the LSTMs for one token, both directions, forward."""
    model = config.model
    cell = 2 * model.projection_dim * 4 * model.cell_dim + model.cell_dim * model.projection_dim
    return 2.0 * 2 * model.num_layers * cell


def _scoring_flops(config: Config, rows: int) -> float:
    """Return the products of one exact prediction in both directions."""
    return _layer_flops(config) + 2.0 * 2 * rows * config.model.projection_dim


def _step_flops(config: Config, rows: int) -> float:
    """Return the products of one training step: forward, and twice that backward.

    Of the character CNN, which reads each distinct word of a step once, that is the windows and the highways.
    """
    train, model = config.train, config.model
    scored = rows if scores_every_word(train, rows) else train.num_negatives
    flops = step_tokens(train) * (_layer_flops(config) + 2.0 * 2 * scored * model.projection_dim)
    characters = build_shape(model, rows).characters
    if characters is not None:
        filters = characters.num_filters
        windows = sum(width * count for width, count in characters.filters) * characters.embedding_dim * 12
        layers = characters.num_highways * 2 * filters**2 + filters * model.projection_dim
        flops += _distinct_words(config, rows) * 2.0 * (windows + layers)
    return 3 * flops


def _distinct_words(config: Config, rows: int) -> int:
    return len(np.unique(draw_words(rows, (2 * step_tokens(config.train),), np.random.default_rng(1))))


def _step_seconds(config: Config, rows: int) -> float:
    """Return the duration of the shortest of a few training steps."""
    device = choose_device(config.train.device)
    computation = choose_computation(config.train, device, {})
    lexicon = Lexicon(Vocabulary([*SPECIALS, *_made_up_words(rows - len(SPECIALS))]), config.model.num_slots)
    learner = build_trial(config, lexicon, device, computation.product_precision)
    shortest, begun = float("inf"), time.monotonic()
    for number in range(_MOST_STEPS):
        if number >= _LEAST_STEPS and time.monotonic() - begun > _TRIAL_SECONDS:
            break
        start = time.monotonic()
        learner.train_step(number, 1.0, agree=lambda loss: loss)
        shortest = min(shortest, time.monotonic() - start)
    return shortest


def _made_up_words(number: int) -> list[str]:
    """Return different words of two to four characters."""
    digits = [chr(0x4E00 + 7 * digit) for digit in range(100)]
    return [
        digits[index % 100]
        + digits[index // 100 % 100]
        + (digits[index // 10_000 % 100] if index >= 10_000 else "")
        + (digits[index // 1_000_000] if index >= 1_000_000 else "")
        for index in range(number)
    ]
