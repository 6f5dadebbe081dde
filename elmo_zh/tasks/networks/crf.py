"""A linear-chain conditional random field (Lafferty et al. 2001; Lample et al. 2016).

The published packages for torch are no longer kept (pytorch-crf since 2019), so it is our own.

Shape letters: B texts, T units, K tags.
"""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from elmo_zh.tasks.data.schemes import may_follow, spans_of

# Added to the score of a transition that cannot be.
_FORBIDDEN = -1e4
# Instead of a sum of probabilities that is 0 in float64, so that it has a logarithm.
_SMALLEST = 1e-300


class CRF(nn.Module):
    """Scores of tags beside one another, and the best sequence of tags."""

    def __init__(self, tags: Sequence[str], *, marks_spans: bool) -> None:
        """Start from equal scores.

        Args:
            tags: The K tags.
            marks_spans: They are BIOES tags, so some transitions are forbidden.
        """
        super().__init__()
        self.tags = tuple(tags)
        count = len(tags)
        self.transitions = nn.Parameter(torch.zeros(count, count))
        self.starts = nn.Parameter(torch.zeros(count))
        self.ends = nn.Parameter(torch.zeros(count))
        rules = torch.zeros(count + 1, count + 1)
        if marks_spans:
            names = [*tags, ""]
            forbidden = [[not may_follow(tag, following) for following in names] for tag in names]
            rules = torch.tensor(forbidden).float() * _FORBIDDEN
        self.register_buffer("rules", rules, persistent=False)

    def _scores(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return the scores of transitions (K, K), of starts (K,) and of ends (K,)."""
        rules = self.get_buffer("rules")
        return self.transitions + rules[:-1, :-1], self.starts + rules[-1, :-1], self.ends + rules[:-1, -1]

    def negative_log_likelihood(self, emissions: Tensor, tags: Tensor, mask: Tensor) -> Tensor:
        """Return the cost of tags, in nats, shape (B,); 0 for a text without units.

        Args:
            emissions: Score of each tag for each unit, shape (B, T, K).
            tags: The tags, int64, anything where padded, shape (B, T).
            mask: True where there is a unit, none after padding, shape (B, T).
        """
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
        """Return the log of the sum over all sequences, shape (B,)."""
        transitions, starts, ends = (scores.double() for scores in self._scores())
        *_, last = _log_sums(starts, transitions, emissions.double(), mask)
        return torch.logsumexp(last + ends, dim=1).to(self.transitions.dtype)

    @torch.no_grad()
    def best_tags(self, emissions: Tensor, mask: Tensor) -> list[list[int]]:
        """Return the most probable tags of each text (Viterbi); of equal ones those of lower number at the end."""
        transitions, starts, ends = self._scores()
        score, origins = starts + emissions[:, 0], []
        for place in range(1, emissions.shape[1]):
            best, origin = (score[:, :, None] + transitions).max(dim=1)
            score = torch.where(mask[:, place, None], best + emissions[:, place], score)
            origins.append(origin)
        last_tags = (score + ends).argmax(dim=1).tolist()
        back = torch.stack(origins, dim=1).tolist() if origins else [[]] * len(emissions)
        found = []
        for tag, steps, length in zip(last_tags, back, mask.sum(dim=1).tolist(), strict=True):
            path = [tag]
            for step in reversed(steps[: max(length - 1, 0)]):
                path.append(step[path[-1]])
            found.append(path[::-1] if length else [])
        return found

    def tag_probabilities(self, emissions: Tensor, mask: Tensor) -> Tensor:
        """Return the probability of each tag of each unit: that of all sequences that have it there.

        It is the derivative of the log-partition function by the emission of that tag.

        Args:
            emissions: Score of each tag for each unit, shape (B, T, K).
            mask: True where there is a unit, none after padding, shape (B, T).

        Returns:
            Shape (B, T, K), zeros where padded.
        """
        with torch.enable_grad():
            emissions = emissions.detach().requires_grad_()
            [found] = torch.autograd.grad(self._log_partition(emissions, mask).sum(), emissions)
        return found * mask[:, :, None]

    @torch.no_grad()
    def span_probabilities(self, emissions: Tensor, tags: Sequence[int]) -> list[float]:
        """Return the probability of each span that BIOES tags of a text mark, in the order of `spans_of`.

        Only one sequence of tags marks a span, so its probability is that of all sequences of the text that have these
        tags there: the sum over all beginnings up to its first tag, times the score of its tags, times the sum over all
        endings from its last one, divided by the sum over all sequences.

        Args:
            emissions: Score of each tag for each of the n units of the text, shape (n, K).
            tags: The tags, n numbers.
        """
        spans = spans_of([self.tags[tag] for tag in tags])[0]
        if not spans:
            return []
        transitions, starts, ends = (scores.double() for scores in self._scores())
        emissions, chosen = emissions.double(), torch.tensor(tags)
        mask = torch.ones(1, len(tags), dtype=torch.bool)
        beginnings = torch.cat(list(_log_sums(starts, transitions, emissions[None], mask)))
        endings = torch.cat(list(_log_sums(ends, transitions.T, emissions.flip(0)[None], mask))).flip(0)
        units = torch.arange(len(tags))
        own = emissions[units, chosen]
        # Score of the chosen tags up to each unit, without that of the first.
        path = torch.cat([own.new_zeros(1), (transitions[chosen[:-1], chosen[1:]] + own[1:]).cumsum(0)])
        first, last = torch.tensor([(start, end - 1) for start, end, _ in spans]).T
        within = path[last] - path[first] - own[last]  # the last tag is in the endings too
        logs = beginnings[first, chosen[first]] + within + endings[last, chosen[last]]
        found: list[float] = (logs - torch.logsumexp(beginnings[-1] + ends, dim=0)).exp().clamp(max=1).tolist()
        return found


def _log_sums(starts: Tensor, transitions: Tensor, emissions: Tensor, mask: Tensor) -> Iterator[Tensor]:
    """Yield for each unit the log of the sum over all sequences up to it that end with each tag, T times shape (B, K).

    Each step is a product of probabilities in float64, which is much faster than torch.logsumexp over (B, K, K).

    Args:
        starts: Score of each tag at the start, float64, shape (K,).
        transitions: Score of each tag after each, float64, shape (K, K).
        emissions: Score of each tag for each unit, float64, shape (B, T, K).
        mask: True where there is a unit, none after padding, shape (B, T). Padding repeats the sums of the last unit.
    """
    factors = transitions.exp()
    # Not by their index: the gradient of each would then be as long as the text.
    first, *others = emissions.unbind(1)
    sums = starts + first
    yield sums
    for place, scores in enumerate(others, start=1):
        largest = sums.detach().amax(dim=1, keepdim=True)
        products = ((sums - largest).exp() @ factors).clamp(min=_SMALLEST)
        sums = torch.where(mask[:, place, None], products.log() + largest + scores, sums)
        yield sums
