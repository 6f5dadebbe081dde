"""Describe a run: the content of its text and vocabulary, and anything that looks odd."""

from dataclasses import dataclass

from elmo_zh.config.fields import option


@dataclass(frozen=True, kw_only=True)
class Shown:
    """How much of a run's text to show."""

    num_samples: int = option(5, least=0, names=("--samples",))
    """Number of random sentences to show."""
    num_tokens: int = option(20, least=1, names=("--tokens",))
    """Number of frequent and of long tokens to show."""
    seed: int = option(1)
    """Random seed of the choice of sentences."""
