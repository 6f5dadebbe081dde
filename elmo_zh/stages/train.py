"""The train stage: train on the token id store and write checkpoints, in one process or several."""

from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmo_zh.bundle import BundleLayout
from elmo_zh.config import Config, parse_section
from elmo_zh.errors import RunError
from elmo_zh.id_store.layout import store_files
from elmo_zh.language import _
from elmo_zh.run.files import file_digest
from elmo_zh.run.layout import RunDir
from elmo_zh.run.record import StageContext, StageOutcome, StageResult, require_files, run_stage, source_digest
from elmo_zh.run.reporter import SilentReporter
from elmo_zh.run.stage_table import TRAIN

if TYPE_CHECKING:
    from elmo_zh.training.distributed import ProcessGroup


def train(context: StageContext, *, device: str | None = None, group: "ProcessGroup | None" = None) -> StageOutcome:
    """Run the train stage; `device`, if given, is for this session only. In a process group, only rank 0 calls this."""
    run, config, reporter = context.run, context.config, context.reporter
    require_files(run, [run.ids, run.vocab])
    if group:
        require_divisible_batch_size(config, group.size)
    facts: dict[str, Any] = {"model.tie_softmax": config.model.is_tied}
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
    # store.json holds the sizes and counts of the store's other files.
    paths = (run.vocab, run.ids / "store.json")
    return {str(path.relative_to(run.path)): file_digest(path) for path in paths}


def _require_same_text(run: RunDir, expected: dict[str, str]) -> None:
    for name, digest in expected.items():
        path = run.path / Path(name)
        if not path.is_file() or file_digest(path) != digest:
            message = _("{path} is not the file of rank 0. Copy vocab.data and ids/ from the run on rank 0's machine.")
            raise RunError(message.format(path=path))


def _read_config(values: dict[str, Any]) -> Config:
    sections = {
        f.name: parse_section(getattr(Config(), f.name), values[f.name], f.name, "the settings of rank 0")
        for f in fields(Config)
    }
    return Config(**sections)
