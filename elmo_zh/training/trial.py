"""Training on words of chance, to see how long a step takes."""

import numpy as np
import torch
from numpy.typing import NDArray

from elmo_zh.config import Config
from elmo_zh.id_store.sentences import EncodedSentences, HeldoutSentences, IdStore
from elmo_zh.model.language_model import LanguageModel, build_shape
from elmo_zh.model.precision import Precision
from elmo_zh.training.distributed import ALONE
from elmo_zh.training.learner import Learner
from elmo_zh.training.optimizer import step_tokens
from elmo_zh.vocabulary.lexicon import Lexicon
from elmo_zh.vocabulary.vocabulary import SPECIALS

SENTENCE_TOKENS = 20
# The text of so many steps is drawn, and read again and again.
_DIFFERENT_STEPS = 8


def draw_words(num_rows: int, shape: tuple[int, ...], generator: np.random.Generator) -> NDArray[np.int64]:
    """Return vocabulary rows as frequent as words of text are, by the law of Zipf and Mandelbrot.

    A batch of small.toml has as many different ones as one of news text: about a thousand.
    """
    shares = 1 / (np.arange(num_rows - len(SPECIALS)) + 3.7) ** 1.1
    return generator.choice(len(shares), shape, p=shares / shares.sum()) + len(SPECIALS)


def build_trial(config: Config, lexicon: Lexicon, device: torch.device, precision: Precision) -> Learner:
    """Return a learner that is about to train a new model on sentences of drawn words.

    Args:
        config: Of the model and of training.
        lexicon: Whose words to draw.
        device: Where to train.
        precision: Precision of matrix products.
    """
    num_rows = len(lexicon.vocabulary)
    model = LanguageModel.build(build_shape(config.model, num_rows), tie_softmax=config.model.is_tied)
    model.prepare_for_training()
    store = _draw_store(lexicon, num_tokens=_DIFFERENT_STEPS * step_tokens(config.train))
    return Learner(model, store, config.train, device, lambda new: new.initialise(config.train.seed), ALONE, precision)


def _draw_store(lexicon: Lexicon, num_tokens: int) -> IdStore:
    num_sentences = -(-num_tokens // SENTENCE_TOKENS)
    words = draw_words(len(lexicon.vocabulary), (num_sentences * SENTENCE_TOKENS,), np.random.default_rng(1))
    offsets = np.arange(num_sentences + 1, dtype=np.uint64) * np.uint64(SENTENCE_TOKENS)
    no_text = np.zeros(0, np.uint32), np.zeros(1, np.uint64), np.zeros(0, np.uint32), np.zeros(0)
    return IdStore(
        EncodedSentences.in_memory(words.astype(np.uint32), offsets), HeldoutSentences.measured(*no_text), lexicon
    )
