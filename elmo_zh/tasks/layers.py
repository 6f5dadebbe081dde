"""Layers of the networks: inputs [x; ELMo], LSTMs over the units of a text, pooling, and a CRF over tags.

Shape letters: B texts, T units, K tags.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from elmo_zh.config.task_settings import HeadSettings
from elmo_zh.corpus.readers.examples import may_follow, spans_of
from elmo_zh.model.bilm import drop, reversal
from elmo_zh.model.precision import FLOAT32, PRECISIONS, choose_precision
from elmo_zh.model.projected_lstm import ProjectedLSTM
from elmo_zh.model.scalar_mix import ScalarMix


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """The sizes of a network; `num_characters` includes padding and unknown, and regression has one output."""

    num_layers: int
    elmo_dim: int
    word2vec_dim: int
    num_characters: int
    num_outputs: int


# Character numbers.
PADDING, UNKNOWN_CHARACTER, FIRST_CHARACTER = range(3)
# Place of a unit in its token; the first is for a unit without a token, such as a space.
NO_TOKEN, ALONE, FIRST, INSIDE, LAST = PLACES = range(5)
_NUM_GRAMS = 2**16  # rows for hashed n-grams
_FORBIDDEN = -1e4
# Replaces a sum of probabilities that underflows to 0 in float64, so that its logarithm is finite.
_SMALLEST = 1e-300


@dataclass(frozen=True, eq=False)
class Batch:
    """A padded batch of texts; tensors of unused inputs are empty."""

    mask: Tensor  # True where there is a unit, shape (B, T); T is at least 1
    elmo: Tensor  # layers of each unit's token, float32, shape (L + 1, B, T, 2P)
    word2vec: Tensor  # word2vec vector of each unit's token, float32, shape (B, T, P)
    characters: Tensor  # numbers of the unit's characters, 0 where padded, int64, shape (B, T, C)
    places: Tensor  # place of the unit in its token, int64, shape (B, T)
    grams: Tensor  # hashes of the n-grams around the unit, int64, shape (B, T, G)


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
        num_characters = (batch.characters != PADDING).sum(dim=2, keepdim=True).clamp(min=1)
        mean = self.characters(batch.characters).sum(dim=2) / num_characters
        return torch.cat([mean, self.places(batch.places)], dim=2)


class InputLayer(nn.Module):
    """Concatenates the inputs of each unit: word2vec, characters and the mix of ELMo layers."""

    def __init__(self, settings: HeadSettings, sizes: Sizes) -> None:
        super().__init__()
        self.mix = ScalarMix(sizes.num_layers) if _has_elmo(settings, "input") else None
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
        parts = [batch.word2vec] if self.has_word2vec else []
        if self.embedding is not None:
            parts.append(self.embedding(batch))
        if self.mix is not None:
            parts.append(self.mix(batch.elmo))
        dropped: Tensor = self.dropout(torch.cat(parts, dim=2))
        return dropped


class OutputElmo(nn.Module):
    """Appends ELMo, with its own mix, to a network's output, [h; ELMo], or leaves the output unchanged."""

    def __init__(self, settings: HeadSettings, sizes: Sizes) -> None:
        super().__init__()
        self.mix = ScalarMix(sizes.num_layers) if _has_elmo(settings, "output") else None
        self.dimension = sizes.elmo_dim if self.mix else 0
        self.dropout = Dropout(settings.dropout)

    def forward(self, hidden: Tensor, batch: Batch) -> Tensor:
        """Return the extended output, float32, shape (B, T, length of the hidden vectors plus `dimension`)."""
        if self.mix is None:
            return hidden
        return torch.cat([hidden, self.dropout(self.mix(batch.elmo))], dim=2)


def _has_elmo(settings: HeadSettings, place: str) -> bool:
    return "elmo" in settings.inputs and settings.elmo_at in (place, "both")


class BiLSTM(nn.Module):
    """A bidirectional LSTM over texts of any length: a biLM layer without projection and clipping.

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


class MergedBiLSTM(nn.Module):
    """Two BiLSTMs with a residual connection: the second reads the input of the first plus its output.

    A linear map first brings the inputs to the length of the outputs.
    """

    def __init__(self, input_dim: int, hidden_dim: int, dropout: float) -> None:
        super().__init__()
        self.dimension = 2 * hidden_dim
        self.project = nn.Linear(input_dim, self.dimension)
        self.first, self.second = BiLSTM(self.dimension, hidden_dim), BiLSTM(self.dimension, hidden_dim)
        self.dropout = Dropout(dropout)

    def forward(self, inputs: Tensor, mask: Tensor) -> Tensor:
        """Return the outputs of the second BiLSTM, float32, shape (B, T, 2 * hidden_dim), zeros where padded."""
        projected = self.project(inputs)
        merged = projected + self.first(projected, mask)
        outputs: Tensor = self.second(self.dropout(merged), mask)
        return outputs


def choose_lstm_precision(network: nn.Module, batch_size: int, known: str = "") -> str:
    """Set the training precision of a network's LSTMs, by default the fastest; return its name, or "" without LSTMs."""
    name = known
    for module in network.modules():
        if isinstance(module, BiLSTM):
            width, num_columns = module.lstm.input_weight.shape[1:]
            width += module.lstm.output_dim
            device = module.lstm.bias.device
            name = name or choose_precision(device, batch_size, width, num_columns).precision.name
            module.training_precision = PRECISIONS[name]
    return name


