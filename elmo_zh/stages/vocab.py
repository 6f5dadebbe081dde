"""Segmented text to the vocabulary."""

from collections.abc import Collection
from pathlib import Path

from elmo_zh.bundle.layout import BundleLayout
from elmo_zh.config import Config, result_settings
from elmo_zh.engine.choice import EngineChoice
from elmo_zh.run.layout import RunDir
from elmo_zh.run.record import (
    Stage,
    StageOutcome,
    StageResult,
    load_record,
    require_inputs,
    run_stage,
    source_digest,
)
from elmo_zh.run.reporter import Reporter
from elmo_zh.stages.init_bundle import BUNDLE_HINT, adopt_model, with_resolved_init
from elmo_zh.stages.inputs import choose_engine, segmented_inputs, total_bytes
from elmo_zh.vocabulary.selection import choose_vocabulary, report_given_words, require_words
from elmo_zh.vocabulary.counting import count_words
from elmo_zh.vocabulary.vocabulary import load_words, save_counts


def vocab(
    run: RunDir,
    config: Config,
    *,
    named: Collection[str] = (),
    engine: EngineChoice | None = None,
    force: bool,
    reporter: Reporter,
) -> StageOutcome:
    """Segmented text to vocab.data, vocab.counts and the spelling model.

    With a bundle's words come its settings of section model, save those `named` as section.key by the user.
    """
    config = with_resolved_init(config)
    text_settings = load_record(run.stage_record("segment"), damaged_is_none=force).get("settings", {})
    config = adopt_model(run, config, config.vocab.init, text_settings, named, force=force, reporter=reporter)
    return build_vocabulary(run, config, engine=engine, force=force, reporter=reporter)


def build_vocabulary(
    run: RunDir, config: Config, *, engine: EngineChoice | None, force: bool, reporter: Reporter
) -> StageOutcome:
    """Segmented text to the vocabulary, by settings that are final."""
    inputs = segmented_inputs(run)
    settings = result_settings(config.vocab, without=("init", "words"))
    source = _source_of_words(config)
    if source is not None:
        name = "init" if config.vocab.init else "words"
        hint = BUNDLE_HINT if config.vocab.init else "Check the path."
        settings[name] = source_digest(run, "vocab", name, source, hint)

    def work() -> StageResult:
        given: list[str] = []
        if source is not None:
            require_inputs(run, [source])
            given = load_words(source)
        with choose_engine(engine, config).started(total_bytes(inputs.values())) as started:
            counted = count_words(run.train_files(), started, run.vocab_parts, reporter)
        built = choose_vocabulary(counted, config.vocab, given)
        require_words(built, config.vocab, run.segmented, source)
        built.vocabulary.save(run.vocab)
        save_counts(built.vocabulary, built.counts, run.vocab_counts)
        built.spelling.save(run.character_counts)
        reporter.note(
            f"vocab: {len(built.vocabulary):,} rows of {built.num_distinct_words:,} different words cover"
            f" {built.coverage:.2%} of the training tokens."
        )
        counts = {
            "rows": len(built.vocabulary),
            "distinct_words": built.num_distinct_words,
            "coverage": round(built.coverage, 6),
        }
        if source is not None:
            counts |= {"given_words": len(given), "absent_words": built.num_absent}
            report_given_words(built, config.vocab, len(given), source, reporter)
        if config.vocab.init and not config.train.init:
            reporter.note(f"To start from its weights: elmo-zh train --run {run.path} --init {config.vocab.init}")
        return StageResult(outputs=[run.vocab, run.vocab_counts, run.character_counts], counts=counts)

    stage = Stage(name="vocab", settings=settings, inputs=inputs, work=work, parts=run.vocab_parts)
    return run_stage(run, config, stage, force=force, reporter=reporter)


def _source_of_words(config: Config) -> Path | None:
    """Return the file of words that have a row in any case."""
    if config.vocab.init:
        return BundleLayout(Path(config.vocab.init)).vocab
    return Path(config.vocab.words) if config.vocab.words else None
