"""The vocab stage: build the vocabulary and the spelling model from segmented text."""

from pathlib import Path
from typing import Any

from elmo_zh.bundle.layout import BundleLayout
from elmo_zh.config import Config
from elmo_zh.invocation import command
from elmo_zh.run.files import require_no_input
from elmo_zh.run.job import run_job
from elmo_zh.run.record import StageContext, StageOutcome, StageResult, require_files, run_stage, source_digest
from elmo_zh.run.reporter import counted
from elmo_zh.run.stage_table import VOCAB
from elmo_zh.stages.inputs import bundle_digest, started_engine
from elmo_zh.vocabulary.selection import VocabularyJob, report_given_words
from elmo_zh.vocabulary.vocabulary import load_words


def vocab(context: StageContext) -> StageOutcome:
    """Run the vocab stage: write the vocabulary, its counts and the spelling model."""
    run, config, reporter = context.run, context.config, context.reporter
    source, facts = _source_of_words(config), {}
    if source is not None:
        for output in (run.vocab, run.vocab_counts, run.character_counts):
            require_no_input(output, [source], "Copy the file elsewhere, and use the copy.")
        if config.vocab.init:
            facts["init"] = bundle_digest(run, "vocab", "init", Path(config.vocab.init), source)
        else:
            facts["words"] = source_digest(run, "vocab", "words", source)

    def work() -> StageResult:
        given: list[str] = []
        if source is not None:
            require_files(run, [source])
            given = load_words(source)
        job = VocabularyJob(
            files=run.train_files(),
            config=config.vocab,
            output=run.vocab,
            counts=run.vocab_counts,
            character_counts=run.character_counts,
            given=given,
            source=source,
            split_unknown=config.text.split_unknown,
        )
        with started_engine(context, job.files) as started:
            selected = run_job(job, force=context.force, replace=True, reporter=reporter, engine=started)
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

    return run_stage(VOCAB, context, work, facts=facts)


def _source_of_words(config: Config) -> Path | None:
    """Return the file of words that always get a row: a bundle's vocabulary or a word list."""
    if config.vocab.init:
        return BundleLayout(Path(config.vocab.init)).vocab
    return Path(config.vocab.words) if config.vocab.words else None
