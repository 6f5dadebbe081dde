"""The encode stage: write the segmented text to the token id store."""

from elmo_zh.id_store.build import EncodeJob
from elmo_zh.id_store.layout import STORE_FORMAT, store_files
from elmo_zh.language import _
from elmo_zh.run.job import run_job
from elmo_zh.run.record import StageContext, StageOutcome, StageResult, input_files, run_stage
from elmo_zh.run.reporter import Reporter
from elmo_zh.run.stage_table import ENCODE
from elmo_zh.stages.inputs import started_engine
from elmo_zh.vocabulary.lexicon import Lexicon
from elmo_zh.vocabulary.vocabulary import SPECIALS


def encode(context: StageContext) -> StageOutcome:
    """Run the encode stage: write the segmented text to RUN/ids as vocabulary ids."""
    run, config, reporter = context.run, context.config, context.reporter
    files = {"train": run.train_files(), "heldout": run.heldout_files()}

    def work() -> StageResult:
        job = EncodeJob(
            files=files,
            vocabulary=run.vocab,
            character_counts=run.character_counts,
            num_slots=config.model.num_slots,
            output=run.ids,
            split_unknown=config.text.split_unknown,
        )
        with started_engine(context, input_files(ENCODE, context).values()) as started:
            counts, lexicon = run_job(job, force=context.force, replace=True, reporter=reporter, engine=started)
        oov_rate = counts["heldout_unknown"] / max(1, counts["heldout_tokens"])
        message = _(
            "encode: {train} training tokens and {heldout} held-out tokens; {unknown} of the held-out tokens are"
            " outside the vocabulary."
        )
        train, heldout = (f"{counts[f'{part}_tokens']:,}" for part in ("train", "heldout"))
        reporter.note(message.format(train=train, heldout=heldout, unknown=f"{oov_rate:.2%}"))
        if config.model.mode == "character":
            _report_cut_words(lexicon, reporter)
        return StageResult(outputs=store_files(run.ids), counts=counts)

    return run_stage(ENCODE, context, work, facts={"store_format": STORE_FORMAT})


def _report_cut_words(lexicon: Lexicon, reporter: Reporter) -> None:
    words = (*lexicon.vocabulary.tokens[len(SPECIALS) :], *lexicon.other_words)
    cut = [word for word in words if lexicon.is_cut(word)]
    if cut and lexicon.num_slots is not None:
        message = _("encode: {count} of {total} distinct words are cut after {size} bytes, for example {word}.")
        counts = {"count": f"{len(cut):,}", "total": f"{len(words):,}", "size": lexicon.num_slots - 2}
        reporter.note(message.format(**counts, word=cut[0]))
