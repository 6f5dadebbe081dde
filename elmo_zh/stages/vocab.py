"""The vocab stage: build the vocabulary and the spelling model from segmented text."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from elmo_zh.bundle import BundleLayout
from elmo_zh.config import Config
from elmo_zh.invocation import command
from elmo_zh.language import _
from elmo_zh.run.files import require_no_input
from elmo_zh.run.job import run_job
from elmo_zh.run.record import StageContext, StageOutcome, StageResult, require_files, run_stage, source_digest
from elmo_zh.run.stage_table import VOCAB
from elmo_zh.stages.inputs import find_user_dictionary, started_engine
from elmo_zh.text.entries import Entries
from elmo_zh.text.normalise import build_normaliser
from elmo_zh.text.preparation import TextPreparation
from elmo_zh.vocabulary.selection import VocabularyJob, report_given_words
from elmo_zh.vocabulary.vocabulary import load_words


def vocab(context: StageContext) -> StageOutcome:
    """Run the vocab stage: write the vocabulary, its counts and the spelling model."""
    run, config, reporter = context.run, context.config, context.reporter
    source, facts = _source_of_words(config), {}
    if source is not None:
        for output in (run.vocab, run.vocab_counts, run.character_counts):
            require_no_input(output, [source], _("Copy the file elsewhere, and use the copy."))
        name = "init" if config.vocab.init else "words"
        facts[name] = source_digest(run, "vocab", name, source)

    def work() -> StageResult:
        given = _load_given(context, source) if source else {}
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
        message = _(
            "vocab: {rows} rows, covering {share} of the training tokens; the training text has {distinct} distinct"
            " words."
        )
        figures = {"rows": f"{len(selected.vocabulary):,}", "distinct": f"{selected.num_distinct_words:,}"}
        reporter.note(message.format(share=f"{selected.coverage:.2%}", **figures))
        counts: dict[str, Any] = {
            "rows": len(selected.vocabulary),
            "distinct_words": selected.num_distinct_words,
            "coverage": round(selected.coverage, 6),
        }
        if selected.num_refused:
            counts["refused_words"] = selected.num_refused
            message = _("vocab: words excluded by vocab.refuse, such as long numbers and email addresses: {count}.")
            reporter.note(message.format(count=f"{selected.num_refused:,}"))
        if source is not None:
            counts |= {"given_words": len(given), "absent_words": len(selected.absent)}
            report_given_words(selected, config.vocab, len(given), source, reporter)
            if not config.vocab.init:
                _report_divided(context, source, {word: given[word] for word in selected.absent & given.keys()})
        if config.vocab.init and not config.train.init:
            typed = command("train", "--run", run.path, "--init", config.vocab.init)
            message = _("To start training from the weights of the model that the words were taken from: {command}")
            reporter.note(message.format(command=typed))
        return StageResult(outputs=[run.vocab, run.vocab_counts, run.character_counts], counts=counts)

    return run_stage(VOCAB, context, work, facts=facts)


def _load_given(context: StageContext, source: Path) -> dict[str, int]:
    """Return the words of a bundle's vocabulary, or of a list, prepared as the text is, with their lines."""
    require_files(context.run, [source])
    if context.config.vocab.init:
        return load_words(source)
    entries = Entries(source, build_normaliser(context.config.text))
    words = load_words(source, entries)
    entries.report(context.reporter)
    return words


def _report_divided(context: StageContext, source: Path, absent: Mapping[str, int]) -> None:
    """Name the listed words that the text lacks because the segmenter divides them."""
    config = context.config
    # Parts of unknown words may be any word of the list.
    if absent and not config.text.split_unknown:
        preparation = TextPreparation.build(config.text, find_user_dictionary(context.run, config))
        entries = Entries(source, str)
        entries.require_whole(absent, preparation.segment)
        entries.report(context.reporter)


def _source_of_words(config: Config) -> Path | None:
    """Return the file of words that always get a row: a bundle's vocabulary or a word list."""
    if config.vocab.init:
        return BundleLayout(Path(config.vocab.init)).vocab
    return Path(config.vocab.words) if config.vocab.words else None
