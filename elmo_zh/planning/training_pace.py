"""How long training will take: from a few real steps on random words or, if a step is long, from its products."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from elmo_zh.allocator import keep_freed_memory
from elmo_zh.config import Config, load_config
from elmo_zh.model.language_model import build_shape
from elmo_zh.model.precision import choose_device
from elmo_zh.training.computation import choose_computation
from elmo_zh.training.memory import predict_memory, scores_every_word
from elmo_zh.training.optimizer import Schedule, step_tokens
from elmo_zh.training.trial import build_trial, draw_words
from elmo_zh.vocabulary.lexicon import Lexicon
from elmo_zh.vocabulary.vocabulary import SPECIALS, Vocabulary

# Smallest first; those in character mode after those in token mode.
SHIPPED_NAMES = ("tiny", "small", "base", "original", "tiny-char", "small-char", "base-char", "original-char")
_CONFIG_DIR = Path(__file__).parents[2] / "configs"
# A configuration whose step would take longer, if it were products alone, is not tried.
_LONGEST_STEP_SECONDS = 3.0
# As many steps as fit into the time, but at least two: the first one compiles kernels.
_LEAST_STEPS, _MOST_STEPS, _TRIAL_SECONDS = 2, 40, 2.0


@dataclass(frozen=True, kw_only=True)
class CorpusSize:
    """What training uses of a corpus: tokens and sentences to train on, held-out tokens, words frequent enough."""

    train_tokens: int
    train_sentences: int
    heldout_tokens: int
    frequent_words: int


@dataclass(frozen=True, kw_only=True)
class TrainingForecast:
    """What training with one configuration takes.

    Attributes:
        rows: Rows of the vocabulary.
        tokens: Tokens to train on, all epochs, in one direction.
        epochs: Passes over the text.
        seconds: Seconds of all steps and evaluations.
        tokens_per_second: Speed of the steps alone.
        is_measured: Whether steps were tried; otherwise derived from what was measured of another configuration.
        parameters: Number of trained parameters.
        memory_bytes: Memory at most.
        checkpoint_bytes: Size of one checkpoint.
        bundle_bytes: Size of the exported bundle.
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


def shipped_configs(folder: Path = _CONFIG_DIR) -> dict[str, Config]:
    """Return the shipped configurations by name; none where the package was installed without them."""
    paths = {name: folder / f"{name}.toml" for name in SHIPPED_NAMES}
    return {name: load_config(Config(), path, []) for name, path in paths.items() if path.is_file()}


def forecast_training(configs: Mapping[str, Config], size: CorpusSize) -> dict[str, TrainingForecast]:
    """Return what training takes with each configuration; those of the smallest steps are tried first."""
    keep_freed_memory()
    threads = torch.get_num_threads()
    rows_of = {name: _rows(config, size) for name, config in configs.items()}
    flops_of = {name: _step_flops(config, rows_of[name]) for name, config in configs.items()}
    order = sorted(configs, key=flops_of.__getitem__)
    found: dict[str, TrainingForecast] = {}
    tried: dict[tuple[Any, ...], float] = {}
    product_rate = _product_rate(configs[order[0]])
    # Rate of the largest configuration tried, by mode: small ones spend their time elsewhere.
    rates: dict[str, float] = {}
    for name in order:
        config, rows, flops = configs[name], rows_of[name], flops_of[name]
        mode = config.model.mode
        is_tried = flops / product_rate <= _LONGEST_STEP_SECONDS or mode not in rates
        if is_tried:
            key = (config.model, config.train, rows)
            tried[key] = tried.get(key) or _step_seconds(config, rows)
            rates[mode] = flops / tried[key]
        found[name] = _forecast(config, rows, size, flops / rates[mode], rates[mode], is_measured=is_tried)
    torch.set_num_threads(threads)
    return {name: found[name] for name in configs}


def _product_rate(config: Config) -> float:
    """Return the floating point operations per second in plain products of sizes as the LSTMs have them."""
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
    # Parameters of the network, of the token table, and of the softmax, which may share the table and has biases.
    table = rows * model.projection_dim
    own_table = table if shape.characters is None else 0
    network = shape.num_parameters() - own_table
    tables = table * (2 if own_table and not model.is_tied else 1) + rows
    # AdamW keeps two numbers for each parameter, its tables' optimiser one for each row; others one for each parameter.
    num_tables = 1 if model.is_tied or not own_table else 2
    states = 2 * network + rows * (num_tables + 1) if train.optimizer == "adamw" else network + tables
    return TrainingForecast(
        rows=rows,
        tokens=tokens,
        epochs=tokens / predictions,
        seconds=steps * step_seconds + evaluated * _token_flops(config, rows) / rate,
        tokens_per_second=step_tokens(train) / step_seconds,
        is_measured=is_measured,
        parameters=network + tables,
        memory_bytes=predict_memory(model, train, product_bytes, rows, size.train_tokens),
        checkpoint_bytes=4 * (network + tables + states),
        bundle_bytes=4 * (network + tables + own_table),
    )


def _token_flops(config: Config, num_scored: int) -> float:
    """Return the products for one token, forward: of the LSTMs, and of `num_scored` words, in both directions."""
    model = config.model
    cell = 2 * model.projection_dim * 4 * model.cell_dim + model.cell_dim * model.projection_dim
    return 2.0 * 2 * (model.num_layers * cell + num_scored * model.projection_dim)


def _step_flops(config: Config, rows: int) -> float:
    """Return the products of one training step: forward, and twice that backward.

    Those of the character CNN, which reads each distinct word of a step once, are the windows and the highways.
    """
    train, model = config.train, config.model
    flops = step_tokens(train) * _token_flops(config, rows if scores_every_word(train, rows) else train.num_negatives)
    characters = build_shape(model, rows).characters
    if characters is not None:
        filters = characters.num_filters
        windows = sum(width * count for width, count in characters.filters) * characters.embedding_dim * 12
        layers = characters.num_highways * 2 * filters**2 + filters * model.projection_dim
        words = draw_words(rows, (2 * step_tokens(train),), np.random.default_rng(1))
        flops += len(np.unique(words)) * 2.0 * (windows + layers)
    return 3 * flops


def _step_seconds(config: Config, rows: int) -> float:
    """Return the duration of the shortest of a few training steps."""
    device = choose_device(config.train.device)
    computation = choose_computation(config.train, device, {})
    # Different words of three characters and more.
    words = [np.base_repr(number, 36).rjust(3, "0").translate(_HAN_DIGITS) for number in range(rows - len(SPECIALS))]
    lexicon = Lexicon(Vocabulary([*SPECIALS, *words]), config.model.num_slots)
    learner = build_trial(config, lexicon, device, computation.product_precision)
    shortest, started_at = float("inf"), time.monotonic()
    for number in range(_MOST_STEPS):
        if number >= _LEAST_STEPS and time.monotonic() - started_at > _TRIAL_SECONDS:
            break
        start = time.monotonic()
        learner.train_step(number, 1.0, average_loss=lambda loss: loss)
        shortest = min(shortest, time.monotonic() - start)
    return shortest


_HAN_DIGITS = {ord(digit): 0x4E00 + 7 * place for place, digit in enumerate("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ")}
