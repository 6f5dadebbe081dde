"""Segmented text to the token id store."""

from elmo_zh.characters import load_spelling_model
from elmo_zh.config import Config
from elmo_zh.id_store import build_id_store, store_files
from elmo_zh.lexicon import Lexicon
from elmo_zh.pipeline.inputs import segmented_inputs
from elmo_zh.reporter import Reporter
from elmo_zh.run_dir import RunDir
from elmo_zh.stages import (
    Stage,
    StageOutcome,
    StageResult,
    run_stage,
)
from elmo_zh.vocabulary import (
    SPECIALS,
    load_vocabulary,
)


def encode(run: RunDir, config: Config, *, force: bool, reporter: Reporter) -> StageOutcome:
    """Segmented text and vocabulary to the token id store."""
    inputs = segmented_inputs(run) | {f"segmented/{path.name}": path for path in run.heldout_files()}
    inputs |= {"vocab.data": run.vocab, "character_counts.tsv": run.character_counts}
    reads_characters = config.model.mode == "character"

    def work() -> StageResult:
        spelling = load_spelling_model(run.character_counts)
        lexicon = Lexicon(load_vocabulary(run.vocab), config.model.num_slots)
        counts = build_id_store(run.ids, run.train_files(), run.heldout_files(), lexicon, spelling, reporter)
        oov = counts["heldout_unknown"] / max(1, counts["heldout_tokens"])
        reporter.note(
            f"encode: {counts['train_tokens']:,} tokens to train on, {counts['heldout_tokens']:,} held out,"
            f" of which {oov:.2%} are outside the vocabulary."
        )
        if reads_characters:
            _report_cut_words(lexicon, reporter)
        return StageResult(outputs=store_files(run.ids), counts=counts)

    settings = {"model.mode": "character"} if reads_characters else {}
    stage = Stage(name="encode", settings=settings, inputs=inputs, work=work)
    return run_stage(run, config, stage, force=force, reporter=reporter)


def _report_cut_words(lexicon: Lexicon, reporter: Reporter) -> None:
    words = (*lexicon.vocabulary.tokens[len(SPECIALS) :], *lexicon.other_words)
    cut = [word for word in words if lexicon.is_cut(word)]
    if cut and lexicon.num_slots is not None:
        reporter.note(
            f"encode: {len(cut):,} of {len(words):,} different words are longer than {lexicon.num_slots - 2} bytes;"
            f" the model reads only so many of them, such as of {cut[0]}."
        )
