"""The networks for tasks, with the loss and the predictions that they share."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from elmo_zh.config.task_settings import HeadSettings
from elmo_zh.model.scalar_mix import ScalarMix
from elmo_zh.tasks.layers import (
    CRF,
    Batch,
    BiLSTM,
    Dropout,
    GramScores,
    InputLayer,
    OutputElmo,
    Sizes,
    build_encoder,
    pool_max,
    pool_mean,
)

# Factor of the L2 penalty on the scores of n-grams.
_GRAM_PENALTY = 3e-4


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
    """[x; ELMo] -> BiLSTM -> [h; ELMo] -> maximum and attention -> one hidden layer -> classes, or a number."""

    def __init__(self, settings: HeadSettings, sizes: Sizes) -> None:
        super().__init__()
        self.inputs = InputLayer(settings, sizes)
        self.encoder = build_encoder(self.inputs.dimension, settings)
        self.output_elmo = OutputElmo(settings, sizes)
        dimension = self.encoder.dimension + self.output_elmo.dimension
        self.attention = AttentionPool(dimension, settings.hidden_dim)
        self.output = nn.Sequential(
            Dropout(settings.dropout),
            nn.Linear(2 * dimension, settings.hidden_dim),
            nn.ReLU(),
            Dropout(settings.dropout),
            nn.Linear(settings.hidden_dim, sizes.num_outputs),
        )

    def forward(self, texts: Sequence[Batch]) -> Tensor:
        """Return the score of each class, float32, shape (B, num_outputs)."""
        [batch] = texts
        hidden = self.output_elmo(self.encoder(self.inputs(batch), batch.mask), batch)
        pooled = torch.cat([pool_max(hidden, batch.mask), self.attention(hidden, batch.mask)], dim=1)
        scores: Tensor = self.output(pooled)
        return scores


class LinearClassifier(nn.Module):
    """[x; ELMo] -> mean over the units -> classes, or a number."""

    def __init__(self, settings: HeadSettings, sizes: Sizes) -> None:
        super().__init__()
        self.inputs = InputLayer(settings, sizes)
        self.output = nn.Linear(self.inputs.dimension, sizes.num_outputs)

    def forward(self, texts: Sequence[Batch]) -> Tensor:
        """Return the score of each class, float32, shape (B, num_outputs)."""
        [batch] = texts
        scores: Tensor = self.output(pool_mean(self.inputs(batch), batch.mask))
        return scores


class PairClassifier(nn.Module):
    """Runs both texts through one BiLSTM, compares each with its attention over the other, composes and pools."""

    def __init__(self, settings: HeadSettings, sizes: Sizes) -> None:
        super().__init__()
        hidden_dim = settings.hidden_dim
        self.inputs = InputLayer(settings, sizes)
        self.encoder = build_encoder(self.inputs.dimension, settings)
        self.output_elmo = OutputElmo(settings, sizes)
        encoded_dim = self.encoder.dimension
        self.compare = nn.Sequential(nn.Linear(4 * encoded_dim, hidden_dim), nn.ReLU(), Dropout(settings.dropout))
        self.compose = BiLSTM(hidden_dim + self.output_elmo.dimension, hidden_dim)
        self.output = nn.Sequential(
            Dropout(settings.dropout),
            nn.Linear(4 * self.compose.dimension, hidden_dim),
            nn.Tanh(),
            Dropout(settings.dropout),
            nn.Linear(hidden_dim, sizes.num_outputs),
        )

    def forward(self, texts: Sequence[Batch]) -> Tensor:
        """Return the score of each class, float32, shape (B, num_outputs)."""
        first, second = texts
        a, b = (self.encoder(self.inputs(batch), batch.mask) for batch in texts)
        attended_a, attended_b = align(a, b, first.mask, second.mask)
        pooled = [
            *self._compose(a, attended_a, first),
            *self._compose(b, attended_b, second),
        ]
        scores: Tensor = self.output(torch.cat(pooled, dim=1))
        return scores

    def _compose(self, own: Tensor, attended: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        compared = self.compare(torch.cat([own, attended, own - attended, own * attended], dim=2))
        composed = self.compose(self.output_elmo(compared, batch), batch.mask)
        return pool_mean(composed, batch.mask), pool_max(composed, batch.mask)


def align(a: Tensor, b: Tensor, mask_a: Tensor, mask_b: Tensor) -> tuple[Tensor, Tensor]:
    """Return, for each unit of a (B, T, D) and b (B, U, D), the attention-weighted mean of the other text's units."""
    products = a @ b.transpose(1, 2)
    to_b = products.masked_fill(~mask_b[:, None, :], -1e9).softmax(dim=2) * mask_b[:, None, :]
    to_a = products.masked_fill(~mask_a[:, :, None], -1e9).softmax(dim=1) * mask_a[:, :, None]
    return to_b @ b, to_a.transpose(1, 2) @ a


