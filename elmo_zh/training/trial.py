"""Trial training on random words, to measure how long a step takes."""

import numpy as np
import torch
from numpy.typing import NDArray

from elmo_zh.config import Config
from elmo_zh.id_store.encoded_sentences import EncodedSentences, HeldoutSentences, IdStore
from elmo_zh.model.language_model import LanguageModel, build_shape
from elmo_zh.model.precision import Precision
from elmo_zh.training.distributed import SINGLE_PROCESS
from elmo_zh.training.learner import Learner
from elmo_zh.training.optimizer import step_tokens
from elmo_zh.vocabulary.lexicon import Lexicon
from elmo_zh.vocabulary.vocabulary import SPECIALS

SENTENCE_TOKENS = 20
# The random text is enough for this many steps, and is read repeatedly.
_TEXT_STEPS = 8


def draw_words(num_rows: int, shape: tuple[int, ...], generator: np.random.Generator) -> NDArray[np.int64]:
    """Return random vocabulary rows that are as frequent as words in text, by the Zipf-Mandelbrot law.

    With small.toml a batch has as many distinct rows as a batch of news text: about a thousand.
    """
    frequencies = 1 / (np.arange(num_rows - len(SPECIALS)) + 3.7) ** 1.1
    return generator.choice(len(frequencies), shape, p=frequencies / frequencies.sum()) + len(SPECIALS)


def build_trial(config: Config, lexicon: Lexicon, device: torch.device, precision: Precision) -> Learner:
    """Return a learner that is ready to train a new model on sentences of random words.

    Args:
        config: Settings of the model and of training.
        lexicon: Lexicon whose words to draw.
        device: Device to train on.
        precision: Precision of the matrix products.
    """
    num_rows = len(lexicon.vocabulary)
    model = LanguageModel.build(build_shape(config.model, num_rows), tie_softmax=config.model.is_tied)
    model.prepare_for_training()
    store = _draw_store(lexicon, num_tokens=_TEXT_STEPS * step_tokens(config.train))

    def initialise(new: LanguageModel) -> None:
        new.initialise(config.train.seed)

    return Learner(model, store, config.train, device, initialise, SINGLE_PROCESS, precision)


def _draw_store(lexicon: Lexicon, num_tokens: int) -> IdStore:
    num_sentences = -(-num_tokens // SENTENCE_TOKENS)
    words = draw_words(len(lexicon.vocabulary), (num_sentences * SENTENCE_TOKENS,), np.random.default_rng(1))
    offsets = np.arange(num_sentences + 1, dtype=np.uint64) * np.uint64(SENTENCE_TOKENS)
    no_text = np.zeros(0, np.uint32), np.zeros(1, np.uint64), np.zeros(0, np.uint32), np.zeros(0)
    return IdStore(
        EncodedSentences.in_memory(words.astype(np.uint32), offsets), HeldoutSentences.measured(*no_text), lexicon
    )
