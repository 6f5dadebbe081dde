"""Read and write options.json; only this module knows the published names of the biLM's settings."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from elmo_zh.config import TrainConfig
from elmo_zh.errors import BundleError
from elmo_zh.reader.shape import BiLMShape, CharacterShape
from elmo_zh.run.files import read_json
from elmo_zh.vocabulary.lexicon import BYTES

# Readers of the format add 1 to each id and make a row of zeros for id 0, so they expect one more character.
_PUBLISHED_CHARACTERS = BYTES.size + 1
# Some files still have the number from training, which is one lower.
_KNOWN_CHARACTERS = (BYTES.size, _PUBLISHED_CHARACTERS)
# Far above any biLM, and low enough that a file cannot keep us busy forever.
_LARGEST = 10**9
_MOST_LAYERS = 1000


def training_options(train: TrainConfig, num_train_tokens: int, num_epochs: float) -> dict[str, Any]:
    """Return the training options of options.json; `carry_state` is our own, and other programs ignore it."""
    return {
        "carry_state": train.carry_state,
        "dropout": train.dropout,
        "all_clip_norm_val": train.max_grad_norm,
        "n_epochs": num_epochs,
        "n_train_tokens": num_train_tokens,
        "batch_size": train.batch_size,
        "unroll_steps": train.unroll_steps,
        "n_negative_samples_batch": train.num_negatives,
    }


TRAINING_KEYS = tuple(training_options(TrainConfig(), 0, 0.0))


def options_of(shape: BiLMShape, training: Mapping[str, Any], num_tokens: int | None) -> dict[str, Any]:
    """Return the published options; token mode has no char_cnn, which is how readers recognise it."""
    options: dict[str, Any] = {"bidirectional": True, **training}
    if num_tokens is not None:
        options["n_tokens_vocab"] = num_tokens
    options["lstm"] = {
        "cell_clip": shape.cell_clip or None,
        "proj_clip": shape.projection_clip or None,
        "dim": shape.cell_dim,
        "n_layers": shape.num_layers,
        "projection_dim": shape.projection_dim,
        "use_skip_connections": shape.skip_connections,
    }
    if shape.characters is not None:
        options["char_cnn"] = _character_options(shape.characters)
    return options


def _character_options(shape: CharacterShape) -> dict[str, Any]:
    options: dict[str, Any] = {
        "activation": shape.activation,
        "embedding": {"dim": shape.embedding_dim},
        "filters": [list(pair) for pair in shape.filters],
        "max_characters_per_token": shape.num_slots,
        "n_characters": shape.num_characters + 1,
        "n_highway": shape.num_highways,
    }
    if not shape.is_published:
        # Our own keys, for models of ELMoForManyLangs, which no other program can read in this form.
        options |= {"unicode_characters": True, "word_embedding": {"dim": shape.word_dim}}
    return options


def load_options(path: Path) -> dict[str, Any]:
    """Read options.json; raise BundleError if the file is missing or is not a JSON object."""
    if not path.is_file():
        raise BundleError(f"{path} is missing. Copy the model again, or give the path of the right file.")
    try:
        options = read_json(path)
    except (OSError, ValueError) as error:
        raise BundleError(f"{path} cannot be read as the options of a biLM ({error}). Copy the file again.") from None
    if not isinstance(options, dict):
        raise BundleError(f"{path} does not contain a JSON object with the options of a biLM. Copy the file again.")
    return options


def parse_shape(options: Mapping[str, Any], path: Path, num_tokens: int | None) -> BiLMShape:
    """Return the model shape that an options file describes; raise BundleError if it does not fit the vocabulary."""
    try:
        lstm = _section(options, "lstm")
        shape = BiLMShape(
            num_tokens=num_tokens if num_tokens is not None else _whole(options, "n_tokens_vocab", default=1),
            cell_dim=_whole(lstm, "dim"),
            projection_dim=_whole(lstm, "projection_dim"),
            num_layers=_whole(lstm, "n_layers", most=_MOST_LAYERS),
            cell_clip=_clip(lstm, "cell_clip"),
            projection_clip=_clip(lstm, "proj_clip"),
            skip_connections=_truth(lstm, "use_skip_connections"),
            characters=_parse_characters(_section(options, "char_cnn")) if "char_cnn" in options else None,
        )
        if shape.projection_dim > shape.cell_dim:
            raise ValueError(f"projection_dim {shape.projection_dim} is above dim {shape.cell_dim}")
        if num_tokens is not None and _whole(options, "n_tokens_vocab", default=num_tokens) != num_tokens:
            raise ValueError(
                f"n_tokens_vocab is {options['n_tokens_vocab']}, but the vocabulary has {num_tokens} lines"
            )
    except ValueError as error:
        raise BundleError(f"{path}: {error}. Copy the files of this model again.") from None
    return shape


def _parse_characters(options: Mapping[str, Any]) -> CharacterShape:
    num_characters, word_dim = BYTES.size, 0
    if "unicode_characters" in options:
        num_characters = _whole(options, "n_characters", least=2) - 1
        word_dim = _whole(_section(options, "word_embedding"), "dim", least=0)
    elif (found := _whole(options, "n_characters", default=_PUBLISHED_CHARACTERS)) not in _KNOWN_CHARACTERS:
        raise ValueError(f"n_characters is {found}; expected {_PUBLISHED_CHARACTERS}")
    num_slots = _whole(options, "max_characters_per_token", most=10_000)
    if options.get("activation") not in ("relu", "tanh"):
        raise ValueError(f"activation is {options.get('activation')!r}; expected relu or tanh")
    if num_slots < 3:
        raise ValueError(f"max_characters_per_token is {num_slots}, which leaves no room beside a word's two marks")
    return CharacterShape(
        num_characters=num_characters,
        num_slots=num_slots,
        embedding_dim=_whole(_section(options, "embedding"), "dim"),
        filters=_parse_filters(options.get("filters"), num_slots),
        num_highways=_whole(options, "n_highway", least=0, most=_MOST_LAYERS, default=0),
        activation=options["activation"],
        word_dim=word_dim,
        is_published="unicode_characters" not in options,
    )


def _parse_filters(value: Any, num_slots: int) -> tuple[tuple[int, int], ...]:
    if not isinstance(value, list) or not 1 <= len(value) <= _MOST_LAYERS:
        raise ValueError("filters is not a list of [width, number]")
    filters = []
    for pair in value:
        if not isinstance(pair, list) or len(pair) != 2:
            raise ValueError(f"filters holds {pair!r}; expected [width, number]")
        named = {"width of a filter": pair[0], "number of filters": pair[1]}
        width = _whole(named, "width of a filter", most=num_slots)
        filters.append((width, _whole(named, "number of filters")))
    return tuple(filters)


def _get(options: Mapping[str, Any], name: str) -> Any:
    if name not in options:
        raise ValueError(f"{name} is missing")
    return options[name]


def _section(options: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    section = options.get(name)
    if not isinstance(section, dict):
        raise ValueError(f"{name} is missing or not an object")
    return section


def _whole(
    options: Mapping[str, Any], name: str, *, least: int = 1, most: int = _LARGEST, default: int | None = None
) -> int:
    if options.get(name) is None and default is not None:
        return default
    value = _get(options, name)
    if type(value) is not int or not least <= value <= most:
        raise ValueError(f"{name} is {value!r}; expected a whole number from {least} to {most}")
    return value


def _clip(options: Mapping[str, Any], name: str) -> float:
    value = _get(options, name)
    if value is None:
        return 0.0
    if type(value) not in (int, float) or not 0 <= value <= _LARGEST:
        raise ValueError(f"{name} is {value!r}; expected null or a number from 0 to {_LARGEST}")
    return float(value)


def _truth(options: Mapping[str, Any], name: str) -> bool:
    value = _get(options, name)
    if not isinstance(value, bool):
        raise ValueError(f"{name} is {value!r}; expected true or false")
    return value