class GramScores(nn.Module):
    """The n-grams around a unit -> the sum of their scores for each tag."""

    def __init__(self, num_tags: int) -> None:
        super().__init__()
        self.scores = nn.Parameter(torch.zeros(_NUM_GRAMS, num_tags))

    def forward(self, texts: Sequence[Batch]) -> Tensor:
        """Return float32, shape (B, T, num_tags)."""
        [batch] = texts
        rows = batch.grams.flatten(0, 1) % _NUM_GRAMS
        return functional.embedding_bag(rows, self.scores, mode="sum").view(*batch.mask.shape, -1)


def build_encoder(input_dim: int, settings: HeadSettings) -> BiLSTM | MergedBiLSTM:
    """Build the LSTMs that read the inputs: one BiLSTM, or a merged pair if the settings say so."""
    if settings.encoder == "merged":
        return MergedBiLSTM(input_dim, settings.hidden_dim, settings.dropout)
    return BiLSTM(input_dim, settings.hidden_dim)


def pool_mean(vectors: Tensor, mask: Tensor) -> Tensor:
    """Return the mean over each text's units, zeros for a text without units, shape (B, dimension)."""
    return (vectors * mask[:, :, None]).sum(dim=1) / mask.sum(dim=1, keepdim=True).clamp(min=1)


def pool_max(vectors: Tensor, mask: Tensor) -> Tensor:
    """Return the maximum over each text's units, zeros for a text without units, shape (B, dimension)."""
    lowest = vectors.masked_fill(~mask[:, :, None], -torch.inf).amax(dim=1)
    return lowest.masked_fill(~mask.any(dim=1, keepdim=True), 0.0)


class CRF(nn.Module):
    """A linear-chain conditional random field (Lafferty et al. 2001); pytorch-crf has been unmaintained since 2019."""

    def __init__(self, tags: Sequence[str], *, marks_spans: bool) -> None:
        """Start with equal scores; with `marks_spans`, the K tags are BIOES tags, so some transitions are forbidden."""
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
        """Return the scores of transitions (K, K), starts (K,) and ends (K,)."""
        rules = self.get_buffer("rules")
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
        """Return the log-sum of the scores of all tag sequences, shape (B,)."""
        transitions, starts, ends = (scores.double() for scores in self._scores())
        *_, last = _log_sums(starts, transitions, emissions.double(), mask)
        return torch.logsumexp(last + ends, dim=1).to(self.transitions.dtype)

    @torch.no_grad()
    def best_tags(self, emissions: Tensor, mask: Tensor) -> list[list[int]]:
        """Return each text's most probable tags (Viterbi); ties go to the lower tag number, last unit first."""
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
        """Return each tag's probability, (B, T, K): the derivative of the log partition with respect to emissions."""
        with torch.enable_grad():
            emissions = emissions.detach().requires_grad_()
            [found] = torch.autograd.grad(self._log_partition(emissions, mask).sum(), emissions)
        return found * mask[:, :, None]

    @torch.no_grad()
    def span_probabilities(self, emissions: Tensor, tags: Sequence[int]) -> list[float]:
        """Return the probability of each span marked by a text's n BIOES tags, from emissions of shape (n, K).

        Only one sequence of tags marks a span. Its probability is the sum over all beginnings up to its first tag,
        times the score of its tags, times the sum over all endings, divided by the sum over all sequences.
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
        # Score of the chosen tags up to each unit, without the first unit's emission.
        path = torch.cat([own.new_zeros(1), (transitions[chosen[:-1], chosen[1:]] + own[1:]).cumsum(0)])
        first, last = torch.tensor([(start, end - 1) for start, end, _ in spans]).T
        within = path[last] - path[first] - own[last]  # the endings include the last tag too
        logs = beginnings[first, chosen[first]] + within + endings[last, chosen[last]]
        found: list[float] = (logs - torch.logsumexp(beginnings[-1] + ends, dim=0)).exp().clamp(max=1).tolist()
        return found


def _log_sums(starts: Tensor, transitions: Tensor, emissions: Tensor, mask: Tensor) -> Iterator[Tensor]:
    """Yield, for each unit, the log-sum over all sequences up to it that end in each tag: T times shape (B, K).

    Each step is a product of probabilities in float64, much faster than torch.logsumexp over (B, K, K). Starts are
    (K,), transitions (K, K), emissions (B, T, K); padding repeats the sums of the last unit.
    """
    factors = transitions.exp()
    # Indexing would give each unit a gradient as long as the text.
    first, *others = emissions.unbind(1)
    sums = starts + first
    yield sums
    for place, scores in enumerate(others, start=1):
        largest = sums.detach().amax(dim=1, keepdim=True)
        products = ((sums - largest).exp() @ factors).clamp(min=_SMALLEST)
        sums = torch.where(mask[:, place, None], products.log() + largest + scores, sums)
        yield sums
