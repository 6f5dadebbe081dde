"""Time, disk and memory of the stages before training: they are run on part of the sample, in a folder of their own."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from elmo_zh.config import Config, TextConfig
from elmo_zh.engine.select import SMALL_BYTES
from elmo_zh.planning.estimates import Estimate
from elmo_zh.planning.sampling import Sample
from elmo_zh.run.layout import RunDir
from elmo_zh.run.record import load_record
from elmo_zh.run.reporter import SilentReporter
from elmo_zh.stages.encode import encode
from elmo_zh.stages.segment import segment
from elmo_zh.stages.vocab import vocab
from elmo_zh.stages.word2vec import word2vec
from elmo_zh.vocabulary.counting import MAX_WORDS

# Tokens that the stages are tried on, some seconds of work; and next to none, for what does not grow with the text.
_TRIED_TOKENS, _FEW_TOKENS = 400_000, 5_000
# The machine may be more or less busy later. Time for counting depends on how many new words there are, more of them
# in the sample than in the rest.
_TIME_FACTORS = {"segment": 1.6, "vocab": 2.0, "word2vec": 1.6, "encode": 2.0}
# The part of the sample that was tried has words and sentences of other lengths than the rest.
_TEXT_FACTOR, _IDS_FACTOR, _DIGITS_FACTOR = 1.03, 1.1, 1.1
# Memory of Python with what the early stages import, of a word in a table of counts, of a row with its word.
_PROCESS_BYTES, _WORD_BYTES, _ROW_BYTES = 60_000_000, 140, 600
# Time until a worker process has started and imported what it needs.
_WORKER_SECONDS = 0.35
# Settings that leave text as it is that was segmented and normalised before.
_AS_IT_IS = TextConfig(
    segmenter="whitespace",
    split_sentences=False,
    unicode_form="none",
    fold_fullwidth=False,
    remove_control=False,
    collapse_whitespace=False,
    remove_markup=False,
    drop_duplicates=False,
    num_workers=1,
)


@dataclass(frozen=True)
class _Trial:
    """What the stages made of some tokens, and the seconds and bytes that each took, in one process."""

    num_tokens: int
    train_tokens: int
    rows: int
    seconds: Mapping[str, float]
    num_bytes: Mapping[str, int]

    @classmethod
    def run(cls, run: RunDir, sentences: Sequence[Sequence[str]], config: Config, epochs: Sequence[int]) -> "_Trial":
        """Run the stages, word2vec once for each number of epochs."""
        text, silent = run.path.with_suffix(".txt"), SilentReporter()
        text.write_text("".join(f"{' '.join(sentence)}\n" for sentence in sentences), encoding="utf-8", newline="\n")
        counts = segment(run, config, [str(text)], force=True, reporter=silent).counts
        rows = vocab(run, config, force=True, reporter=silent).counts["rows"]
        encode(run, config, force=True, reporter=silent)
        seconds = {name: load_record(run.stage_record(name))["seconds"] for name in ("vocab", "encode")}
        for number in epochs:
            once = replace(config, word2vec=replace(config.word2vec, epochs=number))
            word2vec(run, once, force=True, reporter=silent)
            seconds[f"word2vec {number}"] = load_record(run.stage_record("word2vec"))["seconds"]
        num_bytes = {path.stem: folder_bytes(path) for path in (run.segmented, run.ids, run.word2vec)}
        train_tokens = max(1, counts["train_tokens"])
        return cls(train_tokens + counts["heldout_tokens"], train_tokens, rows, seconds, num_bytes)


def folder_bytes(path: Path) -> int:
    """Return the bytes of a file, or of all files in a folder; 0 if there is none."""
    if path.is_file():
        return path.stat().st_size
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def _try_stages(sample: Sample, config: Config) -> tuple[_Trial, _Trial]:
    """Run the stages on next to none and on the first of the sample's sentences."""
    sentences: list[list[str]] = []
    num_few, num_tokens = 0, 0
    for sentence in (sentence for block in sample.blocks for sentence in block.sentences):
        sentences.append(sentence)
        num_tokens += len(sentence)
        num_few = num_few or (len(sentences) if num_tokens >= _FEW_TOKENS else 0)
        if num_tokens >= _TRIED_TOKENS:
            break
    text = replace(_AS_IT_IS, heldout_min_sentences=config.text.heldout_min_sentences)
    config = replace(config, text=text, vocab=replace(config.vocab, init="", words="", min_count=1))
    epochs = (1, 2) if config.word2vec.enabled and not config.word2vec.vectors else ()
    with TemporaryDirectory(prefix="elmo-zh-plan-") as folder:
        few = _Trial.run(RunDir(Path(folder, "few")), sentences[: num_few or None], config, ())
        return few, _Trial.run(RunDir(Path(folder, "more")), sentences, config, epochs)


