"""Read and write options.json; only this module knows the published names of the biLM's settings."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, ValidationError, convert

from elmo_zh.config import TrainConfig
from elmo_zh.errors import BundleError
from elmo_zh.language import _
from elmo_zh.reader.shape import BiLMShape, CharacterShape
from elmo_zh.run.files import read_json
from elmo_zh.vocabulary.lexicon import BYTES

# Readers of the format add 1 to each id and make a row of zeros for id 0, so they expect one more character.
_PUBLISHED_CHARACTERS = BYTES.size + 1
# Some files still have the number from training, which is one lower.
_KNOWN_CHARACTERS = (BYTES.size, _PUBLISHED_CHARACTERS)
# Far above any biLM, and low enough that a file cannot keep us busy forever.
_LARGEST = 10**9
_Size = Annotated[int, Meta(ge=1, le=_LARGEST)]
_Number = Annotated[int, Meta(ge=0, le=1000)]
_Clip = Annotated[float, Meta(ge=0, le=_LARGEST)]


class _Lstm(Struct):
    """The LSTM layers; null clips nothing."""

    cell_clip: _Clip | None
    proj_clip: _Clip | None
    dim: _Size
    n_layers: Annotated[int, Meta(ge=1, le=1000)]
    projection_dim: _Size
    use_skip_connections: bool


class _Embedding(Struct, frozen=True):
    dim: Annotated[int, Meta(ge=0, le=_LARGEST)]


class _Characters(Struct):
    """The character CNN; a word's slots also hold its two marks."""

    activation: Literal["relu", "tanh"]
    embedding: _Embedding
    filters: Annotated[tuple[tuple[_Size, _Size], ...], Meta(min_length=1, max_length=1000)]
    max_characters_per_token: Annotated[int, Meta(ge=3, le=10_000)]
    n_characters: _Size | None = None
    n_highway: _Number | None = None
    # Our own keys, for models of ELMoForManyLangs.
    unicode_characters: bool | UnsetType = UNSET
    word_embedding: _Embedding = _Embedding(0)


class _Options(Struct):
    """The options that a biLM needs; a file in token mode has no char_cnn."""

    lstm: _Lstm
    char_cnn: _Characters | UnsetType = UNSET
    n_tokens_vocab: _Size | None = None


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
        text = _("{path} is missing. Copy the model again, or give the path of the right file.")
        raise BundleError(text.format(path=path))
    try:
        options = read_json(path)
    except (OSError, ValueError) as error:
        text = _("{path} cannot be read as the options of a biLM ({error}). Copy the file again.")
        raise BundleError(text.format(path=path, error=error)) from None
    if not isinstance(options, dict):
        text = _("{path} does not contain a JSON object with the options of a biLM. Copy the file again.")
        raise BundleError(text.format(path=path))
    return options


def parse_shape(options: Mapping[str, Any], path: Path, num_tokens: int | None) -> BiLMShape:
    """Return the model shape that an options file describes; raise BundleError if it does not fit the vocabulary."""
    try:
        found = convert(options, _Options)
        lstm = found.lstm
        characters = None if found.char_cnn is UNSET else _parse_characters(found.char_cnn)
        if lstm.projection_dim > lstm.dim:
            raise ValueError(f"projection_dim {lstm.projection_dim} is above dim {lstm.dim}")
        if num_tokens is not None and found.n_tokens_vocab not in (None, num_tokens):
            raise ValueError(f"n_tokens_vocab is {found.n_tokens_vocab}, but the vocabulary has {num_tokens} lines")
    except (ValidationError, ValueError, OverflowError) as error:
        text = _("{path}: {problem}. Copy the files of this model again.")
        raise BundleError(text.format(path=path, problem=error)) from None
    return BiLMShape(
        num_tokens=num_tokens or found.n_tokens_vocab or 1,
        cell_dim=lstm.dim,
        projection_dim=lstm.projection_dim,
        num_layers=lstm.n_layers,
        cell_clip=lstm.cell_clip or 0.0,
        projection_clip=lstm.proj_clip or 0.0,
        skip_connections=lstm.use_skip_connections,
        characters=characters,
    )


def _parse_characters(options: _Characters) -> CharacterShape:
    is_published = options.unicode_characters is UNSET
    known = _KNOWN_CHARACTERS if is_published else range(2, _LARGEST + 1)
    number = options.n_characters or _PUBLISHED_CHARACTERS
    if number not in known:
        raise ValueError(f"n_characters is {number}; expected {_PUBLISHED_CHARACTERS}")
    widest, num_slots = max(width for width, _number in options.filters), options.max_characters_per_token
    if widest > num_slots:  # a window wider than a word's slots would never stand anywhere
        raise ValueError(f"a filter has the width {widest}, but max_characters_per_token is {num_slots}")
    return CharacterShape(
        num_characters=BYTES.size if is_published else number - 1,
        num_slots=num_slots,
        embedding_dim=options.embedding.dim,
        filters=options.filters,
        num_highways=options.n_highway or 0,
        activation=options.activation,
        word_dim=options.word_embedding.dim,
        is_published=is_published,
    )
