"""The networks by name, and what all of them do: their loss, and what they predict."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from elmo_zh.model.scalar_mix import ScalarMix
from elmo_zh.tasks.networks.classify import BiLSTMClassifier, LinearClassifier
from elmo_zh.tasks.networks.inputs import Batch
from elmo_zh.tasks.networks.pairs import PairClassifier
from elmo_zh.tasks.networks.settings import HeadSettings, Sizes
from elmo_zh.tasks.networks.tag import Tagger


@dataclass(frozen=True)
class TagProbabilities:
    """The tags of a text of n units, and how probable they are.

    Attributes:
        tags: Their numbers, n.
        of_tags: The probability of each of them, n.
        of_spans: The probability of each span that they mark, in order.
    """

    tags: list[int]
    of_tags: list[float]
    of_spans: list[float]


class TaskHead(nn.Module):
    """A network with its loss and its predictions."""

    def __init__(self, settings: HeadSettings, sizes: Sizes, labels: Sequence[str], *, marks_spans: bool) -> None:
        super().__init__()
        self.settings, self.marks_spans = settings, marks_spans
        self.network = _build(settings, sizes, labels, marks_spans=marks_spans)

    def loss(self, texts: Sequence[Batch], targets: Tensor) -> Tensor:
        """Return the loss of a batch, a number: the mean over its texts, and the penalty of the scalar mixes.

        Args:
            texts: The texts; two batches for pairs.
            targets: Numbers of the classes, int64, shape (B,); standardised numbers, float32, shape (B,); or numbers of
                the tags, int64, shape (B, T).
        """
        outputs = self.network(texts)
        if isinstance(self.network, Tagger):
            loss = self.network.crf.negative_log_likelihood(outputs, targets, texts[0].mask).mean()
        elif self.settings.regression:
            loss = functional.mse_loss(outputs[:, 0], targets)
        else:
            loss = functional.cross_entropy(outputs, targets)
        for mix in self.mixes().values():
            loss = loss + self.settings.mix_penalty * mix.l2_penalty()
        return loss

    @torch.no_grad()
    def predict(self, texts: Sequence[Batch]) -> list[Any]:
        """Return for each text the probabilities of the classes, a standardised number, or the numbers of the tags."""
        outputs = self.network(texts)
        if isinstance(self.network, Tagger):
            return list(self.network.crf.best_tags(outputs, texts[0].mask))
        if self.settings.regression:
            return list(outputs[:, 0].tolist())
        return list(outputs.double().softmax(dim=1).tolist())

    @torch.no_grad()
    def predict_tags(self, texts: Sequence[Batch]) -> list[TagProbabilities]:
        """Return for each text the numbers of the tags, with the probabilities of these tags and of their spans."""
        network, [batch] = self.network, texts
        assert isinstance(network, Tagger)
        emissions = network(texts)
        probabilities = network.crf.tag_probabilities(emissions, batch.mask)
        found = []
        for row, tags in enumerate(network.crf.best_tags(emissions, batch.mask)):
            of_tags = probabilities[row, torch.arange(len(tags)), torch.tensor(tags, dtype=torch.int64)].tolist()
            of_spans = network.crf.span_probabilities(emissions[row, : len(tags)], tags) if self.marks_spans else []
            found.append(TagProbabilities(tags, of_tags, of_spans))
        return found

    def mixes(self) -> dict[str, ScalarMix]:
        """Return the scalar mixes by their place: input, output."""
        found = {"input": self.network.inputs.mix}
        if hasattr(self.network, "output_elmo"):
            found["output"] = self.network.output_elmo.mix
        return {place: mix for place, mix in found.items() if isinstance(mix, ScalarMix)}


def _build(settings: HeadSettings, sizes: Sizes, labels: Sequence[str], *, marks_spans: bool) -> Any:
    if settings.kind == "tag":
        return Tagger(settings, sizes, labels, marks_spans=marks_spans)
    if settings.kind == "pairs":
        return PairClassifier(settings, sizes)
    return LinearClassifier(settings, sizes) if settings.head == "linear" else BiLSTMClassifier(settings, sizes)
