"""The segment stage: turn raw text into segmented text."""

import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from elmo_zh.config import Config
from elmo_zh.corpus.sources import Sources, gathered_sources
from elmo_zh.engine.select import EngineChoice
from elmo_zh.run.files import atomic_path, require_no_input
from elmo_zh.run.layout import RunDir
from elmo_zh.run.record import Stage, StageOutcome, StageResult, run_stage
from elmo_zh.run.reporter import Reporter, counted, first_ten
from elmo_zh.segmenting.report import corpus_report, describe_reading, reading_settings, report_segmented
from elmo_zh.segmenting.segment_corpus import segment_corpus
from elmo_zh.stages.inputs import copy_user_dictionary, find_user_dictionary, text_settings


def segment(
    run: RunDir,
    config: Config,
    corpus: Sequence[str],
    *,
    engine: EngineChoice | None = None,
    force: bool,
    reporter: Reporter,
) -> StageOutcome:
    """Run the segment stage: find the sources of a corpus, and split their text into sentences and tokens."""
    with gathered_sources(corpus, run.path, run.fetched) as sources:
        return segment_sources(run, config, sources, engine=engine, force=force, reporter=reporter)


def segment_sources(
    run: RunDir,
    config: Config,
    sources: Sources,
    engine: EngineChoice | None = None,
    *,
    force: bool,
    reporter: Reporter,
) -> StageOutcome:
    """Run the segment stage on sources that have been found: split their text into sentences and tokens."""
    sources.report_skipped(reporter)
    dictionary = find_user_dictionary(run, config)
    settings = text_settings(config, dictionary) | reading_settings(config.text)

    folder = _shared_folder(sources)
    inputs = _input_names(sources, folder)
    for output in (run.segmented, run.corpus_report):
        require_no_input(output, inputs.values(), "Choose another --run, or copy the text elsewhere and use the copy.")

    def work() -> StageResult:
        segmented = segment_corpus(sources, run.segmented, config.text, dictionary, reporter, engine)
        copy = copy_user_dictionary(run, dictionary)
        _report_empty(sources, reporter)
        report_segmented(segmented, list(inputs), config.text, reporter)
        # The report is not an output of the stage, so the stage does not run again if the user deletes it.
        with atomic_path(run.corpus_report) as unfinished:
            unfinished.write_text(corpus_report(segmented, list(inputs)), encoding="utf-8")
        return StageResult(
            outputs=[*run.train_files(), *run.document_files(), *run.heldout_files(), *([copy] if copy else [])],
            counts=asdict(segmented.counts),
            details={
                **describe_reading(segmented, list(inputs), sources),
                "corpus": list(sources.arguments),
                "folder": os.path.relpath(folder, run.path.resolve()),
            },
        )

    stage = Stage(name="segment", settings=settings, inputs=inputs, work=work)
    return run_stage(run, config, stage, force=force, reporter=reporter)


def _report_empty(sources: Sources, reporter: Reporter) -> None:
    empty = [source.name for source in sources.sources if not source.path.stat().st_size]
    if empty:
        reporter.warn(f"The corpus contains {counted(len(empty), 'empty file')}: {first_ten(empty)}.")


def _shared_folder(sources: Sources) -> Path:
    """Return the deepest folder that contains all files of the corpus, which may be the root."""
    parents = [set(source.path.resolve().parents) for source in sources.sources if source.is_local]
    return max(set.intersection(*parents), key=lambda path: len(path.parts)) if parents else Path("/")


def _input_names(sources: Sources, folder: Path) -> dict[str, Path]:
    """Name the sources relative to their common folder, so that the corpus can be moved."""
    return {
        str(source.path.resolve().relative_to(folder)) if source.is_local else source.name: source.path
        for source in sources.sources
    }
