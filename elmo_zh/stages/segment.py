"""The segment stage: turn raw text into segmented text."""

import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from elmo_zh.corpus.sources import Sources, gathered_sources
from elmo_zh.language import _
from elmo_zh.run.files import require_no_input
from elmo_zh.run.record import StageContext, StageOutcome, StageResult, run_stage
from elmo_zh.run.reporter import Reporter, first_ten
from elmo_zh.run.stage_table import SEGMENT
from elmo_zh.segmenting.report import describe_reading, report_segmented
from elmo_zh.segmenting.segment_corpus import segment_corpus
from elmo_zh.stages.inputs import copy_user_dictionary, find_user_dictionary
from elmo_zh.text.segmenters import describe_segmenter


def segment(context: StageContext, corpus: Sequence[str]) -> StageOutcome:
    """Run the segment stage: find the sources of a corpus, and split their text into sentences and tokens."""
    with gathered_sources(corpus, context.run.path, context.run.fetched) as sources:
        return _segment_sources(context, sources)


def _segment_sources(context: StageContext, sources: Sources) -> StageOutcome:
    run, config, reporter = context.run, context.config, context.reporter
    sources.report_skipped(reporter)
    dictionary = find_user_dictionary(run, config)
    folder = _shared_folder(sources)
    inputs = _input_names(sources, folder)
    require_no_input(run.segmented, inputs.values(), _("Choose another {option}.").format(option="--run"))

    def work() -> StageResult:
        segmented = segment_corpus(
            sources, run.segmented, config.text, dictionary, reporter, context.engine, force=context.force
        )
        copy = copy_user_dictionary(run, dictionary)
        _report_empty(sources, reporter)
        report_segmented(segmented, list(inputs), config.text, reporter)
        return StageResult(
            outputs=[*run.train_files(), *run.document_files(), *run.heldout_files(), *([copy] if copy else [])],
            counts=asdict(segmented.counts),
            details={
                **describe_reading(segmented, list(inputs), sources),
                "corpus": list(sources.arguments),
                "folder": os.path.relpath(folder, run.path.resolve()),
            },
        )

    facts = {"segmenter_version": describe_segmenter(config.text, dictionary)}
    return run_stage(SEGMENT, context, work, files=inputs, facts=facts)


def _report_empty(sources: Sources, reporter: Reporter) -> None:
    if empty := [source.name for source in sources.sources if not source.path.stat().st_size]:
        reporter.warn(_("The corpus contains empty files: {names}.").format(names=first_ten(empty)))


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
