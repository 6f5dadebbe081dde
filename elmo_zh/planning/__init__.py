"""Estimate what a run on a corpus will cost, from a sample of its lines."""

from dataclasses import dataclass

from elmo_zh.config.declare import declare


@dataclass(frozen=True, kw_only=True)
class PlanLimits:
    """The limits of a plan: how much of the corpus it reads, and whether it includes training."""

    seconds: float = declare(
        20, "Time limit in seconds for each of two steps: reading the corpus, and segmenting the sample.", least=1
    )
    sample_megabytes: float = declare(2, "Maximum size of the sample, in megabytes of text.", least=0.1)
    seed: int = declare(1, "Random seed.")
    no_training: bool = declare(False, "Leave out the estimates for training, so that torch is not needed.")
