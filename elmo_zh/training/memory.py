"""How much memory training takes, worked out before it is taken."""

from elmo_zh.config import ModelConfig, TrainConfig
from elmo_zh.model.language_model import build_shape
from elmo_zh.model.softmax import CHUNK_LOGITS

# Python, torch and its thread pools before any model is built.
_PROCESS_BYTES = 400_000_000
_FLOAT = 4


def predict_memory(model: ModelConfig, train: TrainConfig, num_tokens: int) -> int:
    """Return the bytes that weights, gradients, optimiser and one step's activations take together.

    Args:
        model: The model's settings.
        train: The training settings.
        num_tokens: Vocabulary rows V.
    """
    P, D = model.projection_dim, model.cell_dim
    table = num_tokens * P
    tables = table * (1 if model.tie_softmax else 2) + num_tokens
    network = build_shape(model, num_tokens).num_parameters() - table
    states = 2 if train.optimizer == "adamw" else 1
    # Network: weights, gradients, optimiser. Tables: weights, Adagrad sums; word2vec's copy of one table.
    parameters = network * (2 + states) + tables * 2 + table
    predictions = 2 * train.batch_size * train.unroll_steps
    # A layer keeps gate values, cells and outputs, and in its gradient the same again.
    layer = predictions * (2 * 4 * D + 4 * D + 6 * P)
    sampled = predictions * min(train.num_negatives, num_tokens)
    logits = 4 * (sampled if train.softmax == "sampled" else CHUNK_LOGITS)
    return _PROCESS_BYTES + _FLOAT * (parameters + layer * (model.num_layers + 1) // 2 + logits)
