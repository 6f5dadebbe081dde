"""The plan of a run: all that a sample of its corpus and some seconds of trial can tell."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from elmo_zh.allocator import peak_memory_bytes
from elmo_zh.config import Config, TextConfig, result_settings, shipped_configs
from elmo_zh.corpus.sources import Sources
from elmo_zh.planning.estimates import Estimate
from elmo_zh.planning.reading import SampleSize
from elmo_zh.planning.sampling import take_sample
from elmo_zh.planning.stage_costs import stage_figures, stage_memory
from elmo_zh.planning.words import WordForecast, forecast_words
from elmo_zh.run.reporter import Reporter
from elmo_zh.text.han import count_han
from elmo_zh.version import __version__

PLAN_FORMAT = 1
THIS_CONFIG = "this run"
SECTIONS = ("text", "vocab", "word2vec", "model", "train")
_DIGITS = {"coverage": 6, "seconds": 2}
# The machine may be more or less busy later.
_TRAINING_FACTOR = 1.4


def make_plan(
    sources: Sources, config: Config, user_dictionary: Path | None, size: SampleSize, reporter: Reporter
) -> dict[str, Any]:
    """Return the content of plan.json.

    Raises:
        CorpusError: If the corpus, or what was looked at of it, holds no text.
    """
    sample = take_sample(sources.sources, config.text, user_dictionary, size, reporter)
    process_bytes = peak_memory_bytes()
    totals = sample.totals()
    tokens = totals["tokens"].value
    heldout_tokens = _heldout_tokens(totals["sentences"].value, tokens, config.text)
    train_fraction = 1 - heldout_tokens / max(1.0, tokens)
    blocks = [block.words() for block in sample.blocks]
    words = forecast_words(blocks, tokens, train_fraction, config.vocab, is_all=sample.is_all)
    if not any(map(count_han, blocks)):
        reporter.warn("There is no Chinese character in what was read of this corpus. Check that it is the right one.")
    reporter.note("Trying the stages on part of the sample ...")
    figures = {
        **totals,
        "distinct_words": words.distinct,
        "rows": words.rows,
        "coverage": words.coverage,
        **stage_figures(sample, totals["tokens"], words.rows, config),
    }
    memory = stage_memory(process_bytes, sample.corpus_bytes, words.distinct.value, words.rows.value, config)
    training: dict[str, Any] = {}
    if size.tries_training:
        reporter.note("Trying some steps of training ...")
        training = _training(config, totals, words, train_fraction)
        figures |= _training_figures(training[THIS_CONFIG], config)
        memory["train"] = training[THIS_CONFIG]["memory_bytes"]
    return {
        "format": PLAN_FORMAT,
        "elmo_zh": __version__,
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "settings": {name: result_settings(getattr(config, name)) for name in SECTIONS},
        "sample": sample.described(),
        "figures": {name: estimate.described(_DIGITS.get(name.split(".")[0], 0)) for name, estimate in figures.items()},
        "coverage_curve": words.curve.described(),
        "recommended_vocab_size": words.recommended[0],
        "recommended_because": words.recommended[1],
        "memory_bytes": memory,
        "training": training,
        "embedding_bytes": totals["tokens"].times(_vector_bytes(config)).described(),
        "passed_over": sample.reading.passed_over.described(),
    }


def _heldout_tokens(num_sentences: float, num_tokens: float, config: TextConfig) -> float:
    """Return about how many tokens will be held out."""
    if not config.heldout_share or not num_sentences:
        return 0.0
    wanted = max(config.heldout_share * num_sentences, min(config.heldout_min_sentences, num_sentences / 10))
    return min(config.heldout_max_tokens, min(wanted, num_sentences / 5) * num_tokens / num_sentences)


def _training(
    config: Config, totals: Mapping[str, Estimate], words: WordForecast, train_fraction: float
) -> dict[str, Any]:
    # Imported here, so that a plan without training needs no torch.
    from elmo_zh.training.pace import CorpusSize, forecast_training

    tokens, sentences = totals["tokens"].value, totals["sentences"].value
    size = CorpusSize(
        train_tokens=round(tokens * train_fraction),
        train_sentences=round(sentences * train_fraction),
        heldout_tokens=round(tokens * (1 - train_fraction)),
        frequent_words=round(words.frequent.value),
    )
    return forecast_training({THIS_CONFIG: config, **shipped_configs()}, size)


def _training_figures(training: Mapping[str, Any], config: Config) -> dict[str, Estimate]:
    num_kept, checkpoint = config.train.keep_checkpoints, training["checkpoint_bytes"]
    return {
        "seconds.train": Estimate.exact(training["seconds"]).widened(_TRAINING_FACTOR),
        # The best checkpoint is kept too, and is often one of the last.
        "bytes.checkpoints": Estimate(
            value=num_kept * checkpoint, low=0.95 * checkpoint, high=1.05 * (num_kept + 1) * checkpoint
        ),
        "bytes.model": Estimate.exact(training["bundle_bytes"]).widened(1.1),
    }


def _vector_bytes(config: Config) -> int:
    """Return the bytes of the vectors of one token, with the settings of section embed."""
    layers = config.model.num_layers + 1 if config.embed.layers == "all" else 1
    return layers * 2 * config.model.projection_dim * (2 if config.embed.dtype == "float16" else 4)
