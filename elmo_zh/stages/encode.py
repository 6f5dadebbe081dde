"""The encode stage: write the segmented text to the token id store."""

from elmo_zh.id_store.build import build_id_store
from elmo_zh.id_store.layout import STORE_FORMAT, store_files
from elmo_zh.run.record import StageContext, StageOutcome, StageResult, input_files, run_stage
from elmo_zh.run.reporter import Reporter
from elmo_zh.run.stage_table import ENCODE
from elmo_zh.run.work_folder import WorkFolder
from elmo_zh.stages.inputs import started_engine
from elmo_zh.vocabulary.lexicon import Lexicon
from elmo_zh.vocabulary.spelling import load_spelling_model
from elmo_zh.vocabulary.vocabulary import SPECIALS, load_vocabulary


def encode(context: StageContext) -> StageOutcome:
    """Run the encode stage: write the segmented text to RUN/ids as vocabulary ids."""
    run, config, reporter = context.run, context.config, context.reporter
    files = {"train": run.train_files(), "heldout": run.heldout_files()}

    def work() -> StageResult:
        # Loaded here too, so that a damaged file is reported at the start, and also if there is no held-out text.
        load_spelling_model(run.character_counts)
        lexicon = Lexicon(load_vocabulary(run.vocab), config.model.num_slots)
        with started_engine(context, input_files(ENCODE, context).values()) as started:
            counts = build_id_store(
                run.ids,
                files,
                run.vocab,
                run.character_counts,
                lexicon,
                started,
                WorkFolder(run.ids_parts),
                reporter,
                split_unknown=config.text.split_unknown,
            )
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
