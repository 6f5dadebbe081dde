"""Trial training on random words, which measures the time per step and forecasts the cost of training."""

import time
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from elmo_zh.allocator import keep_freed_memory, peak_memory_bytes
from elmo_zh.config import Config
from elmo_zh.id_store import EncodedSentences, HeldoutSentences, IdStore
from elmo_zh.model.language_model import LanguageModel, build_shape
from elmo_zh.model.precision import Precision, choose_device
from elmo_zh.training.computation import choose_computation, count_numbers, require_memory
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
        EncodedSentences.in_memory(words.astype(np.uint32), offsets), HeldoutSentences.in_memory(*no_text), lexicon
    )


# The trial takes as many steps as fit into the time, but at least two, since the first one compiles kernels.
_LEAST_STEPS, _MOST_STEPS, _TRIAL_SECONDS = 2, 40, 2.0


def forecast_training(config: Config, predictions: int, num_rows: int) -> dict[str, Any]:
    """Forecast the cost of training on a text with this many words and sentence ends, by trying a few steps.

    Raises RunError if the machine has too little memory.
    """
    keep_freed_memory()
    train, model = config.train, config.model
    device = choose_device(train.device)
    computation = choose_computation(train, model, device, {})
    require_memory(model, train, num_rows, device)
    network, tables, states = count_numbers(model, train, build_shape(model, num_rows), num_rows)
    # The bundle has the token table also where the softmax shares it.
    token_table = num_rows * model.projection_dim if model.mode == "token" else 0
    steps = Schedule.build(train, predictions).num_steps
    step_seconds = _step_seconds(
        build_trial(config, draw_lexicon(num_rows, model.num_slots), device, computation.product_precision)
    )
    return {
        "tokens": steps * step_tokens(train),
        "epochs": steps * step_tokens(train) / max(1, predictions),
        "seconds": steps * step_seconds,
        "tokens_per_second": step_tokens(train) / step_seconds,
        "parameters": network + tables,
        "memory_bytes": peak_memory_bytes() if device.type == "cpu" else torch.cuda.max_memory_allocated(device),
        "checkpoint_bytes": train.keep_checkpoints * 4 * (network + tables + states),
        "bundle_bytes": 4 * (network + tables + token_table),
    }


def _step_seconds(learner: Learner) -> float:
    ends = [time.monotonic()]
    while len(ends) <= _LEAST_STEPS or (len(ends) <= _MOST_STEPS and ends[-1] - ends[0] <= _TRIAL_SECONDS):
        learner.train_step(len(ends) - 1, 1.0, average_loss=lambda loss: loss)
        ends.append(time.monotonic())
    return min(end - start for start, end in pairwise(ends))