def _num_workers(config: Config, num_bytes: float) -> int:
    """Return how many processes the stages start for so many bytes, on this machine; 1 is the main process itself."""
    return (config.text.num_workers or os.cpu_count() or 1) if num_bytes >= SMALL_BYTES else 1


def stage_figures(sample: Sample, tokens: Estimate, rows: Estimate, config: Config) -> dict[str, Estimate]:
    """Return time and disk of each stage before training.

    Args:
        sample: The sample, with the time that reading and segmenting it in one process took.
        tokens: Tokens of the corpus.
        rows: Rows of its vocabulary.
        config: The settings.
    """
    few, trial = _try_stages(sample, config)
    more_tokens = trial.num_tokens - few.num_tokens
    token_bytes = {name: size / trial.num_tokens for name, size in trial.num_bytes.items()}
    segmented_bytes = tokens.times(token_bytes["segmented"])

    def on_all_workers(seconds: float, num_bytes: float) -> float:
        num_workers = _num_workers(config, num_bytes)
        return seconds / num_workers + (_WORKER_SECONDS if num_workers > 1 else 0)

    def per_token(stage: str) -> float:
        # More tokens take longer, whatever the clock says of so few of them.
        seconds = trial.seconds[stage]
        return (
            max(seconds - few.seconds[stage], seconds / 10) / more_tokens if more_tokens else seconds / trial.num_tokens
        )

    reading = sample.reading.seconds * sample.corpus_bytes / max(1, sample.reading.counts["line_bytes"])
    segmenting = sample.segmenting_seconds * tokens.value / max(1, sample.num_tokens)
    start = max(0.0, trial.seconds["vocab"] - per_token("vocab") * trial.num_tokens)
    seconds = {
        # Every worker loads the dictionary.
        "segment": sample.starting_seconds + on_all_workers(reading + segmenting, sample.corpus_bytes),
        "vocab": start + on_all_workers(per_token("vocab") * tokens.value, segmented_bytes.value),
        "word2vec": 0.0,
        "encode": start + on_all_workers(per_token("encode") * tokens.value, segmented_bytes.value),
    }
    if "word2vec 1" in trial.seconds:
        # Two epochs take longer than one, whatever the clock says of so little text.
        one, two = trial.seconds["word2vec 1"], trial.seconds["word2vec 2"]
        epoch = max(two - one, one / 10)
        seconds["word2vec"] = epoch / trial.train_tokens * tokens.value * config.word2vec.epochs
        seconds["word2vec"] += max(0.0, one - epoch) / trial.rows * rows.value
    # Ids of two bytes reach so far; the part of the sample that was tried has fewer rows.
    wider = 2 if rows.value > 2**16 and config.model.mode == "token" else 0
    return {
        **{f"seconds.{name}": Estimate.exact(seconds[name]).widened(_TIME_FACTORS[name]) for name in seconds},
        "bytes.segmented": segmented_bytes.widened(_TEXT_FACTOR),
        "bytes.ids": tokens.times(token_bytes["ids"] + wider).widened(_IDS_FACTOR),
        # Rare words have smaller numbers, which take more digits, and the part tried has more of these.
        "bytes.word2vec": rows.times(trial.num_bytes["word2vec"] / trial.rows).widened(_DIGITS_FACTOR),
    }


def stage_memory(
    process_bytes: int, corpus_bytes: float, figures: Mapping[str, Estimate], config: Config
) -> dict[str, int]:
    """Return about how much memory each stage takes at most, all its processes together.

    Args:
        process_bytes: Memory of one process that segments.
        corpus_bytes: Size of the corpus.
        figures: Figures of the plan so far.
        config: The settings.
    """
    words, rows = figures["distinct_words"].value, figures["rows"].value
    vectors = rows * (2 * 4 * config.model.projection_dim + _ROW_BYTES)

    def together(worker_bytes: float, num_bytes: float) -> float:
        num_workers = _num_workers(config, num_bytes)
        return _PROCESS_BYTES + num_workers * worker_bytes if num_workers > 1 else worker_bytes

    segmented_bytes = figures["bytes.segmented"].value
    counting = _PROCESS_BYTES + _WORD_BYTES * min(words, MAX_WORDS)
    encoding = _PROCESS_BYTES + _WORD_BYTES * (words if config.model.mode == "character" else rows)
    memory = {
        "segment": together(process_bytes, corpus_bytes),
        "vocab": together(counting, segmented_bytes) + _WORD_BYTES * rows,
        "word2vec": 2 * _PROCESS_BYTES + vectors if config.word2vec.enabled else 0,
        "encode": together(encoding, segmented_bytes),
    }
    return {stage: round(amount) for stage, amount in memory.items()}
