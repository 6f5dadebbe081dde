"""The token id store to checkpoints."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmo_zh.bundle.layout import BundleLayout
from elmo_zh.config import Config, result_settings
from elmo_zh.id_store.layout import store_files
from elmo_zh.run.files import remove
from elmo_zh.run.layout import RunDir
from elmo_zh.run.record import (
    Stage,
    StageOutcome,
    StageResult,
    require_inputs,
    run_stage,
    source_digest,
)
from elmo_zh.run.reporter import Reporter
from elmo_zh.stages.init_bundle import BUNDLE_HINT, with_resolved_init

if TYPE_CHECKING:
    from elmo_zh.training.distributed import ProcessGroup


def train(
    run: RunDir,
    config: Config,
    *,
    device: str | None = None,
    group: "ProcessGroup | None" = None,
    force: bool,
    reporter: Reporter,
) -> StageOutcome:
    """Token id store, vocabulary and initial embeddings to checkpoints, on `device` if one is given for this time.

    With a group this is its rank 0; the other ranks wait in `training.rank_start.follow` for what it begins.
    """
    config = with_resolved_init(config)
    require_inputs(run, [run.ids, run.vocab])
    if group:
        from elmo_zh.training.rank_start import require_even_shares

        require_even_shares(config, group.size)
    inputs = {f"ids/{path.name}": path for path in store_files(run.ids)}
    inputs |= {"vocab.data": run.vocab, "vocab.counts": run.vocab_counts}
    if config.word2vec.enabled and not config.train.init:
        inputs["word2vec.txt"] = run.word2vec
    here = replace(config, train=replace(config.train, device=device)) if device else config

    def work() -> StageResult:
        from elmo_zh.training.train import train_run

        if group is None:
            return train_run(run, here, reporter)
        from elmo_zh.training.rank_start import begin_together

        begin_together(run, here, group)
        return train_run(run, here, reporter, group)

    def discard() -> None:
        for path in (run.checkpoints, run.start, run.metrics, run.tensorboard, run.training_picture):
            remove(path)

    budget = ("max_tokens", "epochs")
    settings = {f"model.{name}": value for name, value in _model_settings(config).items()}
    settings |= {
        f"train.{name}": value for name, value in result_settings(config.train, without=(*budget, "init")).items()
    }
    if config.train.init:
        info = BundleLayout(Path(config.train.init)).info
        settings["train.init"] = source_digest(run, "train", "train.init", info, BUNDLE_HINT)
    stage = Stage(
        name="train",
        settings=settings,
        inputs=inputs,
        work=work,
        budget={name: getattr(config.train, name) for name in budget},
        discard=discard,
    )
    return run_stage(run, config, stage, force=force, reporter=reporter)


def _model_settings(config: Config) -> dict[str, Any]:
    """Return the settings of the model that have an effect in its mode; token mode names none of the characters'."""
    settings = result_settings(config.model) | {"tie_softmax": config.model.is_tied}
    if config.model.mode == "character":
        return settings
    no_effect = ("mode", "highway_layers")
    return {
        name: value for name, value in settings.items() if name not in no_effect and not name.startswith("character_")
    }
