"""Corpora for the tests of plans: random sentences, and a sample of them."""

import random
from pathlib import Path

from contract.command_line import ROOT

from elmo_zh.config import TextConfig
from elmo_zh.corpus.sources import find_sources
from elmo_zh.planning.reading import SampleSize
from elmo_zh.planning.sampling import Sample, take_sample
from elmo_zh.run.reporter import SilentReporter
from elmo_zh.text.sentences import split_sentences

CHARACTERS = TextConfig(segmenter="character")


def lines(number: int, seed: int = 1) -> list[str]:
    """Sentences of the project's own sample in random order, each with a random number."""
    chance = random.Random(seed)
    sentences = [
        sentence
        for path in sorted((ROOT / "data" / "sample").iterdir())
        for line in path.read_text(encoding="utf-8").splitlines()
        for sentence in split_sentences(line)
    ]
    return [f"{chance.randrange(10**6)}，{chance.choice(sentences)}" for _ in range(number)]


def sample_of(
    *paths: Path, config: TextConfig = CHARACTERS, num_bytes: int = 2**18, seconds: float = 60, seed: int = 1
) -> Sample:
    sources = find_sources([str(path) for path in paths]).sources
    size = SampleSize(num_bytes=num_bytes, seconds=seconds, seed=seed)
    return take_sample(sources, config, None, size, SilentReporter())
