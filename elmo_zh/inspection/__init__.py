"""Describe a run: the content of its text and vocabulary, and anything that looks odd."""

from dataclasses import dataclass

from elmo_zh.config.fields import option


@dataclass(frozen=True, kw_only=True)
class Shown:
    """How much of a run's text to show."""

    num_samples: int = option(5, least=0, names=("--samples",))
    """Number of random sentences to show."""
    num_tokens: int = option(20, least=1, names=("--tokens",))
    """Maximum number of tokens to show in each of two lists: the most frequent and the longest."""
    seed: int = option(1)
    """Random seed for choosing the sentences."""
