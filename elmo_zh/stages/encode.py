"""The encode stage: write the segmented text to the token id store."""

from elmo_zh.id_store.build import EncodeJob
from elmo_zh.id_store.layout import STORE_FORMAT, store_files
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
        reporter.note(
            f"encode: {counts['train_tokens']:,} training tokens and {counts['heldout_tokens']:,} held-out tokens;"
            f" {oov_rate:.2%} of the held-out tokens are outside the vocabulary."
        )
        if config.model.mode == "character":
            _report_cut_words(lexicon, reporter)
        return StageResult(outputs=store_files(run.ids), counts=counts)

    return run_stage(ENCODE, context, work, facts={"store_format": STORE_FORMAT})


def _report_cut_words(lexicon: Lexicon, reporter: Reporter) -> None:
    words = (*lexicon.vocabulary.tokens[len(SPECIALS) :], *lexicon.other_words)
    cut = [word for word in words if lexicon.is_cut(word)]
    if cut and lexicon.num_slots is not None:
        reporter.note(
            f"encode: {len(cut):,} of {len(words):,} distinct words are longer than {lexicon.num_slots - 2} bytes;"
            f" the model reads only their first {lexicon.num_slots - 2} bytes. An example is {cut[0]}."
        )
