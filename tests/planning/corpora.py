"""Corpora for the tests of plans: random sentences and a sample of them, and a folder whose plan and run are quick."""

import gzip
import random
from dataclasses import replace
from pathlib import Path

from contract.command_line import ROOT

from elmo_zh.config import Config, TextConfig, Word2vecConfig
from elmo_zh.corpus.sources import find_sources
from elmo_zh.planning import PlanLimits
from elmo_zh.planning.plan import Sample, make_plan
from elmo_zh.run.reporter import SilentReporter
from elmo_zh.text.sentences import split_sentences

CHARACTERS = TextConfig(segmenter="character")
FAST = ("--set", "text.segmenter=character", "--set", "text.num_workers=1", "--set", "word2vec.epochs=1")
PLAN_FAST = (*FAST, "--no-training")
WIDTH = ("--set", "model.projection_dim=7", "--set", "model.cell_dim=13")


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
    *paths: Path, config: TextConfig = CHARACTERS, megabytes: float = 0.25, seconds: float = 60, seed: int = 1
) -> Sample:
    sources = find_sources([str(path) for path in paths]).sources
    return Sample(sources, config, PlanLimits(sample_megabytes=megabytes, seconds=seconds, seed=seed))


def figures_of(path: Path) -> dict[str, float]:
    config = replace(Config(), text=CHARACTERS, word2vec=Word2vecConfig(enabled=False))
    limits = PlanLimits(sample_megabytes=0.25, seconds=600, no_training=True)
    found: dict[str, float] = make_plan(find_sources([str(path)]), config, None, limits, SilentReporter())["figures"]
    return found


def write_corpus() -> Path:
    folder = Path("corpus")
    folder.mkdir()
    for name, sign in (("a", "山"), ("b", "水")):
        lines = [f"第{number}天我看见{sign}边有{number % 7}只鸟。" for number in range(200)]
        (folder / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "c.jsonl.gz").write_bytes(gzip.compress('{"text": "苹果很甜。"}\n'.encode() * 40))
    return folder
