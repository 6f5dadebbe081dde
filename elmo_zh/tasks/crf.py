"""A conditional random field, which scores whole sequences of tags and finds the best sequence for a text.

Shape letters: B texts, T units, K tags.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from elmo_zh.corpus.readers.examples import may_follow

_FORBIDDEN = -1e4
# Replaces a sum of probabilities that underflows to 0 in float64, so that its logarithm is finite.
_SMALLEST = 1e-300


class CRF(nn.Module):
    """A linear-chain conditional random field (Lafferty et al. 2001); pytorch-crf would do, but is unmaintained."""

    def __init__(self, tags: Sequence[str], *, marks_spans: bool) -> None:
        """Set all scores to 0; with `marks_spans`, the K tags are BIOES tags, so some sequences are forbidden."""
        super().__init__()
        self.tags = tuple(tags)
        count = len(tags)
        self.transitions = nn.Parameter(torch.zeros(count, count))
        self.starts = nn.Parameter(torch.zeros(count))
        self.ends = nn.Parameter(torch.zeros(count))
        names = [*tags, ""]
        forbidden = [[marks_spans and not may_follow(tag, following) for following in names] for tag in names]
        # On the CPU even while a network is built without memory for its weights.
        self.rules = _FORBIDDEN * torch.tensor(forbidden, device="cpu").float()

    def _scores(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return the scores of transitions (K, K), starts (K,) and ends (K,)."""
        rules = self.rules
        return self.transitions + rules[:-1, :-1], self.starts + rules[-1, :-1], self.ends + rules[:-1, -1]

    def negative_log_likelihood(self, emissions: Tensor, tags: Tensor, mask: Tensor) -> Tensor:
        """Return the cost in nats of each text's tags, (B,), given emissions (B, T, K), int64 tags and mask (B, T)."""
        cost = self._log_partition(emissions, mask) - self._score(emissions, tags, mask)
        return cost * mask[:, 0]

    def _score(self, emissions: Tensor, tags: Tensor, mask: Tensor) -> Tensor:
        transitions, starts, ends = self._scores()
        tags = tags.masked_fill(~mask, 0)
        score = starts[tags[:, 0]]
        score = score + (emissions.gather(2, tags[:, :, None])[:, :, 0] * mask).sum(dim=1)
        score = score + (transitions[tags[:, :-1], tags[:, 1:]] * mask[:, 1:]).sum(dim=1)
        last = (mask.sum(dim=1) - 1).clamp(min=0)
        return score + ends[tags.gather(1, last[:, None])[:, 0]]

    def _log_partition(self, emissions: Tensor, mask: Tensor) -> Tensor:
        """Return the logarithm of the sum of exponentiated scores over all tag sequences, shape (B,).

        Each step is a matrix product in float64, which is much faster than torch.logsumexp over (B, K, K).
        """
        transitions, starts, ends = (scores.double() for scores in self._scores())
        factors = transitions.exp()
        # Indexing would give each unit a gradient as long as the text.
        first, *others = emissions.double().unbind(1)
        sums = starts + first
        for place, scores in enumerate(others, start=1):
            largest = sums.detach().amax(dim=1, keepdim=True)
            products = ((sums - largest).exp() @ factors).clamp(min=_SMALLEST)
            sums = torch.where(mask[:, place, None], products.log() + largest + scores, sums)
        return torch.logsumexp(sums + ends, dim=1).to(self.transitions.dtype)

    @torch.no_grad()
    def best_tags(self, emissions: Tensor, mask: Tensor) -> list[list[int]]:
        """Return each text's most probable tags (Viterbi); ties go to the lower tag number, from the last unit back."""
        transitions, starts, ends = self._scores()
        score, origins = starts + emissions[:, 0], []
        for place in range(1, emissions.shape[1]):
            best, origin = (score[:, :, None] + transitions).max(dim=1)
            score = torch.where(mask[:, place, None], best + emissions[:, place], score)
            origins.append(origin)
        last_tags = (score + ends).argmax(dim=1).tolist()
        back = torch.stack(origins, dim=1).tolist() if origins else [[]] * len(emissions)
        paths = []
        for tag, steps, length in zip(last_tags, back, mask.sum(dim=1).tolist(), strict=True):
            path = [tag]
            for step in reversed(steps[: max(length - 1, 0)]):
                path.append(step[path[-1]])
            paths.append(path[::-1] if length else [])
        return paths
