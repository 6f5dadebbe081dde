"""The stages train and export, which make a model, and `pipeline`, which runs the stages in order."""

from collections.abc import Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmo_zh.bundle import FLOAT32_BUNDLE, BundleForm, BundleLayout
from elmo_zh.config import Config, parse_section
from elmo_zh.errors import RunError
from elmo_zh.id_store import store_files
from elmo_zh.language import _
from elmo_zh.run.files import UNFINISHED, file_digest, remove, sync_folder
from elmo_zh.run.layout import LATEST, RunDir
from elmo_zh.run.record import (
    StageContext,
    StageResult,
    describe_stage,
    require_files,
    run_stage,
    source_digest,
)
from elmo_zh.run.reporter import SilentReporter
from elmo_zh.run.stage_table import EXPORT, TRAIN
from elmo_zh.stages.settings import text_settings
from elmo_zh.stages.text import encode, segment, vocab, word2vec

if TYPE_CHECKING:
    from elmo_zh.training.distributed import ProcessGroup


def train(context: StageContext, *, device: str | None = None, group: "ProcessGroup | None" = None) -> StageResult:
    """Run the train stage; `device`, if given, is for this session only. In a process group, only rank 0 calls this."""
    run, config, reporter = context.run, context.config, context.reporter
    require_files(run, [run.ids, run.vocab])
    if group:
        require_divisible_batch_size(config, group.size)
    facts = {}
    if config.train.init:
        info = BundleLayout(Path(config.train.init)).info
        facts["train.init"] = source_digest(run, "train", "train.init", info)
    files = {f"ids/{path.name}": path for path in store_files(run.ids)}

    # The device is not a setting of the run.
    config_now = replace(config, train=replace(config.train, device=device)) if device else config

    def work() -> StageResult:
        from elmo_zh.training.train_run import train_run

        if group is None:
            return train_run(run, config_now, reporter)
        group.start_training({"config": asdict(config_now), "digests": _text_digests(run)})
        return train_run(run, config_now, reporter, group)

    return run_stage(TRAIN, context, work, files=files, facts=facts)


# Several processes: rank 0 alone decides whether there is anything to train. The others wait for its settings.


def require_divisible_batch_size(config: Config, size: int) -> None:
    """Raise RunError unless the streams can be divided evenly among `size` ranks."""
    batch_size = config.train.batch_size
    if batch_size % size:
        nearest = max(size, round(batch_size / size) * size)
        message = _(
            "train.batch_size = {batch_size} is not divisible by the number of processes ({size}). Start a different"
            " number of processes, or start a new run with --set train.batch_size={nearest}"
        )
        raise RunError(message.format(batch_size=batch_size, size=size, nearest=nearest))


def train_on_other_rank(run: RunDir, group: "ProcessGroup") -> None:
    """Train on a rank other than 0 once rank 0 starts; exit with rank 0's status if there is nothing to train."""
    from elmo_zh.training.train_run import train_run

    description = group.receive()
    _require_same_text(run, description["digests"])
    train_run(run, _read_config(description["config"]), SilentReporter(), group)


def _text_digests(run: RunDir) -> dict[str, str]:
    return {str(path.relative_to(run.path)): file_digest(path) for path in (run.vocab, *store_files(run.ids))}


def _require_same_text(run: RunDir, expected: dict[str, str]) -> None:
    for name, digest in expected.items():
        path = run.path / Path(name)
        if not path.is_file() or file_digest(path) != digest:
            message = _(
                "{path} is missing or differs from the file on rank 0's machine. Copy vocab.data and ids/ from the run"
                " there."
            )
            raise RunError(message.format(path=path))


def _read_config(values: dict[str, Any]) -> Config:
    sections = {
        f.name: parse_section(getattr(Config(), f.name), values[f.name], f.name, "the settings of rank 0")
        for f in fields(Config)
    }
    return Config(**sections)


def export(
    context: StageContext, *, checkpoint: str = "best", output: Path | None = None, form: BundleForm = FLOAT32_BUNDLE
) -> StageResult:
    """Export a checkpoint (best, last or a step number): to RUN/model as a bundle, or to `output` in the given form."""
    run, config, reporter = context.run, context.config, context.reporter
    facts = {"checkpoint": checkpoint, **text_settings(config, run.user_dictionary if config.text.dictionary else None)}
    describe_stage(EXPORT, context, {}, facts)  # which checks the inputs
    from elmo_zh.training.checkpoint import CheckpointFolder
    from elmo_zh.training.export import choose_step, export_checkpoint

    step = choose_step(CheckpointFolder(run.checkpoints), checkpoint, run)
    if output is not None:
        # An export to another place is not a stage of the run: it is never skipped, and leaves no record.
        export_checkpoint(run, config, step, output, form=form, force=context.force, reporter=reporter)
        return StageResult(counts={"step": step}, skipped=False)

    started_from = filter(Path.exists, (run.start / "start.json", run.start / "word2vec.hdf5"))
    files = {path.name: path for path in (*CheckpointFolder(run.checkpoints).files(step), *started_from)}

    def work() -> StageResult:
        export_checkpoint(run, config, step, run.model, form=FLOAT32_BUNDLE, force=True, reporter=reporter)
        return StageResult(outputs=sorted(run.model.iterdir()), counts={"step": step})

    return run_stage(EXPORT, context, work, files=files, facts=facts)


def pipeline(context: StageContext, corpus: Sequence[str]) -> None:
    """Run the stages in order, skipping word2vec if training starts from a bundle."""
    segment(context, corpus)
    vocab(context)
    if not context.config.train.init:
        word2vec(context)
    encode(context)
    train(context)
    export(context)


def link_latest(run: RunDir) -> None:
    """Link runs/latest in the current folder to a run, unless the run is outside runs/ or runs/latest is not a link."""
    runs, path = LATEST.parent.resolve(), run.path.resolve()
    if runs not in path.parents or (LATEST.exists() and not LATEST.is_symlink()):
        return
    unfinished = LATEST.with_name(LATEST.name + UNFINISHED)
    remove(unfinished)
    unfinished.symlink_to(path.relative_to(runs), target_is_directory=True)
    unfinished.replace(LATEST)
    sync_folder(LATEST.parent)
