"""Estimate what a corpus will need, by running the stages on a sample of it and scaling what they report."""

from dataclasses import dataclass

from elmo_zh.config.fields import option


@dataclass(frozen=True, kw_only=True)
class PlanLimits:
    """How much of the corpus to read and try."""

    seconds: float = option(
        20, "Time limit for reading the corpus, and again for segmenting the sample, in seconds.", least=1
    )
    sample_megabytes: float = option(2, "Megabytes of text to sample at most.", least=0.1)
    seed: int = option(1, "Random seed of the sample.")
    no_training: bool = option(False, "Do not measure training speed; torch is then not needed.")
