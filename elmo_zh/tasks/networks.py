"""The networks for tasks, which score classes or tags, or predict a number.

Most read the inputs [x; ELMo] of each unit of a text. A linear tagger reads the n-grams around the unit instead; the
tagger of a mixture reads both.

Shape letters: B texts, T units.
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from elmo_zh.config.task_settings import HeadSettings
from elmo_zh.model.bilm import drop, reversal
from elmo_zh.model.kernels.execution import with_half_of_the_threads
from elmo_zh.model.precision import FLOAT32, PRECISIONS, choose_precision
from elmo_zh.model.projected_lstm import ProjectedLSTM
from elmo_zh.model.scalar_mix import ScalarMix
from elmo_zh.tasks.crf import CRF
from elmo_zh.tasks.encode_texts import PADDING, PLACES, Batch, Encoded, TextEncoder, num_units, short_batches

_NUM_GRAMS = 2**16  # rows for hashed n-grams
# Factor of the L2 penalty on the scores of n-grams.
_GRAM_PENALTY = 3e-4


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """The sizes of a network; `num_characters` includes padding and unknown, and regression has one output."""

    num_layers: int
    elmo_dim: int
    word2vec_dim: int
    num_characters: int
    num_outputs: int


class Dropout(nn.Module):
    """Dropout whose masks are cheap to draw (`model.bilm.drop`)."""

    def __init__(self, fraction: float) -> None:
        super().__init__()
        self.fraction = fraction

    def forward(self, values: Tensor) -> Tensor:
        """Return the values; in training, set a random fraction to zero and scale up the rest."""
        return drop(values, self.fraction) if self.training else values


class CharacterEmbedding(nn.Module):
    """Embeds a unit as the mean of its characters' learned vectors, joined with a vector for its place in its token."""

    def __init__(self, num_characters: int, dimension: int) -> None:
        super().__init__()
        self.characters = nn.Embedding(num_characters, dimension, padding_idx=PADDING)
        self.places = nn.Embedding(len(PLACES), dimension // 5)
        self.dimension = dimension + dimension // 5

    def forward(self, batch: Batch) -> Tensor:
        """Return a vector for each unit, float32, shape (B, T, dimension)."""
        num_characters = (batch["characters"] != PADDING).sum(dim=2, keepdim=True).clamp(min=1)
        mean = self.characters(batch["characters"]).sum(dim=2) / num_characters
        return torch.cat([mean, self.places(batch["places"])], dim=2)


class InputLayer(nn.Module):
    """Concatenates the chosen inputs of each unit: word2vec, characters and the mix of ELMo layers."""

    def __init__(self, settings: HeadSettings, sizes: Sizes) -> None:
        super().__init__()
        self.mix = ScalarMix(sizes.num_layers) if "elmo" in settings.inputs else None
        self.embedding = (
            CharacterEmbedding(sizes.num_characters, settings.character_dim)
            if "characters" in settings.inputs
            else None
        )
        self.has_word2vec = "word2vec" in settings.inputs
        self.dimension = (
            (sizes.elmo_dim if self.mix else 0)
            + (self.embedding.dimension if self.embedding else 0)
            + (sizes.word2vec_dim if self.has_word2vec else 0)
        )
        self.dropout = Dropout(settings.dropout)

    def forward(self, batch: Batch) -> Tensor:
        """Return the joined inputs of each unit, float32, shape (B, T, dimension)."""
        parts = [batch["word2vec"]] if self.has_word2vec else []
        if self.embedding is not None:
            parts.append(self.embedding(batch))
        if self.mix is not None:
            parts.append(self.mix(batch["elmo"]))
        dropped: Tensor = self.dropout(torch.cat(parts, dim=2))
        return dropped


class BiLSTM(nn.Module):
    """A bidirectional LSTM over texts of any length: a biLM layer without projection or clipping.

    Padding has no influence and stays zero. Matrix products use `training_precision` in training, else float32.
    """

    def __init__(self, input_dim: int, hidden_dim: int) -> None:
        super().__init__()
        self.lstm = ProjectedLSTM(input_dim, hidden_dim, hidden_dim, cell_clip=0.0, projection_clip=0.0)
        self.lstm.initialise(torch.Generator("cpu").manual_seed(int(torch.randint(2**62, (), device="cpu"))))
        self.dimension, self.training_precision = 2 * hidden_dim, FLOAT32

    def forward(self, inputs: Tensor, mask: Tensor) -> Tensor:
        """Return the outputs of both directions, float32, shape (B, T, 2 * hidden_dim)."""
        places, texts = reversal(mask).T, torch.arange(len(mask), device=mask.device)
        forwards = inputs.transpose(0, 1)
        precision = self.training_precision if self.training else FLOAT32
        both = torch.stack([forwards, forwards[places, texts]])
        outputs, _ = self.lstm(both, self.lstm.zero_state(len(mask)), precision=precision)
        joined = torch.cat([outputs[0], outputs[1][places, texts]], dim=2).transpose(0, 1)
        return joined * mask[:, :, None]


def choose_lstm_precision(network: nn.Module, batch_size: int, known: str = "") -> str:
    """Set the training precision of all LSTMs, by default the fastest for the first; return its name ("" if none)."""
    lstms = [module for module in network.modules() if isinstance(module, BiLSTM)]
    for lstm in lstms:
        width, num_columns = lstm.lstm.input_weight.shape[1:]
        width += lstm.lstm.output_dim
        known = known or choose_precision(lstm.lstm.bias.device, batch_size, width, num_columns).name
        lstm.training_precision = PRECISIONS[known]
    return known


class GramScores(nn.Module):
    """The n-grams around a unit -> the sum of their scores for each tag."""

    def __init__(self, num_tags: int) -> None:
        super().__init__()
        self.scores = nn.Parameter(torch.zeros(_NUM_GRAMS, num_tags))

    def forward(self, texts: Sequence[Batch]) -> Tensor:
        """Return the score of each tag for each unit, float32, shape (B, T, num_tags)."""
        [batch] = texts
        rows = batch["grams"].flatten(0, 1) % _NUM_GRAMS
        return functional.embedding_bag(rows, self.scores, mode="sum").view(*batch["mask"].shape, -1)


def pool_mean(vectors: Tensor, mask: Tensor) -> Tensor:
    """Return the mean over each text's units, zeros for a text without units, shape (B, dimension)."""
    return (vectors * mask[:, :, None]).sum(dim=1) / mask.sum(dim=1, keepdim=True).clamp(min=1)


def pool_max(vectors: Tensor, mask: Tensor) -> Tensor:
    """Return the maximum over each text's units, zeros for a text without units, shape (B, dimension)."""
    lowest = vectors.masked_fill(~mask[:, :, None], -torch.inf).amax(dim=1)
    return lowest.masked_fill(~mask.any(dim=1, keepdim=True), 0.0)


class AttentionPool(nn.Module):
    """The sum of a text's vectors weighted by learned attention (Yang et al. 2016)."""

    def __init__(self, dimension: int, hidden_dim: int) -> None:
        super().__init__()
        self.score = nn.Sequential(nn.Linear(dimension, hidden_dim), nn.Tanh(), nn.Linear(hidden_dim, 1))

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        """Return a vector for each text, float32, shape (B, dimension), zeros for a text without units."""
        scores = self.score(vectors)[:, :, 0].masked_fill(~mask, -1e9)
        weights = scores.softmax(dim=1) * mask
        pooled: Tensor = (weights[:, :, None] * vectors).sum(dim=1)
        return pooled


class BiLSTMClassifier(nn.Module):
    """[x; ELMo] -> BiLSTM -> maximum and attention -> one hidden layer -> classes, or a number."""

    def __init__(self, settings: HeadSettings, sizes: Sizes) -> None:
        super().__init__()
        self.inputs = InputLayer(settings, sizes)
        self.encoder = BiLSTM(self.inputs.dimension, settings.hidden_dim)
        dimension = self.encoder.dimension
        self.attention = AttentionPool(dimension, settings.hidden_dim)
        self.output = nn.Sequential(
            Dropout(settings.dropout),
            nn.Linear(2 * dimension, settings.hidden_dim),
            nn.ReLU(),
            Dropout(settings.dropout),
            nn.Linear(settings.hidden_dim, sizes.num_outputs),
        )

    def forward(self, texts: Sequence[Batch]) -> Tensor:
        """Return the score of each class, or a standardised number, float32, shape (B, num_outputs)."""
        [batch] = texts
        hidden = self.encoder(self.inputs(batch), batch["mask"])
        pooled = torch.cat([pool_max(hidden, batch["mask"]), self.attention(hidden, batch["mask"])], dim=1)
        scores: Tensor = self.output(pooled)
        return scores


class LinearClassifier(nn.Module):
    """[x; ELMo] -> mean over the units -> classes, or a number."""

    def __init__(self, settings: HeadSettings, sizes: Sizes) -> None:
        super().__init__()
        self.inputs = InputLayer(settings, sizes)
        self.output = nn.Linear(self.inputs.dimension, sizes.num_outputs)

    def forward(self, texts: Sequence[Batch]) -> Tensor:
        """Return the score of each class, or a standardised number, float32, shape (B, num_outputs)."""
        [batch] = texts
        scores: Tensor = self.output(pool_mean(self.inputs(batch), batch["mask"]))
        return scores


class PairClassifier(nn.Module):
    """Encodes both texts with one BiLSTM, compares each unit with the units aligned to it, composes and pools."""

    def __init__(self, settings: HeadSettings, sizes: Sizes) -> None:
        super().__init__()
        hidden_dim = settings.hidden_dim
        self.inputs = InputLayer(settings, sizes)
        self.encoder = BiLSTM(self.inputs.dimension, settings.hidden_dim)
        encoded_dim = self.encoder.dimension
        self.compare = nn.Sequential(nn.Linear(4 * encoded_dim, hidden_dim), nn.ReLU(), Dropout(settings.dropout))
        self.compose = BiLSTM(hidden_dim, hidden_dim)
        self.output = nn.Sequential(
            Dropout(settings.dropout),
            nn.Linear(4 * self.compose.dimension, hidden_dim),
            nn.Tanh(),
            Dropout(settings.dropout),
            nn.Linear(hidden_dim, sizes.num_outputs),
        )

    def forward(self, texts: Sequence[Batch]) -> Tensor:
        """Return the score of each class, or a standardised number, float32, shape (B, num_outputs)."""
        first, second = texts
        a, b = (self.encoder(self.inputs(batch), batch["mask"]) for batch in texts)
        attended_a, attended_b = align(a, b, first["mask"], second["mask"])
        pooled = [*self._compose(a, attended_a, first["mask"]), *self._compose(b, attended_b, second["mask"])]
        scores: Tensor = self.output(torch.cat(pooled, dim=1))
        return scores

    def _compose(self, text: Tensor, attended: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        compared = self.compare(torch.cat([text, attended, text - attended, text * attended], dim=2))
        composed = self.compose(compared, mask)
        return pool_mean(composed, mask), pool_max(composed, mask)


def align(a: Tensor, b: Tensor, mask_a: Tensor, mask_b: Tensor) -> tuple[Tensor, Tensor]:
    """Return, for each unit of a (B, T, D) and b (B, U, D), the attention-weighted mean of the other text's units."""
    products = a @ b.transpose(1, 2)
    to_b = products.masked_fill(~mask_b[:, None, :], -1e9).softmax(dim=2) * mask_b[:, None, :]
    to_a = products.masked_fill(~mask_a[:, :, None], -1e9).softmax(dim=1) * mask_a[:, :, None]
    return to_b @ b, to_a.transpose(1, 2) @ a


class Tagger(nn.Module):
    """[x; ELMo] -> BiLSTM -> a score for each tag of each unit (in a mixture, plus n-gram scores) -> CRF.

    If units are characters, x by default joins vectors of the character, its place in its word, and that word.
    """

    def __init__(self, settings: HeadSettings, sizes: Sizes, tags: Sequence[str], *, marks_spans: bool) -> None:
        super().__init__()
        self.inputs = InputLayer(settings, sizes)
        self.encoder = BiLSTM(self.inputs.dimension, settings.hidden_dim)
        self.dropout = Dropout(settings.dropout)
        self.emissions = nn.Linear(self.encoder.dimension, sizes.num_outputs)
        self.crf = CRF(tags, marks_spans=marks_spans)
        self.grams = GramScores(len(tags)) if settings.head == "mixture" else None

    def forward(self, texts: Sequence[Batch]) -> Tensor:
        """Return the score of each tag for each unit, float32, shape (B, T, num_outputs)."""
        [batch] = texts
        hidden = self.dropout(self.encoder(self.inputs(batch), batch["mask"]))
        emissions: Tensor = self.emissions(hidden)
        return emissions if self.grams is None else emissions + self.grams(texts)


class LinearTagger(GramScores):
    """The n-grams around each unit -> a score for each tag -> CRF."""

    def __init__(self, tags: Sequence[str], *, marks_spans: bool) -> None:
        super().__init__(len(tags))
        self.crf = CRF(tags, marks_spans=marks_spans)


class TaskHead(nn.Module):
    """A network with its loss and predictions."""

    def __init__(self, settings: HeadSettings, sizes: Sizes, labels: Sequence[str], *, marks_spans: bool) -> None:
        super().__init__()
        self.settings = settings
        self.network = _build(settings, sizes, labels, marks_spans=marks_spans)

    def loss(self, texts: Sequence[Batch]) -> Tensor:
        """Return the mean loss over the examples of a batch, plus any penalty on the layer mix or the n-gram scores."""
        outputs, targets = self.network(texts), texts[0]["target"]
        if self.settings.kind == "tag":
            costs: Tensor = self.network.crf.negative_log_likelihood(outputs, targets, texts[0]["mask"])
            loss = costs.mean()
        elif self.settings.regression:
            loss = functional.mse_loss(outputs, targets)
        else:
            loss = functional.cross_entropy(outputs, targets[:, 0])
        if self.settings.is_crf:
            loss = loss + _GRAM_PENALTY * self.network.scores.square().sum()
        if self.mix is not None:
            loss = loss + self.settings.mix_penalty * self.mix.l2_penalty()
        return loss

    @torch.no_grad()
    def predict(self, texts: Sequence[Batch]) -> list[Any]:
        """Return, for each example, the class probabilities, a standardised number, or the tag numbers."""
        outputs = self.network(texts)
        if self.settings.kind == "tag":
            return list(self.network.crf.best_tags(outputs, texts[0]["mask"]))
        if self.settings.regression:
            return list(outputs[:, 0].tolist())
        return list(outputs.double().softmax(dim=1).tolist())

    @property
    def mix(self) -> ScalarMix | None:
        """The mix of ELMo's layers, or None if they are not an input."""
        return getattr(getattr(self.network, "inputs", None), "mix", None)


def mix_taggers(network: TaskHead, linear: TaskHead, weight: float) -> TaskHead:
    """Return one tagger that sums the scores of both, the linear one's with `weight`, the network's with 1 - `weight`.

    Its probability of a sequence of tags is the normalised product of both probabilities, each raised to its weight.
    """
    mixed = deepcopy(network)
    mixed.settings = replace(network.settings, head="mixture")
    mixed.network.grams = GramScores(linear.network.scores.shape[1])
    with torch.no_grad():
        mixed.network.grams.scores += weight * linear.network.scores
        for parameter in mixed.network.emissions.parameters():
            parameter *= 1 - weight
        for parameter, other in zip(mixed.network.crf.parameters(), linear.network.crf.parameters(), strict=True):
            parameter.lerp_(other, weight)
    return mixed


def _build(settings: HeadSettings, sizes: Sizes, labels: Sequence[str], *, marks_spans: bool) -> Any:
    if settings.is_crf:
        return LinearTagger(labels, marks_spans=marks_spans)
    if settings.kind == "tag":
        return Tagger(settings, sizes, labels, marks_spans=marks_spans)
    if settings.kind == "pairs":
        return PairClassifier(settings, sizes)
    return LinearClassifier(settings, sizes) if settings.head == "linear" else BiLSTMClassifier(settings, sizes)


@with_half_of_the_threads()
def predict_all(head: TaskHead, examples: Sequence[Sequence[Encoded]], encoder: TextEncoder) -> list[Any]:
    """Return what a network predicts for each example, in order."""
    head.eval()
    outputs: list[Any] = [None] * len(examples)
    for rows in short_batches([*map(num_units, examples)]):
        for row, output in zip(rows, head.predict(encoder.batches([examples[row] for row in rows])), strict=True):
            outputs[row] = output
    return outputs
