"""Estimate what a run on a corpus will cost, by running the stages on a sample and scaling their figures."""

from dataclasses import dataclass

from elmo_zh.config.declare import declare


@dataclass(frozen=True, kw_only=True)
class PlanLimits:
    """Limits on how much of the corpus to read, and on which stages to try."""

    seconds: float = declare(
        20, "Time limit in seconds for each of two steps: reading the corpus, and segmenting the sample.", least=1
    )
    sample_megabytes: float = declare(2, "Maximum size of the sample, in megabytes of text.", least=0.1)
    seed: int = declare(1, "Random seed.")
    no_training: bool = declare(False, "Leave out the estimates for training, so that torch is not needed.")
