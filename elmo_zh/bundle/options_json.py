"""Read and write options.json, where the settings of the biLM have their published names."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from elmo_zh.config import TrainConfig
from elmo_zh.errors import BundleError
from elmo_zh.language import _
from elmo_zh.reader.bilm import BiLMShape, CharacterShape
from elmo_zh.run.files import read_json
from elmo_zh.vocabulary.lexicon import BYTES

# Readers of the format add 1 to each id and make a row of zeros for id 0, so they expect one more character.
_PUBLISHED_CHARACTERS = BYTES.size + 1
# Some files still have the number from training, which is one lower.
_KNOWN_CHARACTERS = (BYTES.size, _PUBLISHED_CHARACTERS)
# Far above any biLM, and low enough that a file cannot keep us busy forever.
_Size = Annotated[int, Meta(ge=1, le=10**9)]
_Clip = Annotated[float, Meta(ge=0, le=10**9)]
_Layers = Annotated[int, Meta(ge=1, le=1000)]


class _LSTM(Struct):
    dim: _Size
    projection_dim: _Size
    n_layers: _Layers
    cell_clip: _Clip | None
    proj_clip: _Clip | None
    use_skip_connections: bool


class _Embedding(Struct):
    dim: _Size


class _WordEmbedding(Struct, frozen=True):
    dim: Annotated[int, Meta(ge=0, le=10**9)] = 0


class _Characters(Struct):
    activation: Literal["relu", "tanh"]
    embedding: _Embedding
    filters: Annotated[tuple[tuple[_Size, _Size], ...], Meta(min_length=1, max_length=1000)]
    max_characters_per_token: Annotated[int, Meta(ge=3, le=10_000)]  # two of them are a word's marks
    n_characters: Annotated[int, Meta(ge=2, le=10**9)] | None = None
    n_highway: Annotated[int, Meta(ge=0, le=1000)] | None = None
    unicode_characters: bool = False
    word_embedding: _WordEmbedding = _WordEmbedding()

    def shape(self) -> CharacterShape:
        number = self.n_characters or _PUBLISHED_CHARACTERS
        if not self.unicode_characters and number not in _KNOWN_CHARACTERS:
            raise ValueError(f"n_characters is {number}; expected {_PUBLISHED_CHARACTERS}")
        if (widest := max(width for width, _ in self.filters)) > self.max_characters_per_token:
            raise ValueError(f"filters of width {widest} are wider than max_characters_per_token")
        return CharacterShape(
            num_characters=number - 1 if self.unicode_characters else BYTES.size,
            num_slots=self.max_characters_per_token,
            embedding_dim=self.embedding.dim,
            filters=self.filters,
            num_highways=self.n_highway or 0,
            activation=self.activation,
            word_dim=self.word_embedding.dim if self.unicode_characters else 0,
            is_published=not self.unicode_characters,
        )


class _Options(Struct):
    lstm: _LSTM
    char_cnn: _Characters | UnsetType = UNSET
    n_tokens_vocab: _Size | None = None


def training_options(train: TrainConfig, num_train_tokens: int, num_epochs: float) -> dict[str, Any]:
    """Return the training options of options.json; `carry_state` is ours, and other programs ignore it."""
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
    """Return the content of options.json; readers recognise token mode by the absence of char_cnn."""
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
        raise BundleError.missing(path)
    try:
        options: dict[str, Any] = read_json(path, dict[str, Any])
    except ValueError as error:
        raise BundleError.damaged(path, error) from None
    return options


def parse_shape(options: Mapping[str, Any], path: Path, num_tokens: int | None) -> BiLMShape:
    """Return the model shape in an options file; raise BundleError if it is invalid or does not fit the vocabulary."""
    try:
        read = msgspec.convert(options, _Options)
        lstm, characters, number = read.lstm, read.char_cnn, read.n_tokens_vocab
        if lstm.projection_dim > lstm.dim:
            raise ValueError(f"projection_dim {lstm.projection_dim} is above dim {lstm.dim}")
        if num_tokens is not None and number not in (None, num_tokens):
            raise ValueError(f"n_tokens_vocab is {number}, but the vocabulary has {num_tokens} lines")
        return BiLMShape(
            num_tokens=num_tokens or number or 1,
            cell_dim=lstm.dim,
            projection_dim=lstm.projection_dim,
            num_layers=lstm.n_layers,
            cell_clip=lstm.cell_clip or 0.0,
            projection_clip=lstm.proj_clip or 0.0,
            skip_connections=lstm.use_skip_connections,
            characters=None if characters is UNSET else characters.shape(),
        )
    except ValueError as error:
        raise BundleError.damaged(path, error) from None


def require_published(shape: BiLMShape, path: Path, usage: str) -> None:
    """Raise BundleError if a shape read from `path` belongs to an ELMoForManyLangs model, usable only in a bundle."""
    if shape.characters and not shape.characters.is_published:
        message = _("{path} belongs to a bundle converted from ELMoForManyLangs. Use the whole bundle: {usage}")
        raise BundleError(message.format(path=path, usage=usage))
