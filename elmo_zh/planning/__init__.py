"""Estimate what a run on a corpus will cost, by running the stages on a sample and scaling their figures."""

from dataclasses import dataclass

from elmo_zh.config.fields import option


@dataclass(frozen=True, kw_only=True)
class PlanLimits:
    """Limits on how much of the corpus to read, and on which stages to try."""

    seconds: float = option(20, least=1)
    """Time limit in seconds for each of two steps: reading the corpus, and segmenting the sample."""
    sample_megabytes: float = option(2, least=0.1)
    """Maximum size of the sample, in megabytes of text."""
    seed: int = option(1)
    """Random seed for the sample."""
    no_training: bool = option(False)
    """Leave out the estimates for training, so that torch is not needed."""
