"""options.json: the published spelling of the biLM's settings, the only place where that spelling is used."""

import json
from pathlib import Path
from typing import Any

from elmo_zh.config import TrainConfig
from elmo_zh.errors import BundleError
from elmo_zh.model.bilm import BiLMShape


def options_of(shape: BiLMShape, train: TrainConfig, num_train_tokens: int, num_epochs: float) -> dict[str, Any]:
    """Return the options of a token-mode model; without char_cnn, as readers know that mode by."""
    return {
        "bidirectional": True,
        "dropout": train.dropout,
        "all_clip_norm_val": train.max_grad_norm,
        "n_epochs": num_epochs,
        "n_train_tokens": num_train_tokens,
        "batch_size": train.batch_size,
        "n_tokens_vocab": shape.num_tokens,
        "unroll_steps": train.unroll_steps,
        "n_negative_samples_batch": train.num_negatives,
        "lstm": {
            "cell_clip": shape.cell_clip or None,
            "proj_clip": shape.projection_clip or None,
            "dim": shape.cell_dim,
            "n_layers": shape.num_layers,
            "projection_dim": shape.projection_dim,
            "use_skip_connections": shape.skip_connections,
        },
    }


def load_shape(path: Path, num_tokens: int) -> BiLMShape:
    """Read options.json of a token-mode model.

    Args:
        path: The file.
        num_tokens: Rows of the vocabulary, which the options have to agree with.

    Raises:
        BundleError: If a key is missing, of another kind or out of range, or the model reads characters.
    """
    try:
        options = json.loads(path.read_text(encoding="utf-8"))
        lstm = options["lstm"]
        shape = BiLMShape(
            num_tokens=_whole(options["n_tokens_vocab"]),
            cell_dim=_whole(lstm["dim"]),
            projection_dim=_whole(lstm["projection_dim"]),
            num_layers=_whole(lstm["n_layers"]),
            cell_clip=_clip(lstm["cell_clip"]),
            projection_clip=_clip(lstm["proj_clip"]),
            skip_connections=bool(lstm["use_skip_connections"]),
        )
    except (OSError, UnicodeDecodeError, ValueError, TypeError, KeyError) as error:
        raise BundleError(f"{path} is not the options of a biLM ({error!r}).") from None
    if "char_cnn" in options:
        raise BundleError(f"{path} describes a model that reads characters, which cannot be loaded yet.")
    if shape.projection_dim > shape.cell_dim:
        raise BundleError(f"{path}: projection_dim {shape.projection_dim} is above dim {shape.cell_dim}.")
    if shape.num_tokens != num_tokens:
        raise BundleError(f"{path}: n_tokens_vocab is {shape.num_tokens}, but vocab.data has {num_tokens} lines.")
    return shape


def _whole(value: Any) -> int:
    if type(value) is not int or not 1 <= value <= 10**9:
        raise ValueError(f"{value!r} is no positive whole number")
    return value


def _clip(value: Any) -> float:
    clip = 0.0 if value is None else float(value)
    if not clip >= 0:
        raise ValueError(f"clip {value!r}")
    return clip
