"""Trial training on random words, which measures the time per step and forecasts the cost of training."""

import sys
import time
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from elmo_zh.allocator import keep_freed_memory
from elmo_zh.config import Config
from elmo_zh.id_store.encoded_sentences import EncodedSentences, HeldoutSentences, IdStore
from elmo_zh.model.language_model import LanguageModel, build_shape
from elmo_zh.model.precision import Precision, choose_device
from elmo_zh.training.computation import choose_computation, count_numbers, predict_memory, scores_every_word
from elmo_zh.training.distributed import SINGLE_PROCESS
from elmo_zh.training.learner import Learner
from elmo_zh.training.optimizer import Schedule, step_tokens
from elmo_zh.vocabulary.lexicon import Lexicon
from elmo_zh.vocabulary.vocabulary import SPECIALS, Vocabulary

SENTENCE_TOKENS = 20
# The random text lasts for this many steps, then starts again.
_TEXT_STEPS = 8


def draw_words(num_rows: int, shape: tuple[int, ...], generator: np.random.Generator) -> NDArray[np.int64]:
    """Return random vocabulary rows, distributed like the words of a text (Zipf-Mandelbrot law)."""
    frequencies = 1 / (np.arange(num_rows - len(SPECIALS)) + 3.7) ** 1.1
    return generator.choice(len(frequencies), shape, p=frequencies / frequencies.sum()) + len(SPECIALS)


def draw_lexicon(num_rows: int, num_slots: int | None) -> Lexicon:
    """Return a lexicon of made-up words, most of them two characters long; `num_slots` is as in `Lexicon`."""
    generator = np.random.default_rng(2)
    lengths = generator.choice([1, 2, 3, 4], num_rows, p=[0.15, 0.55, 0.2, 0.1])
    words = {
        "".join(chr(0x4E00 + character) for character in generator.integers(0, 3000, length)) for length in lengths
    }
    spare = (f"词{number}" for number in range(num_rows))
    return Lexicon(Vocabulary([*SPECIALS, *sorted(words), *spare][:num_rows]), num_slots)


def build_trial(config: Config, lexicon: Lexicon, device: torch.device, precision: Precision) -> Learner:
    """Return a learner that is ready to train a new model on sentences of random words."""
    num_rows = len(lexicon.vocabulary)
    model = LanguageModel.build(build_shape(config.model, num_rows), tie_softmax=config.model.is_tied)
    store = draw_store(lexicon, num_tokens=_TEXT_STEPS * step_tokens(config.train))
    seed = config.train.seed
    return Learner(model, store, config.train, device, lambda new: new.initialise(seed), SINGLE_PROCESS, precision)


def draw_store(lexicon: Lexicon, num_tokens: int) -> IdStore:
    """Return a training text of at least `num_tokens` random words, in sentences of equal length, none held out."""
    num_sentences = -(-num_tokens // SENTENCE_TOKENS)
    words = draw_words(len(lexicon.vocabulary), (num_sentences * SENTENCE_TOKENS,), np.random.default_rng(1))
    offsets = np.arange(num_sentences + 1, dtype=np.uint64) * np.uint64(SENTENCE_TOKENS)
    no_text = np.zeros(0, np.uint32), np.zeros(1, np.uint64), np.zeros(0, np.uint32), np.zeros(0)
    return IdStore(
        EncodedSentences.in_memory(words.astype(np.uint32), offsets), HeldoutSentences.measured(*no_text), lexicon
    )


# If a step needs more products than this, the default configuration, which needs fewer, is tried instead.
_MOST_PRODUCTS = 1e11
# The trial takes as many steps as fit into the time, but at least two, since the first one compiles kernels.
_LEAST_STEPS, _MOST_STEPS, _TRIAL_SECONDS = 2, 40, 2.0


def forecast_training(
    configs: Mapping[str, Config], predictions: int, heldout_tokens: int, frequent_words: int
) -> dict[str, dict[str, Any]]:
    """Forecast the cost of training with each configuration: try the first, and extrapolate to the others.

    `predictions` counts the tokens and sentence ends to train on, `frequent_words` the candidates for the vocabulary.
    """
    keep_freed_memory()
    threads = torch.get_num_threads()
    tried = next(iter(configs.values()))
    if _products(tried, frequent_words)[2] > _MOST_PRODUCTS:
        tried = Config()
    rows, _, products = _products(tried, frequent_words)
    rate = products / _step_seconds(tried, rows)
    torch.set_num_threads(threads)
    found = {}
    for name, config in configs.items():
        forecast = _forecast(config, max(1, predictions), heldout_tokens, frequent_words, rate)
        is_measured = (config.model, config.train, forecast["rows"]) == (tried.model, tried.train, rows)
        found[name] = {**forecast, "is_measured": is_measured}
    return found


def _products(config: Config, frequent_words: int) -> tuple[int, float, float]:
    """Return the number of rows, and the products per evaluated word and per training step (three times as many)."""
    model, train = config.model, config.train
    rows = max(len(SPECIALS) + 1, min(frequent_words + len(SPECIALS), config.vocab.size or sys.maxsize))
    network, *_ = count_numbers(model, train, build_shape(model, rows), rows)
    scored = rows if scores_every_word(train, rows) else train.num_negatives
    word, sampled = (network + 2 * number * model.projection_dim for number in (rows, scored))
    return rows, word, 3 * sampled * step_tokens(train)


def _forecast(
    config: Config, predictions: int, heldout_tokens: int, frequent_words: int, rate: float
) -> dict[str, Any]:
    train, model = config.train, config.model
    rows, word_products, step_products = _products(config, frequent_words)
    network, tables, states = count_numbers(model, train, build_shape(model, rows), rows)
    steps = Schedule.build(train, predictions).num_steps
    tokens = steps * step_tokens(train)
    num_evaluations = 2 + tokens // max(1, train.evaluate_every_tokens)
    evaluated = num_evaluations * min(train.evaluate_sample_tokens, heldout_tokens) + heldout_tokens
    product_bytes = choose_computation(train, model, choose_device(train.device), {}).product_bytes
    # The bundle has the token table also where the softmax shares it.
    token_table = rows * model.projection_dim if model.mode == "token" else 0
    return {
        "rows": rows,
        "tokens": tokens,
        "epochs": tokens / predictions,
        "seconds": (steps * step_products + evaluated * word_products) / rate,
        "tokens_per_second": step_tokens(train) * rate / step_products,
        "parameters": network + tables,
        "memory_bytes": predict_memory(model, train, product_bytes, rows, predictions),
        "checkpoint_bytes": 4 * (network + tables + states),
        "bundle_bytes": 4 * (network + tables + token_table),
    }


def _step_seconds(config: Config, rows: int) -> float:
    device = choose_device(config.train.device)
    computation = choose_computation(config.train, config.model, device, {})
    lexicon = draw_lexicon(rows, config.model.num_slots)
    learner = build_trial(config, lexicon, device, computation.product_precision)
    ends = [time.monotonic()]
    while len(ends) <= _LEAST_STEPS or (len(ends) <= _MOST_STEPS and ends[-1] - ends[0] <= _TRIAL_SECONDS):
        learner.train_step(len(ends) - 1, 1.0, average_loss=lambda loss: loss)
        ends.append(time.monotonic())
    return min(end - start for start, end in pairwise(ends))
