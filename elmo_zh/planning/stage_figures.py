"""Time, disk and memory of the stages before training, worked out from a sample and a trial."""

import os
from collections.abc import Mapping

from elmo_zh.config import Config
from elmo_zh.engine.select import SMALL_BYTES
from elmo_zh.planning.estimates import Estimate
from elmo_zh.planning.sampling import Sample
from elmo_zh.planning.stage_pace import StagePace
from elmo_zh.planning.words import WordForecast
from elmo_zh.vocabulary.counting import MAX_WORDS

# Of times on a machine that may be more or less busy when it comes to it. What vocab and encode do for a token depends
# on how many new words there are, more of them in the sample than in the rest.
_TIME_FACTOR, _COUNTING_FACTOR = 1.6, 2.0
# The part of the sample that was tried has words and sentences of other lengths than the rest.
_TEXT_FACTOR, _IDS_FACTOR, _DIGITS_FACTOR = 1.03, 1.1, 1.1
# Python with what the early stages import, a word in a table of counts, a row with its word.
_PROCESS_BYTES, _WORD_BYTES, _ROW_BYTES = 60_000_000, 140, 600
# Until a worker process has started and imported what it needs.
_WORKER_SECONDS = 0.35


def _num_workers(config: Config, num_bytes: float) -> int:
    """Return how many processes the stages start for so many bytes, on this machine; 1 is the main process itself."""
    return (config.text.num_workers or os.cpu_count() or 1) if num_bytes >= SMALL_BYTES else 1


def stage_seconds(
    sample: Sample,
    finding_seconds: float,
    totals: Mapping[str, Estimate],
    words: WordForecast,
    pace: StagePace,
    config: Config,
) -> dict[str, Estimate]:
    """Return how long each stage before training will take.

    Args:
        sample: Read and segmented in one process, with the time that it took.
        finding_seconds: Spent on finding the sample.
        totals: Of the corpus.
        words: Of its training text.
        pace: Of the stages after segmenting.
        config: The settings.
    """
    tokens, rows = totals["tokens"].value, words.rows.value
    grown = sample.corpus_bytes / max(1, sample.num_bytes)
    reading, segmenting = sample.reading_seconds * grown, sample.segmenting_seconds * grown
    epochs = config.word2vec.epochs

    def shared(seconds: float, num_bytes: float) -> float:
        """Return how long it takes on all processes that work on so many bytes."""
        num_workers = _num_workers(config, num_bytes)
        return seconds / num_workers + (_WORKER_SECONDS if num_workers > 1 else 0)

    segmented_bytes = tokens * pace.segmented_bytes
    seconds = {
        # Every worker loads the dictionary. To find the sample, what is packed was unpacked.
        "segment": sample.starting_seconds + shared(finding_seconds + reading + segmenting, sample.corpus_bytes),
        "vocab": pace.starting_seconds + shared(pace.vocab_seconds * tokens, segmented_bytes),
        "word2vec": pace.word2vec_token_seconds * tokens * epochs + pace.word2vec_row_seconds * rows,
        "encode": pace.starting_seconds + shared(pace.encode_seconds * tokens, segmented_bytes),
    }
    factors = {"vocab": _COUNTING_FACTOR, "encode": _COUNTING_FACTOR}
    return {
        f"seconds.{name}": Estimate.within_factor(value, factors.get(name, _TIME_FACTOR))
        for name, value in seconds.items()
    }


def stage_bytes(
    totals: Mapping[str, Estimate], words: WordForecast, pace: StagePace, config: Config
) -> dict[str, Estimate]:
    """Return how much disk what the stages make will take."""
    tokens, rows = totals["tokens"], words.rows
    # Ids of two bytes reach so far; the part of the sample that was tried has fewer rows.
    is_wide = rows.value > 2**16 and config.model.mode == "token"
    return {
        "bytes.segmented": tokens.times(pace.segmented_bytes).widened(_TEXT_FACTOR),
        "bytes.ids": tokens.times(pace.id_bytes + (2 if is_wide else 0)).widened(_IDS_FACTOR),
        # Rare words have smaller numbers, which take more digits, and the part tried has more of these.
        "bytes.word2vec": rows.times(pace.word2vec_bytes).widened(_DIGITS_FACTOR),
    }


def stage_memory(
    process_bytes: int, corpus_bytes: float, figures: Mapping[str, Estimate], config: Config
) -> dict[str, int]:
    """Return about how much memory each stage takes at most, all its processes together.

    Args:
        process_bytes: Of one process that segments.
        corpus_bytes: Size on disk.
        figures: Of the plan so far.
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


def embedding_bytes(tokens: Estimate, config: Config) -> Estimate:
    """Return the bytes of the vectors of all tokens of the corpus, as section embed has them."""
    layers = config.model.num_layers + 1 if config.embed.layers == "all" else 1
    each = layers * 2 * config.model.projection_dim * (2 if config.embed.dtype == "float16" else 4)
    return tokens.times(each)
