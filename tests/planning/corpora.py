"""Corpora for the tests of plans: text of words by chance, and a sample of it."""

import random
from pathlib import Path

from contract.command_line import ROOT

from elmo_zh.config import TextConfig
from elmo_zh.corpus.sources import find_sources
from elmo_zh.planning.pieces import Pieces, take_pieces
from elmo_zh.planning.portions import find_portions
from elmo_zh.planning.sampling import Sample, segment_pieces
from elmo_zh.run.reporter import SilentReporter
from elmo_zh.text.sentences import split_sentences

CHARACTERS = TextConfig(segmenter="character")


def lines(number: int, seed: int = 1) -> list[str]:
    """Sentences of the project's own sample, in an order of chance, with some of chance among them."""
    chance = random.Random(seed)
    sentences = [
        sentence
        for path in sorted((ROOT / "data" / "sample").iterdir())
        for line in path.read_text(encoding="utf-8").splitlines()
        for sentence in split_sentences(line)
    ]
    return [f"{chance.randrange(10**6)}，{chance.choice(sentences)}" for _ in range(number)]


def pieces_of(*paths: Path, num_bytes: int = 2**18, seconds: float = 60, seed: int = 1) -> Pieces:
    return take_pieces(find_portions(find_sources([str(path) for path in paths]).sources), num_bytes, seconds, seed)


def sample_of(*paths: Path, config: TextConfig = CHARACTERS, num_bytes: int = 2**18, seed: int = 1) -> Sample:
    portions = find_portions(find_sources([str(path) for path in paths]).sources)
    pieces = take_pieces(portions, num_bytes, 60, seed)
    return segment_pieces(pieces, len(portions), config, None, 60, seed, SilentReporter())
