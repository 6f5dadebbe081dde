"""The export stage: turn a checkpoint into a bundle."""

from pathlib import Path

from elmo_zh.bundle.layout import FLOAT32_BUNDLE, BundleForm
from elmo_zh.config import Config, preparation_settings, with_defaults
from elmo_zh.errors import RunError
from elmo_zh.run.changes import describe_settings
from elmo_zh.run.layout import RunDir
from elmo_zh.run.record import (
    Stage,
    StageOutcome,
    StageResult,
    describe_files,
    load_record,
    require_as_made,
    require_inputs,
    run_stage,
)
from elmo_zh.run.reporter import Reporter
from elmo_zh.stages.inputs import text_settings


def export(
    run: RunDir,
    config: Config,
    *,
    checkpoint: str,
    output: Path | None,
    form: BundleForm = FLOAT32_BUNDLE,
    force: bool,
    reporter: Reporter,
) -> StageOutcome:
    """Write a checkpoint (best, last or a step number) as a bundle: to RUN/model, or to `output` in the given form."""
    require_inputs(run, [run.checkpoints, run.vocab, run.character_counts])
    from elmo_zh.training.bundle_export import choose_step, export_checkpoint
    from elmo_zh.training.checkpoint import CheckpointFolder

    _require_text_settings_of_training(run, config)
    # Weights that do not fit the vocabulary are refused, but nothing else would notice these files of another run.
    for maker, paths in (("vocab", (run.vocab_counts, run.character_counts)), ("word2vec", (run.word2vec,))):
        files = {path.name: path for path in paths if path.is_file()}
        require_as_made(run, maker, files, describe_files(files, {}))
    step = choose_step(CheckpointFolder(run.checkpoints), checkpoint, run)
    if output is not None:
        # An export to another place is not a stage of the run: it is never skipped, and leaves no record.
        export_checkpoint(run, config, step, output, form=form, force=force, reporter=reporter)
        return StageOutcome(counts={"step": step}, skipped=False)

    settings = {"checkpoint": checkpoint, "text": preparation_settings(config.text, without=("user_dictionary",))}

    inputs = {path.name: path for path in CheckpointFolder(run.checkpoints).files(step)}
    inputs |= {"vocab.data": run.vocab, "character_counts.tsv": run.character_counts}
    optional = (run.start / "start.json", run.start / "word2vec.hdf5", run.word2vec, run.about)
    inputs |= {path.name: path for path in optional if path.exists()}

    def work() -> StageResult:
        export_checkpoint(run, config, step, run.model, form=FLOAT32_BUNDLE, force=True, reporter=reporter)
        return StageResult(outputs=sorted(run.model.iterdir()), counts={"step": step})

    stage = Stage(name="export", settings=settings, inputs=inputs, work=work, discards_training=False)
    return run_stage(run, config, stage, force=force, reporter=reporter)


def _require_text_settings_of_training(run: RunDir, config: Config) -> None:
    """Raise RunError unless the text settings, which the bundle records, match the training text."""
    made_with = with_defaults(load_record(run.stage_record("segment")).get("settings", {}))
    if not made_with:
        return
    dictionary = run.user_dictionary if config.text.user_dictionary else None
    now = with_defaults(text_settings(config, dictionary))
    before = {f"text.{name}": made_with.get(name) for name in now}
    changes = describe_settings(before, {f"text.{name}": value for name, value in now.items()})
    if changes:
        raise RunError(
            f"{run.path}: text settings have changed since the training text was segmented ({', '.join(changes)})."
            " Restore the old values, because a model works only on text prepared like its training text."
        )
