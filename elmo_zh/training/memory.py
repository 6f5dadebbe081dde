"""How much memory training takes, worked out before it is taken."""

from elmo_zh.config import ModelConfig, TrainConfig
from elmo_zh.model.character_cnn import CharacterShape
from elmo_zh.model.language_model import build_shape
from elmo_zh.model.softmax import CHUNK_LOGITS
from elmo_zh.training.baselines import MAX_TRAIN_TOKENS

# Python, torch and its thread pools before any model is built.
_PROCESS_BYTES = 400_000_000
_FLOAT = 4
# A Python string of a few characters and its place in a list.
_OTHER_WORD_BYTES = 90
# Pairs of neighbours as 64-bit keys, their sorted copy and their counts.
_BASELINE_BYTES_PER_TOKEN = 53


def scores_every_word(train: TrainConfig, num_tokens: int) -> bool:
    """Return whether training uses the exact softmax: where asked for, and where sampling would save nothing."""
    return train.softmax == "full" or 2 * train.num_negatives >= num_tokens


def _character_values(shape: CharacterShape) -> int:
    """Return how many numbers the character CNN keeps for a word of usual length, as long as its longest window."""
    slots = min(shape.num_slots, 2 * max(width for width, _ in shape.filters))
    windows = sum(slots * (width * shape.embedding_dim + 2 * count) for width, count in shape.filters)
    return windows + shape.num_highways * 4 * shape.num_filters


def predict_memory(
    model: ModelConfig, train: TrainConfig, num_tokens: int, num_train_tokens: int, num_other_words: int = 0
) -> int:
    """Return the bytes that weights, gradients, optimiser and one step's activations take together.

    Or those that counting bigrams for the baseline takes before, if they are more.

    Args:
        model: The model's settings.
        train: The training settings.
        num_tokens: Vocabulary rows V.
        num_train_tokens: Tokens of the training text.
        num_other_words: Different words outside the vocabulary, in character mode.
    """
    P, D = model.projection_dim, model.cell_dim
    shape = build_shape(model, num_tokens)
    table = num_tokens * P
    has_token_table = shape.characters is None
    tables = table * (2 if has_token_table and not model.tie_softmax else 1) + num_tokens
    network = shape.num_parameters() - (table if has_token_table else 0)
    states = 2 if train.optimizer == "adamw" else 1
    # Network: weights, gradients, optimiser. Tables: weights, Adagrad sums; word2vec's copy of one table.
    parameters = network * (2 + states) + tables * 2 + table
    predictions = 2 * train.batch_size * train.unroll_steps
    # A layer keeps gate values, cells and outputs, and in its gradient the same again.
    layer = predictions * (2 * 4 * D + 4 * D + 6 * P)
    # Of each distinct word the CNN keeps its windows and responses, and as much again in the gradient.
    characters = predictions * _character_values(shape.characters) if shape.characters else 0
    sampled = predictions * train.num_negatives
    # Exact scores go chunk by chunk, in training where they are used and in every evaluation.
    logits = 4 * max(CHUNK_LOGITS, 0 if scores_every_word(train, num_tokens) else sampled)
    training = _FLOAT * (parameters + layer * (model.num_layers + 1) // 2 + characters + logits)
    counting = _BASELINE_BYTES_PER_TOKEN * min(num_train_tokens, MAX_TRAIN_TOKENS)
    return _PROCESS_BYTES + max(training, counting) + _OTHER_WORD_BYTES * num_other_words
