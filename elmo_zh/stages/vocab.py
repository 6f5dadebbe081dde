"""The vocab stage: build the vocabulary and the spelling model from segmented text."""

from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import Any

from elmo_zh.bundle.layout import BundleLayout
from elmo_zh.config import Config, VocabConfig, result_settings
from elmo_zh.engine.select import EngineChoice
from elmo_zh.invocation import command
from elmo_zh.run.files import require_no_input
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
from elmo_zh.run.reporter import Reporter, counted
from elmo_zh.run.work_folder import WorkFolder
from elmo_zh.stages.init_bundle import adopt_model, explain_missing, with_resolved_init
from elmo_zh.stages.inputs import segmented_inputs, split_settings, started_engine
from elmo_zh.vocabulary.counting import count_words
from elmo_zh.vocabulary.selection import report_given_words, require_words, select_vocabulary
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
    """Run the vocab stage, after adopting the model settings of the bundle `vocab.init`, except for `named`."""
    config = with_resolved_init(run, config, ("vocab",))
    text_settings = load_record(run.stage_record("segment"), damaged_is_none=force).get("settings", {})
    config = adopt_model(run, config, config.vocab.init, text_settings, named, force=force, reporter=reporter)
    return build_vocabulary(run, config, engine=engine, force=force, reporter=reporter)


def build_vocabulary(
    run: RunDir, config: Config, *, engine: EngineChoice | None, force: bool, reporter: Reporter
) -> StageOutcome:
    """Run the vocab stage with settings that are final: nothing is adopted from a bundle."""
    # Without the default, records of earlier versions, which lack this setting, stay valid.
    is_usual = config.vocab.refuse == VocabConfig.refuse
    settings = result_settings(config.vocab, without=("init", "words", *(["refuse"] if is_usual else [])))
    settings |= split_settings(config)
    inputs = segmented_inputs(run)
    source = _source_of_words(config)
    if source is not None:
        name, init = "init" if config.vocab.init else "words", config.vocab.init
        explain = partial(explain_missing, Path(init), source) if init else None
        settings[name] = source_digest(run, "vocab", name, source, explain)
        for output in (run.vocab, run.vocab_counts, run.character_counts):
            require_no_input(output, [source], "Copy the file elsewhere, and use the copy.")

    def work() -> StageResult:
        given: list[str] = []
        if source is not None:
            require_inputs(run, [source])
            given = load_words(source)
        with started_engine(engine, config, inputs.values()) as started:
            word_counts = count_words(run.train_files(), started, WorkFolder(run.vocab_parts), reporter)
        selected = select_vocabulary(word_counts, config.vocab, given, split_unknown=config.text.split_unknown)
        require_words(selected, config.vocab, run.segmented, source)
        selected.vocabulary.save(run.vocab)
        save_counts(selected.vocabulary, selected.counts, run.vocab_counts)
        selected.spelling.save(run.character_counts)
        reporter.note(
            f"vocab: {len(selected.vocabulary):,} rows, covering {selected.coverage:.2%} of the training tokens; the"
            f" training text has {selected.num_distinct_words:,} distinct words."
        )
        counts: dict[str, Any] = {
            "rows": len(selected.vocabulary),
            "distinct_words": selected.num_distinct_words,
            "coverage": round(selected.coverage, 6),
        }
        if selected.num_refused:
            counts["refused_words"] = selected.num_refused
            reporter.note(
                f"vocab: vocab.refuse excluded {counted(selected.num_refused, 'frequent word')} (by default, it"
                " excludes long numbers and email addresses)."
            )
        if source is not None:
            counts |= {"given_words": len(given), "absent_words": selected.num_absent}
            report_given_words(selected, config.vocab, len(given), source, reporter)
        if config.vocab.init and not config.train.init:
            typed = command("train", "--run", run.path, "--init", config.vocab.init)
            reporter.note(f"To start training from the weights of the model that the words were taken from: {typed}")
        return StageResult(outputs=[run.vocab, run.vocab_counts, run.character_counts], counts=counts)

    stage = Stage(name="vocab", settings=settings, inputs=inputs, work=work, parts=run.vocab_parts)
    return run_stage(run, config, stage, force=force, reporter=reporter)


def _source_of_words(config: Config) -> Path | None:
    """Return the file of words that always get a row: a bundle's vocabulary or a word list."""
    if config.vocab.init:
        return BundleLayout(Path(config.vocab.init)).vocab
    return Path(config.vocab.words) if config.vocab.words else None
