"""The networks by name, and what all of them do: their loss, and what they predict."""

from collections.abc import Sequence
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


class TaskHead(nn.Module):
    """A network with its loss and its predictions."""

    def __init__(self, settings: HeadSettings, sizes: Sizes, labels: Sequence[str], *, marks_spans: bool) -> None:
        super().__init__()
        self.settings = settings
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
