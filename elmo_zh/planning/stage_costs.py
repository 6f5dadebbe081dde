"""Time, disk and memory of the stages before training: they are run on part of the sample, in a folder of their own."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from elmo_zh.config import Config, TextConfig
from elmo_zh.engine.choice import SMALL_BYTES
from elmo_zh.planning.estimates import Estimate
from elmo_zh.planning.sampling import Sample
from elmo_zh.planning.words import WordForecast
from elmo_zh.run.layout import RunDir
from elmo_zh.run.record import load_record
from elmo_zh.run.reporter import SilentReporter
from elmo_zh.stages.encode import encode
from elmo_zh.stages.segment import segment
from elmo_zh.stages.vocab import vocab
from elmo_zh.stages.word2vec import word2vec
from elmo_zh.vocabulary.counting import MOST_WORDS

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
# Text that is segmented and normalised already stays as it is.
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


@dataclass(frozen=True, kw_only=True)
class StageTrial:
    """What the stages took on part of the sample, in one process.

    Attributes:
        starting_seconds: Seconds of vocab and of encode whatever the number of tokens.
        vocab_seconds: Seconds for each token.
        encode_seconds: Seconds for each token.
        word2vec_token_seconds: Seconds for each token and epoch; 0 where word2vec is switched off.
        word2vec_row_seconds: Seconds for each word with a vector.
        segmented_bytes: Bytes on disk for each token.
        id_bytes: Bytes on disk for each token.
        word2vec_bytes: Bytes on disk for each word with a vector.
    """

    starting_seconds: float
    vocab_seconds: float
    encode_seconds: float
    word2vec_token_seconds: float = 0.0
    word2vec_row_seconds: float = 0.0
    segmented_bytes: float
    id_bytes: float
    word2vec_bytes: float = 0.0


def folder_bytes(path: Path) -> int:
    """Return the bytes of a file, or of all files in a folder; 0 if there is none."""
    if path.is_file():
        return path.stat().st_size
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def try_stages(sentences: Iterable[Sequence[str]], config: Config) -> StageTrial:
    """Run the stages on the first of the sentences, and return what they took."""
    some = _first(sentences, _TRIED_TOKENS)
    reading = replace(_AS_IT_IS, heldout_min_sentences=config.text.heldout_min_sentences)
    settings = replace(config, text=reading, vocab=replace(config.vocab, init="", words="", min_count=1))
    with TemporaryDirectory(prefix="elmo-zh-plan-") as folder:
        few_tokens, *few_seconds = _run_stages(RunDir(Path(folder, "few")), _first(some, _FEW_TOKENS), settings)
        run = RunDir(Path(folder, "run"))
        num_tokens, *all_seconds = _run_stages(run, some, settings)
        more_tokens = num_tokens - few_tokens
        # More tokens take longer, whatever the clock says of so few of them.
        vocab_seconds, encode_seconds = (
            max(seconds - short, seconds / 10) / more_tokens if more_tokens else seconds / num_tokens
            for seconds, short in zip(all_seconds, few_seconds, strict=True)
        )
        return replace(
            _try_word2vec(run, settings),
            starting_seconds=max(0.0, all_seconds[0] - vocab_seconds * num_tokens),
            vocab_seconds=vocab_seconds,
            encode_seconds=encode_seconds,
            segmented_bytes=folder_bytes(run.segmented) / num_tokens,
            id_bytes=folder_bytes(run.ids) / num_tokens,
        )


def _first(sentences: Iterable[Sequence[str]], num_tokens: int) -> list[Sequence[str]]:
    """Return the first sentences, until they have so many tokens."""
    first = []
    for sentence in sentences:
        first.append(sentence)
        num_tokens -= len(sentence)
        if num_tokens <= 0:
            break
    return first


def _run_stages(run: RunDir, sentences: Sequence[Sequence[str]], settings: Config) -> tuple[int, float, float]:
    """Run segment, vocab and encode; return the number of tokens and the seconds of vocab and encode."""
    text = run.path.with_suffix(".txt")
    text.write_text("".join(f"{' '.join(sentence)}\n" for sentence in sentences), encoding="utf-8", newline="\n")
    segment(run, settings, [str(text)], force=True, reporter=SilentReporter())
    vocab(run, settings, force=True, reporter=SilentReporter())
    encode(run, settings, force=True, reporter=SilentReporter())
    counts = load_record(run.stage_record("segment"))["counts"]
    num_tokens = max(1, counts["train_tokens"] + counts["heldout_tokens"])
    return num_tokens, _seconds(run, "vocab"), _seconds(run, "encode")


def _try_word2vec(run: RunDir, settings: Config) -> StageTrial:
    trial = StageTrial(starting_seconds=0, vocab_seconds=0, encode_seconds=0, segmented_bytes=0, id_bytes=0)
    if not settings.word2vec.enabled or settings.word2vec.vectors:
        return trial
    num_tokens = max(1, load_record(run.stage_record("segment"))["counts"]["train_tokens"])
    rows = load_record(run.stage_record("vocab"))["counts"]["rows"]
    seconds = {}
    for epochs in (1, 2):
        once = replace(settings, word2vec=replace(settings.word2vec, epochs=epochs))
        word2vec(run, once, force=True, reporter=SilentReporter())
        seconds[epochs] = _seconds(run, "word2vec")
    # Two epochs take longer than one, whatever the clock says of so little text.
    epoch_seconds = max(seconds[2] - seconds[1], seconds[1] / 10)
    return replace(
        trial,
        word2vec_token_seconds=epoch_seconds / num_tokens,
        word2vec_row_seconds=max(0.0, seconds[1] - epoch_seconds) / rows,
        word2vec_bytes=folder_bytes(run.word2vec) / rows,
    )


def _seconds(run: RunDir, stage: str) -> float:
    return float(load_record(run.stage_record(stage))["seconds"])


def _num_workers(config: Config, num_bytes: float) -> int:
    """Return how many processes the stages start for so many bytes, on this machine; 1 is the main process itself."""
    return (config.text.num_workers or os.cpu_count() or 1) if num_bytes >= SMALL_BYTES else 1


def stage_figures(
    sample: Sample, totals: Mapping[str, Estimate], words: WordForecast, trial: StageTrial, config: Config
) -> dict[str, Estimate]:
    """Return time and disk of each stage before training.

    Args:
        sample: The sample, read and segmented in one process, with the time that this took.
        totals: Totals of the corpus.
        words: Words of its training text.
        trial: What the stages took on part of the sample.
        config: The settings.
    """
    tokens, rows = totals["tokens"], words.rows
    reading = sample.reading.seconds * sample.corpus_bytes / max(1, sample.reading.counts["line_bytes"])
    segmenting = sample.segmenting_seconds * tokens.value / max(1, sample.num_tokens)

    def on_all_workers(seconds: float, num_bytes: float) -> float:
        num_workers = _num_workers(config, num_bytes)
        return seconds / num_workers + (_WORKER_SECONDS if num_workers > 1 else 0)

    segmented_bytes = tokens.times(trial.segmented_bytes)
    seconds = {
        # Every worker loads the dictionary.
        "segment": sample.starting_seconds + on_all_workers(reading + segmenting, sample.corpus_bytes),
        "vocab": trial.starting_seconds + on_all_workers(trial.vocab_seconds * tokens.value, segmented_bytes.value),
        "word2vec": trial.word2vec_token_seconds * tokens.value * config.word2vec.epochs
        + trial.word2vec_row_seconds * rows.value,
        "encode": trial.starting_seconds + on_all_workers(trial.encode_seconds * tokens.value, segmented_bytes.value),
    }
    # Ids of two bytes reach so far; the part of the sample that was tried has fewer rows.
    is_wide = rows.value > 2**16 and config.model.mode == "token"
    return {
        **{f"seconds.{name}": Estimate.within_factor(seconds[name], _TIME_FACTORS[name]) for name in seconds},
        "bytes.segmented": segmented_bytes.widened(_TEXT_FACTOR),
        "bytes.ids": tokens.times(trial.id_bytes + (2 if is_wide else 0)).widened(_IDS_FACTOR),
        # Rare words have smaller numbers, which take more digits, and the part tried has more of these.
        "bytes.word2vec": rows.times(trial.word2vec_bytes).widened(_DIGITS_FACTOR),
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
    counting = _PROCESS_BYTES + _WORD_BYTES * min(words, MOST_WORDS)
    encoding = _PROCESS_BYTES + _WORD_BYTES * (words if config.model.mode == "character" else rows)
    memory = {
        "segment": together(process_bytes, corpus_bytes),
        "vocab": together(counting, segmented_bytes) + _WORD_BYTES * rows,
        "word2vec": 2 * _PROCESS_BYTES + vectors if config.word2vec.enabled else 0,
        "encode": together(encoding, segmented_bytes),
    }
    return {stage: round(amount) for stage, amount in memory.items()}
