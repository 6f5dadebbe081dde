"""The biLM with its softmax, built from settings or from weights by name."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from elmo_zh.config import ModelConfig
from elmo_zh.errors import RunError
from elmo_zh.language import _
from elmo_zh.model.bilm import BiLM
from elmo_zh.model.softmax import Softmax
from elmo_zh.reader.bilm import BiLMShape, CharacterShape, LayerState
from elmo_zh.reader.weights import ModelWeights
from elmo_zh.vocabulary.lexicon import BYTES


@dataclass(frozen=True)
class LanguageModel:
    """A biLM and its softmax, which are trained and exported together."""

    bilm: BiLM
    softmax: Softmax

    @classmethod
    def build(cls, shape: BiLMShape, *, tie_softmax: bool) -> "LanguageModel":
        """Return a model with uninitialised weights; a tied softmax requires token mode."""
        bilm = BiLM(shape)
        tied_to = bilm.token_table.weight if tie_softmax else None
        return cls(bilm, Softmax(shape.num_tokens, shape.projection_dim, tied_to))

    @classmethod
    def from_settings(cls, config: ModelConfig, num_tokens: int) -> "LanguageModel":
        """Return a model with uninitialised weights for these settings and a vocabulary of `num_tokens` rows."""
        return cls.build(build_shape(config, num_tokens), tie_softmax=config.is_tied)

    @property
    def is_tied(self) -> bool:
        """Whether the softmax uses the token embeddings."""
        return self.bilm.shape.characters is None and self.softmax.weight is self.bilm.token_table.weight

    def initialise(self, seed: int) -> torch.Generator:
        """Initialise all weights from the seed; return the generator for further draws."""
        generator = torch.Generator().manual_seed(seed)
        self.bilm.initialise(generator)
        if self.is_tied:
            with torch.no_grad():
                self.softmax.bias.zero_()
        else:
            self.softmax.initialise(generator)
        return generator

    def to(self, device: torch.device) -> None:
        """Move the model to a device."""
        self.bilm.to(device)
        self.softmax.to(device)

    def num_parameters(self) -> int:
        """Return the number of weights, counting shared ones only once."""
        return sum(tensor.numel() for tensor in self.named_tensors().values())

    def named_tensors(self) -> dict[str, Tensor]:
        """Return all weights by name, listing shared ones only once."""
        tensors = {name: value.detach() for name, value in _parameters(self.bilm, self.softmax).items()}
        if self.is_tied:
            del tensors["softmax.weight"]
        return tensors

    @torch.no_grad()
    def load_named_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        """Load weights returned by `named_tensors`."""
        for name, own in self.named_tensors().items():
            own.copy_(tensors[name])

    def describe(self, vocabulary_digest: str) -> dict[str, Any]:
        """Return the settings and the digest that a checkpoint must share with this model to be loaded into it."""
        shape = json.loads(json.dumps(asdict(self.bilm.shape)))  # tuples become lists, as in the file
        return {**shape, "tie_softmax": self.is_tied, "vocabulary_digest": vocabulary_digest}

    def require_same(self, described: Mapping[str, Any], vocabulary_digest: str, where: object) -> None:
        """Raise RunError, naming the first difference, if a checkpoint belongs to a different model or vocabulary."""
        for name, value in self.describe(vocabulary_digest).items():
            if described.get(name) != value:
                message = _(
                    "{where} was made with {name} = {name2}, but this run has {value}. Use the original"
                    " files and settings, or train again with --force."
                )
                raise RunError(message.format(where=where, name=name, name2=described.get(name), value=value))


# The settings of section model that determine the shape: under the same name in `BiLMShape`, or renamed in
# `CharacterShape`.
SHAPE_SETTINGS = (
    "cell_dim", "projection_dim", "num_layers", "cell_clip", "projection_clip", "skip_connections",
)  # fmt: skip
CHARACTER_SETTINGS = {
    "character_slots": "num_slots",
    "character_dim": "embedding_dim",
    "character_filters": "filters",
    "highway_layers": "num_highways",
    "character_activation": "activation",
}


def build_shape(config: ModelConfig, num_tokens: int) -> BiLMShape:
    """Return the biLM's shape for these settings and a vocabulary of `num_tokens` rows."""
    characters = None
    if config.mode == "character":
        fields: dict[str, Any] = {field: getattr(config, name) for name, field in CHARACTER_SETTINGS.items()}
        characters = CharacterShape(num_characters=BYTES.size, **fields)
    settings: dict[str, Any] = {name: getattr(config, name) for name in SHAPE_SETTINGS}
    return BiLMShape(num_tokens=num_tokens, characters=characters, **settings)


def _parameters(bilm: BiLM, softmax: Softmax | None) -> dict[str, Tensor]:
    named: dict[str, Tensor] = {f"bilm.{name}": value for name, value in bilm.named_parameters()}
    return named if softmax is None else named | {"softmax.bias": softmax.bias, "softmax.weight": softmax.weight}


def weights_of(bilm: BiLM, softmax: Softmax | None) -> ModelWeights:
    """Return a model's weights as float32 arrays, which share its memory where they can."""
    arrays = {name: value.detach().float().cpu().numpy() for name, value in _parameters(bilm, softmax).items()}
    warm_state = None
    if bilm.warm_output is not None and bilm.warm_cell is not None:
        both = (part.float().cpu().numpy() for part in (bilm.warm_output, bilm.warm_cell))
        warm_state = [LayerState(*layer) for layer in zip(*both, strict=True)]
    return ModelWeights(shape=bilm.shape, arrays=arrays, warm_state=warm_state)


@torch.no_grad()
def build_modules(weights: ModelWeights) -> tuple[BiLM, Softmax | None]:
    """Return a biLM and its softmax, if there is one, as PyTorch modules with copies of the weights."""
    shape, bilm = weights.shape, BiLM(weights.shape)
    softmax = Softmax(shape.num_tokens, shape.projection_dim) if weights.has_softmax else None
    for name, target in _parameters(bilm, softmax).items():
        target.copy_(torch.from_numpy(np.ascontiguousarray(weights.arrays[name])))
    if weights.warm_state is not None:
        output, cell = (
            np.stack([getattr(layer, part)[:, 0] for layer in weights.warm_state]) for part in ("output", "cell")
        )
        bilm.set_warm_state(torch.from_numpy(output), torch.from_numpy(cell))
    return bilm, softmax
