"""Trial training on random words, to measure how long a step takes, and the number of operations in a step."""

import numpy as np
import torch
from numpy.typing import NDArray

from elmo_zh.config import Config, ModelConfig
from elmo_zh.id_store.encoded_sentences import EncodedSentences, HeldoutSentences, IdStore
from elmo_zh.model.language_model import LanguageModel, build_shape
from elmo_zh.model.precision import Precision
from elmo_zh.training.distributed import SINGLE_PROCESS
from elmo_zh.training.learner import Learner
from elmo_zh.training.memory import scores_every_word
from elmo_zh.training.optimizer import step_tokens
from elmo_zh.vocabulary.lexicon import Lexicon
from elmo_zh.vocabulary.vocabulary import SPECIALS, Vocabulary

SENTENCE_TOKENS = 20
# The random text is enough for this many steps, and is read repeatedly.
_TEXT_STEPS = 8


def draw_words(num_rows: int, shape: tuple[int, ...], generator: np.random.Generator) -> NDArray[np.int64]:
    """Return random vocabulary rows that are as frequent as words in text, by the Zipf-Mandelbrot law.

    With small.toml a batch has as many distinct rows as a batch of news text: about a thousand.
    """
    frequencies = 1 / (np.arange(num_rows - len(SPECIALS)) + 3.7) ** 1.1
    return generator.choice(len(frequencies), shape, p=frequencies / frequencies.sum()) + len(SPECIALS)


def draw_lexicon(num_rows: int, num_slots: int | None) -> Lexicon:
    """Return a lexicon of made-up words, most of two characters; `num_slots` is that of `Lexicon`."""
    generator = np.random.default_rng(2)
    lengths = generator.choice([1, 2, 3, 4], num_rows, p=[0.15, 0.55, 0.2, 0.1])
    words = {
        "".join(chr(0x4E00 + character) for character in generator.integers(0, 3000, length)) for length in lengths
    }
    spare = (f"词{number}" for number in range(num_rows))
    return Lexicon(Vocabulary([*SPECIALS, *sorted(words), *spare][:num_rows]), num_slots)


def forward_flops(model: ModelConfig, num_scored: int) -> float:
    """Return the FLOPs of matrix products for one token, both directions: of the LSTMs, and of `num_scored` words."""
    cell = 2 * model.projection_dim * 4 * model.cell_dim + model.cell_dim * model.projection_dim
    return 2.0 * 2 * (model.num_layers * cell + num_scored * model.projection_dim)


def step_flops(config: Config, rows: int) -> float:
    """Return the FLOPs of matrix products in one training step; backward takes twice those of forward.

    Those of the character CNN, which reads each distinct word of a step once, are the windows and the highways.

    Args:
        config: Settings of the model and of training.
        rows: Rows of the vocabulary.
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
    store = draw_store(lexicon, num_tokens=_TEXT_STEPS * step_tokens(config.train))

    def initialise(new: LanguageModel) -> None:
        new.initialise(config.train.seed)

    return Learner(model, store, config.train, device, initialise, SINGLE_PROCESS, precision)


def draw_store(lexicon: Lexicon, num_tokens: int) -> IdStore:
    """Return a training text of at least `num_tokens` random words, in sentences of equal length; nothing held out."""
    num_sentences = -(-num_tokens // SENTENCE_TOKENS)
    words = draw_words(len(lexicon.vocabulary), (num_sentences * SENTENCE_TOKENS,), np.random.default_rng(1))
    offsets = np.arange(num_sentences + 1, dtype=np.uint64) * np.uint64(SENTENCE_TOKENS)
    no_text = np.zeros(0, np.uint32), np.zeros(1, np.uint64), np.zeros(0, np.uint32), np.zeros(0)
    return IdStore(
        EncodedSentences.in_memory(words.astype(np.uint32), offsets), HeldoutSentences.measured(*no_text), lexicon
    )
