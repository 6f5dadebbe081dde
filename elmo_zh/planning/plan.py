"""The plan of a run: everything that can be told of it from a sample of its corpus and some seconds of trial."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

from elmo_zh.allocator import peak_memory_bytes
from elmo_zh.config import Config, TextConfig, result_settings
from elmo_zh.corpus.sources import Sources
from elmo_zh.planning.cutting import PIECE_BYTES
from elmo_zh.planning.estimates import Density, Estimate, estimate_total
from elmo_zh.planning.pieces import take_pieces
from elmo_zh.planning.portions import find_portions
from elmo_zh.planning.sampling import Block, Sample, segment_pieces
from elmo_zh.planning.shipped import shipped_configs
from elmo_zh.planning.stage_figures import embedding_bytes, stage_bytes, stage_memory, stage_seconds
from elmo_zh.planning.stage_pace import measure_stages
from elmo_zh.planning.words import WordForecast, forecast_words
from elmo_zh.run.reporter import Reporter
from elmo_zh.version import __version__

PLAN_FORMAT = 1
THIS_CONFIG = "this run"
SECTIONS = ("text", "vocab", "word2vec", "model", "train")
# Of time on a machine that may be more or less busy when it comes to it.
_TRAINING_FACTOR = 1.4
# How far the rest of a file may be from its start.
_UNSURE_REST = 0.1
# Above this the sample says too little of copies.
_MOST_COPIED = 0.8
# How many more of them chance may have kept out of the sample.
_CHANCE_OF_COPIES = 1.25


@dataclass(frozen=True, kw_only=True)
class SampleSize:
    """How much is looked at.

    Attributes:
        num_bytes: Of text.
        seconds: For finding it, and once more for segmenting it.
        seed: Of what is looked at.
        tries_training: Whether training is tried.
    """

    num_bytes: int = 2**21
    seconds: float = 20.0
    seed: int = 1
    tries_training: bool = True


def make_plan(
    sources: Sources, config: Config, user_dictionary: Path | None, size: SampleSize, reporter: Reporter
) -> dict[str, Any]:
    """Return the plan as it stands in plan.json.

    Raises:
        CorpusError: If the corpus, or what was looked at, holds no text.
    """
    start = time.monotonic()
    portions = find_portions(sources.sources)
    pieces = take_pieces(portions, size.num_bytes, size.seconds, size.seed)
    finding_seconds = time.monotonic() - start
    sample = segment_pieces(pieces, len(portions), config.text, user_dictionary, size.seconds, size.seed, reporter)
    process_bytes = peak_memory_bytes()
    totals = _totals(sample)
    # The pieces hold copies too, so they are compared with all that was read.
    num_tokens = totals.pop("tokens_with_copies", totals["tokens"]).value
    heldout_tokens = _heldout_tokens(totals["sentences"].value, totals["tokens"].value, config.text)
    train_share = 1 - heldout_tokens / max(1.0, totals["tokens"].value)
    words = forecast_words(
        [block.words() for block in sample.blocks],
        num_tokens,
        train_share,
        config.vocab,
        is_all=sample.is_all,
    )
    reporter.note("Trying the stages on part of the sample ...")
    pace = measure_stages(chain.from_iterable(block.sentences for block in sample.blocks), config)
    figures = {
        **totals,
        "distinct_words": words.distinct,
        "rows": words.rows,
        "coverage": words.coverage,
        **stage_seconds(sample, finding_seconds, totals, words, pace, config),
        **stage_bytes(totals, words, pace, config),
    }
    training: dict[str, Any] = {}
    if size.tries_training:
        training = _training(config, totals, words, train_share, reporter)
        figures |= _training_figures(training[THIS_CONFIG], config)
    memory = stage_memory(process_bytes, sample.corpus_bytes, figures, config)
    if training:
        memory["train"] = training[THIS_CONFIG]["memory_bytes"]
    return {
        "format": PLAN_FORMAT,
        "elmo_zh": __version__,
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(time.monotonic() - start, 1),
        "settings": {name: result_settings(getattr(config, name)) for name in SECTIONS},
        "sample": _describe_sample(sample),
        "figures": {name: _described(name, estimate) for name, estimate in figures.items()},
        "coverage_curve": _curve(words),
        "recommended_vocab_size": words.recommended_size,
        "memory_bytes": memory,
        "training": training,
        "embedding_bytes": embedding_bytes(totals["tokens"], config).described(),
        "passed_over": sample.passed_over.described(),
    }


def _described(name: str, estimate: Estimate) -> dict[str, float]:
    return estimate.described(6 if name == "coverage" else 2 if name.startswith("seconds.") else 0)


def _totals(sample: Sample) -> dict[str, Estimate]:
    """Return what the corpus holds of everything that can be counted piece by piece."""
    counted: Mapping[str, Callable[[Block], float]] = {
        "documents": lambda block: block.documents,
        "characters": lambda block: block.characters,
        "kept_characters": lambda block: block.kept_characters,
        "sentences": lambda block: len(block.sentences),
        "tokens": lambda block: block.num_tokens,
    }
    totals = {}
    for name, count in counted.items():
        if sample.is_all:
            totals[name] = Estimate.exact(sum(map(count, sample.blocks)))
        else:
            totals[name] = estimate_total(
                [_density(block, count(block)) for block in sample.blocks],
                sample.corpus_bytes,
                sample.sampled_share,
                unsure_share=_UNSURE_REST * _start_only_share(sample),
            )
    if not sample.is_all:
        totals["tokens_with_copies"] = totals["tokens"]
        totals |= {name: _without_copies(totals[name], sample) for name in ("kept_characters", "sentences", "tokens")}
    if not sample.is_all and all(block.is_one_document for block in sample.blocks):
        totals["documents"] = Estimate.exact(sample.num_portions)
    return totals


def _without_copies(total: Estimate, sample: Sample) -> Estimate:
    """Return the total less the lines that stood before.

    Of lines with two copies, both are in the sample as often as its share squared says; of lines with very many, those
    in the sample have as large a part of their copies there as of anything. The truth lies between.
    """
    seen, share = sample.copied_share, sample.sampled_share
    most = min(_MOST_COPIED, _CHANCE_OF_COPIES * seen / max(share, 1e-9))
    likely = min(_MOST_COPIED, seen / max(share, 1e-9) ** 0.5)
    return Estimate(value=total.value * (1 - likely), low=total.low * (1 - most), high=total.high * (1 - seen))


def _start_only_share(sample: Sample) -> float:
    """Return the share of the places whose text comes from the start of a file that cannot be cut elsewhere."""
    places = sum(block.piece.num_places for block in sample.blocks)
    return sum(block.piece.num_places for block in sample.blocks if block.piece.is_start_only) / max(1, places)


def _density(block: Block, count: float) -> Density:
    """Return how much there is for each byte that the corpus is taken to have.

    A whole file was chosen in proportion to its size, so it counts once for each place. Where a piece begins with the
    next record after the place, records are chosen whatever their size, so long pieces count for more.
    """
    piece = block.piece
    is_measured = piece.is_cut and not piece.is_start_only
    weight = piece.num_bytes / PIECE_BYTES if is_measured else piece.num_places
    return Density(value=count / max(1, piece.num_bytes) * piece.expansion, weight=weight)


def _heldout_tokens(num_sentences: float, num_tokens: float, config: TextConfig) -> float:
    """Return how many tokens will be held out, about."""
    if not config.heldout_share or not num_sentences:
        return 0.0
    wanted = max(config.heldout_share * num_sentences, min(config.heldout_min_sentences, num_sentences / 10))
    return min(config.heldout_max_tokens, min(wanted, num_sentences / 5) * num_tokens / num_sentences)


def _training(
    config: Config, totals: Mapping[str, Estimate], words: WordForecast, train_share: float, reporter: Reporter
) -> dict[str, Any]:
    # Only here, so that a plan without training needs no torch.
    from elmo_zh.planning.training_pace import CorpusSize, forecast_training

    reporter.note("Trying some steps of training ...")
    tokens, sentences = totals["tokens"].value, totals["sentences"].value
    size = CorpusSize(
        train_tokens=round(tokens * train_share),
        train_sentences=round(sentences * train_share),
        heldout_tokens=round(tokens * (1 - train_share)),
        frequent_words=round(words.frequent.value),
    )
    forecasts = forecast_training({THIS_CONFIG: config, **shipped_configs()}, size)
    return {name: asdict(forecast) for name, forecast in forecasts.items()}


def _training_figures(training: Mapping[str, Any], config: Config) -> dict[str, Estimate]:
    # The best checkpoint is often one of the last.
    num_kept = config.train.keep_checkpoints
    checkpoint = training["checkpoint_bytes"]
    return {
        "seconds.train": Estimate.within_factor(training["seconds"], _TRAINING_FACTOR),
        "bytes.checkpoints": Estimate(
            value=num_kept * checkpoint, low=0.95 * checkpoint, high=1.05 * (num_kept + 1) * checkpoint
        ),
        "bytes.model": Estimate.within_factor(training["bundle_bytes"], 1.1),
    }


def _describe_sample(sample: Sample) -> dict[str, Any]:
    return {
        "pieces": len(sample.blocks),
        "files": sample.num_portions,
        "corpus_bytes": round(sample.corpus_bytes),
        "bytes": sample.num_bytes,
        "share": round(sample.sampled_share, 6),
        "is_all": sample.is_all,
        "places_not_reached": sample.num_unreached,
        "tokens": sample.num_tokens,
    }


def _curve(words: WordForecast) -> list[dict[str, float]]:
    from elmo_zh.planning.coverage import ROUND_SIZES

    sizes: Sequence[int] = [size for size in ROUND_SIZES if size < words.curve.num_words]
    rows = []
    for size in sizes:
        value, low, high = words.curve.at(size)
        rows.append({"words": size, "share": round(value, 4), "low": round(low, 4), "high": round(high, 4)})
    return rows