class Tagger(nn.Module):
    """[x; ELMo] -> BiLSTM -> [h; ELMo] -> a score for each tag of each unit, in a mixture plus n-grams' -> CRF.

    For characters, x joins the character's vector, its place in its word, and the vectors of that word.
    """

    def __init__(self, settings: HeadSettings, sizes: Sizes, tags: Sequence[str], *, marks_spans: bool) -> None:
        super().__init__()
        self.inputs = InputLayer(settings, sizes)
        self.encoder = build_encoder(self.inputs.dimension, settings)
        self.dropout = Dropout(settings.dropout)
        self.output_elmo = OutputElmo(settings, sizes)
        self.emissions = nn.Linear(self.encoder.dimension + self.output_elmo.dimension, sizes.num_outputs)
        self.crf = CRF(tags, marks_spans=marks_spans)
        self.grams = GramScores(len(tags)) if settings.head == "mixture" else None

    def forward(self, texts: Sequence[Batch]) -> Tensor:
        """Return the score of each tag for each unit, float32, shape (B, T, num_outputs)."""
        [batch] = texts
        hidden = self.dropout(self.encoder(self.inputs(batch), batch.mask))
        emissions: Tensor = self.emissions(self.output_elmo(hidden, batch))
        return emissions if self.grams is None else emissions + self.grams(texts)


class LinearTagger(GramScores):
    """The n-grams around each unit -> a score for each tag -> CRF."""

    def __init__(self, tags: Sequence[str], *, marks_spans: bool) -> None:
        super().__init__(len(tags))
        self.crf = CRF(tags, marks_spans=marks_spans)


@dataclass(frozen=True)
class TagProbabilities:
    """The tag numbers of a text, the probability of each tag and, in order, of each span that the tags mark."""

    tags: list[int]
    of_tags: list[float]
    of_spans: list[float]


class TaskHead(nn.Module):
    """A network with its loss and predictions."""

    def __init__(self, settings: HeadSettings, sizes: Sizes, labels: Sequence[str], *, marks_spans: bool) -> None:
        super().__init__()
        self.settings, self.marks_spans = settings, marks_spans
        self.network = _build(settings, sizes, labels, marks_spans=marks_spans)

    def loss(self, texts: Sequence[Batch], targets: Tensor) -> Tensor:
        """Return the loss of a batch: the mean over its texts, plus the penalty on the scalar mixes.

        Targets are class numbers, int64, shape (B,); standardised numbers, float32, shape (B,); or tag numbers, int64,
        shape (B, T). Pairs have two batches of texts.
        """
        if self.settings.kind == "tag":
            loss = self.costs(texts, targets).mean()
        elif self.settings.regression:
            loss = functional.mse_loss(self.network(texts)[:, 0], targets)
        else:
            loss = functional.cross_entropy(self.network(texts), targets)
        if self.settings.is_crf:
            loss = loss + _GRAM_PENALTY * self.network.scores.square().sum()
        for mix in self.mixes().values():
            loss = loss + self.settings.mix_penalty * mix.l2_penalty()
        return loss

    def costs(self, texts: Sequence[Batch], targets: Tensor) -> Tensor:
        """Return the cost in nats of each text's tags, float32, shape (B,)."""
        found: Tensor = self.network.crf.negative_log_likelihood(self.network(texts), targets, texts[0].mask)
        return found

    @torch.no_grad()
    def predict(self, texts: Sequence[Batch]) -> list[Any]:
        """Return, for each text, the class probabilities, a standardised number, or the tag numbers."""
        outputs = self.network(texts)
        if self.settings.kind == "tag":
            return list(self.network.crf.best_tags(outputs, texts[0].mask))
        if self.settings.regression:
            return list(outputs[:, 0].tolist())
        return list(outputs.double().softmax(dim=1).tolist())

    @torch.no_grad()
    def predict_tags(self, texts: Sequence[Batch]) -> list[TagProbabilities]:
        """Return, for each text, the tag numbers with the probabilities of the tags and of their spans."""
        network, [batch] = self.network, texts
        emissions = network(texts)
        probabilities = network.crf.tag_probabilities(emissions, batch.mask)
        found = []
        for row, tags in enumerate(network.crf.best_tags(emissions, batch.mask)):
            of_tags = probabilities[row, torch.arange(len(tags)), torch.tensor(tags, dtype=torch.int64)].tolist()
            of_spans = network.crf.span_probabilities(emissions[row, : len(tags)], tags) if self.marks_spans else []
            found.append(TagProbabilities(tags, of_tags, of_spans))
        return found

    def mixes(self) -> dict[str, ScalarMix]:
        """Return the scalar mixes by position: input, output."""
        layers = {"input": "inputs", "output": "output_elmo"}
        found = {place: getattr(getattr(self.network, name, None), "mix", None) for place, name in layers.items()}
        return {place: mix for place, mix in found.items() if isinstance(mix, ScalarMix)}


def mix_taggers(network: TaskHead, linear: TaskHead, weight: float) -> TaskHead:
    """Return one tagger that sums the scores of both, the linear one's with `weight`, the network's with 1 - `weight`.

    Its CRF multiplies both probabilities of a sequence of tags, each to the power of its weight.
    """
    found = deepcopy(network)
    found.settings = replace(network.settings, head="mixture")
    found.network.grams = GramScores(linear.network.scores.shape[1])
    with torch.no_grad():
        found.network.grams.scores += weight * linear.network.scores
        for parameter in found.network.emissions.parameters():
            parameter *= 1 - weight
        for parameter, other in zip(found.network.crf.parameters(), linear.network.crf.parameters(), strict=True):
            parameter.lerp_(other, weight)
    return found


def _build(settings: HeadSettings, sizes: Sizes, labels: Sequence[str], *, marks_spans: bool) -> Any:
    if settings.is_crf:
        return LinearTagger(labels, marks_spans=marks_spans)
    if settings.kind == "tag":
        return Tagger(settings, sizes, labels, marks_spans=marks_spans)
    if settings.kind == "pairs":
        return PairClassifier(settings, sizes)
    return LinearClassifier(settings, sizes) if settings.head == "linear" else BiLSTMClassifier(settings, sizes)
