"""Settings of the vectors of a file."""

from dataclasses import asdict, dataclass
from typing import Any

from elmo_zh.embed.reduction import Reduction


@dataclass(frozen=True, kw_only=True)
class DumpSettings:
    """Settings that turn lines into vectors, whatever the form in which these are written.

    Attributes:
        segmented: Tokens are split at U+0020 and looked up as they are; else lines are normalised and segmented.
        layers: all, average, top, mix or a number.
        dtype: float32 or float16.
        pool: none, or how the vectors of a line become one: mean, max or first-last.
        mix_weights: The weight of each layer, for layers = mix.
        stateful: The LSTM state is carried from line to line.
        split_sentences: Lines are split into sentences as in training, and each sentence has its own vectors.
    """

    segmented: bool
    layers: str
    dtype: str
    pool: str = "none"
    mix_weights: tuple[float, ...] | None = None
    stateful: bool = False
    split_sentences: bool = False

    def described(self) -> dict[str, Any]:
        """Return the settings that the vectors depend on, without those that came later and have their default."""
        settings = asdict(self)
        if not self.split_sentences:
            del settings["split_sentences"]
        return settings

    @property
    def reduction(self) -> Reduction:
        """Reduction of the activations to these vectors."""
        return Reduction(layers=self.layers, pool=self.pool, mix_weights=self.mix_weights)
