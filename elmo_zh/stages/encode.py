"""Segmented text to the token id store."""

from elmo_zh.config import Config
from elmo_zh.engine.select import EngineChoice
from elmo_zh.id_store.build import build_id_store
from elmo_zh.id_store.layout import STORE_FORMAT, store_files
from elmo_zh.run.layout import RunDir
from elmo_zh.run.record import (
    Stage,
    StageOutcome,
    StageResult,
    run_stage,
)
from elmo_zh.run.reporter import Reporter
from elmo_zh.stages.inputs import choose_engine, segmented_inputs, total_bytes
from elmo_zh.vocabulary.lexicon import Lexicon
from elmo_zh.vocabulary.spelling import load_spelling_model
from elmo_zh.vocabulary.vocabulary import (
    SPECIALS,
    load_vocabulary,
)


def encode(
    run: RunDir, config: Config, *, engine: EngineChoice | None = None, force: bool, reporter: Reporter
) -> StageOutcome:
    """Segmented text and vocabulary to the token id store."""
    files = {"train": run.train_files(), "heldout": run.heldout_files()}
    inputs = segmented_inputs(run)
    inputs |= {f"segmented/{path.name}": path for path in (*files["heldout"], *run.document_files())}
    num_bytes = total_bytes(inputs.values())
    inputs |= {"vocab.data": run.vocab, "character_counts.tsv": run.character_counts}
    reads_characters = config.model.mode == "character"

    def work() -> StageResult:
        load_spelling_model(run.character_counts)  # so that a damaged one is told here, and also without held-out text
        lexicon = Lexicon(load_vocabulary(run.vocab), config.model.num_slots)
        with choose_engine(engine, config).started(num_bytes) as started:
            counts = build_id_store(
                run.ids, files, run.vocab, run.character_counts, lexicon, started, run.ids_parts, reporter
            )
        oov = counts["heldout_unknown"] / max(1, counts["heldout_tokens"])
        reporter.note(
            f"encode: {counts['train_tokens']:,} tokens to train on, {counts['heldout_tokens']:,} held out,"
            f" of which {oov:.2%} are outside the vocabulary."
        )
        if reads_characters:
            _report_cut_words(lexicon, reporter)
        return StageResult(outputs=store_files(run.ids), counts=counts)

    settings = {"store_format": STORE_FORMAT, **({"model.mode": "character"} if reads_characters else {})}
    stage = Stage(name="encode", settings=settings, inputs=inputs, work=work, parts=run.ids_parts)
    return run_stage(run, config, stage, force=force, reporter=reporter)


def _report_cut_words(lexicon: Lexicon, reporter: Reporter) -> None:
    words = (*lexicon.vocabulary.tokens[len(SPECIALS) :], *lexicon.other_words)
    cut = [word for word in words if lexicon.is_cut(word)]
    if cut and lexicon.num_slots is not None:
        reporter.note(
            f"encode: {len(cut):,} of {len(words):,} different words are longer than {lexicon.num_slots - 2} bytes;"
            f" the model reads only so many of them, such as of {cut[0]}."
        )
