"""Run the stages before training on a sample, in folders of their own."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from elmo_zh.config import Config, VocabConfig
from elmo_zh.corpus.sources import Sources, find_sources
from elmo_zh.errors import CorpusError, RunError
from elmo_zh.planning.sample import Block, Sample
from elmo_zh.run.files import folder_bytes
from elmo_zh.run.layout import RunDir
from elmo_zh.run.record import finished_stages
from elmo_zh.run.reporter import SilentReporter
from elmo_zh.stages.encode import encode
from elmo_zh.stages.segment import segment_sources
from elmo_zh.stages.vocab import vocab
from elmo_zh.stages.word2vec import word2vec

# Every so many sentences go to the other half, since words occur in bunches.
_BUNCH = 200


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What the stages report: counts, seconds and bytes of each, and the words of both halves of the text."""

    counts: Mapping[str, float]
    seconds: Mapping[str, float]
    num_bytes: Mapping[str, int]
    halves: tuple[Counter[str], Counter[str]]


def try_sample(sources: Sources, sample: Sample, config: Config, seconds: float) -> tuple[Trial, Mapping[str, float]]:
    """Run the stages on a sample, or on the corpus if the sample is all of it, and return how long each takes to start.

    Blocks for which the time limit of the segment stage would not suffice are taken out of the sample.
    """
    name = ", ".join(source.name for source in sources.sources[:3])
    # Almost no text takes the time of starting, with the dictionary, and then without.
    every_word = replace(config, vocab=VocabConfig(size=0, min_count=1))
    start, again = (_try_blocks(sample.blocks[:2], every_word, name).seconds for _ in range(2))
    if sample.is_all:
        trial = _try_stages(sources, config, name)
    else:
        most = int(seconds * len(sample.blocks[:2]) / max(1e-3, again["segment"]))
        sample.blocks = sample.blocks[:: -(-len(sample.blocks) // max(1, most))]
        trial = _try_blocks(sample.blocks, config, name)
    growing = {stage: max(0.0, trial.seconds[stage] - again[stage]) for stage in again}
    return replace(trial, seconds=growing), start


def _try_blocks(blocks: list[Block], config: Config, name: str) -> Trial:
    """Run the stages on blocks of lines, which have no copies."""
    text = replace(config.text, drop_duplicates=False, boilerplate_copies=0, field="", document="line")
    config = replace(config, text=replace(text, format="text", encoding="utf-8"))
    with TemporaryDirectory(prefix="elmo-zh-plan-") as folder:
        path = Path(folder, "sample.txt")
        lines = "".join(f"{line}\n" for block in blocks for line in block.lines)
        path.write_text(lines, encoding="utf-8", errors="replace", newline="\n")
        return _try_stages(find_sources([str(path)]), config, name)


def _try_stages(sources: Sources, config: Config, name: str) -> Trial:
    """Run the stages in one process, with one epoch of word2vec."""
    epoch, silent = replace(config.word2vec, epochs=1), SilentReporter()
    config = replace(config, text=replace(config.text, num_workers=1), word2vec=epoch)
    with TemporaryDirectory(prefix="elmo-zh-plan-") as folder:
        run = RunDir(Path(folder, "run"))
        try:
            counts = dict(segment_sources(run, config, sources, force=True, reporter=silent).counts)
            counts |= {name: counts[f"train_{name}"] + counts[f"heldout_{name}"] for name in ("sentences", "tokens")}
            counts |= vocab(run, config, force=True, reporter=silent).counts
        except RunError as error:
            raise CorpusError(str(error).replace(str(run.segmented), name)) from None
        if epoch.enabled and not epoch.vectors and not config.train.init:
            word2vec(run, config, force=True, reporter=silent)
        encode(run, config, force=True, reporter=silent)
        seconds = {stage: record["seconds"] for stage, record in finished_stages(run).items()}
        paths = [path for path in (run.segmented, run.ids, run.word2vec) if path.exists()]
        num_bytes = {path.stem: folder_bytes(path) for path in paths}
        return Trial(counts=counts, seconds=seconds, num_bytes=num_bytes, halves=_count_words(run))


def _count_words(run: RunDir) -> tuple[Counter[str], Counter[str]]:
    halves = (Counter[str](), Counter[str]())
    for path in run.train_files():
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n")):
            halves[number // _BUNCH % 2].update(line.split())
    return halves
