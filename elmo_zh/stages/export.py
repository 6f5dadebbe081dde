"""The export stage: turn a checkpoint into a bundle."""

from pathlib import Path

from elmo_zh.bundle import FLOAT32_BUNDLE, BundleForm
from elmo_zh.config import Config, preparation_settings
from elmo_zh.errors import RunError
from elmo_zh.language import _
from elmo_zh.run.layout import RunDir
from elmo_zh.run.record import (
    StageContext,
    StageOutcome,
    StageResult,
    describe_settings,
    input_files,
    load_record,
    require_intact,
    run_stage,
)
from elmo_zh.run.stage_table import EXPORT, SEGMENT
from elmo_zh.stages.inputs import text_settings


def export(
    context: StageContext, *, checkpoint: str = "best", output: Path | None = None, form: BundleForm = FLOAT32_BUNDLE
) -> StageOutcome:
    """Write a checkpoint (best, last or a step number) as a bundle: to RUN/model, or to `output` in the given form."""
    run, config, reporter = context.run, context.config, context.reporter
    input_files(EXPORT, context)
    from elmo_zh.training.bundle_export import choose_step, export_checkpoint
    from elmo_zh.training.checkpoint import CheckpointFolder

    _require_text_settings_of_training(run, config)
    step = choose_step(CheckpointFolder(run.checkpoints), checkpoint, run)
    if output is not None:
        # An export to another place is not a stage of the run: it is never skipped, and leaves no record.
        require_intact(EXPORT, run, {})
        export_checkpoint(run, config, step, output, form=form, force=context.force, reporter=reporter)
        return StageOutcome(counts={"step": step}, skipped=False)

    started_from = filter(Path.exists, (run.start / "start.json", run.start / "word2vec.hdf5"))
    files = {path.name: path for path in (*CheckpointFolder(run.checkpoints).files(step), *started_from)}

    def work() -> StageResult:
        export_checkpoint(run, config, step, run.model, form=FLOAT32_BUNDLE, force=True, reporter=reporter)
        return StageResult(outputs=sorted(run.model.iterdir()), counts={"step": step})

    facts = {"checkpoint": checkpoint, "text": preparation_settings(config.text)}
    return run_stage(EXPORT, context, work, files=files, facts=facts)


def _require_text_settings_of_training(run: RunDir, config: Config) -> None:
    """Raise RunError unless the text settings, which the bundle records, match the training text."""
    record = load_record(run.stage_record("segment"))
    if not record:
        return
    dictionary = run.user_dictionary if config.text.dictionary else None
    made_with = SEGMENT.typed(record)
    now = {f"text.{name}": value for name, value in text_settings(config, dictionary).items()}
    changes = describe_settings({name: made_with[name] for name in now.keys() & made_with.keys()}, now)
    if changes:
        message = _(
            "{run}: text settings have changed since the training text was segmented ({changes}). Restore the old"
            " values, because a model works only on text prepared like its training text."
        )
        raise RunError(message.format(run=run.path, changes=", ".join(changes)))
