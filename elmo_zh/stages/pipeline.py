"""Run all stages in order, from raw text to a bundle."""

from collections.abc import Collection, Sequence

from elmo_zh.config import Config
from elmo_zh.engine.select import EngineChoice
from elmo_zh.run.files import UNFINISHED, remove, sync_folder
from elmo_zh.run.find_runs import LATEST
from elmo_zh.run.layout import RunDir
from elmo_zh.run.reporter import Reporter
from elmo_zh.stages.encode import encode
from elmo_zh.stages.export import export
from elmo_zh.stages.init_bundle import adopt_init
from elmo_zh.stages.segment import segment
from elmo_zh.stages.train import train
from elmo_zh.stages.vocab import build_vocabulary
from elmo_zh.stages.word2vec import word2vec


def pipeline(
    run: RunDir,
    config: Config,
    corpus: Sequence[str],
    *,
    named: Collection[str] = (),
    engine: EngineChoice | None = None,
    force: bool,
    reporter: Reporter,
) -> None:
    """Run all stages in order, skipping word2vec if training starts from a bundle."""
    config = adopt_init(run, config, named, force=force, reporter=reporter)
    segment(run, config, corpus, engine=engine, force=force, reporter=reporter)
    build_vocabulary(run, config, engine=engine, force=force, reporter=reporter)
    if not config.train.init:
        word2vec(run, config, force=force, reporter=reporter)
    encode(run, config, engine=engine, force=force, reporter=reporter)
    train(run, config, force=force, reporter=reporter)
    export(run, config, checkpoint="best", output=None, force=force, reporter=reporter)


def link_latest(run: RunDir, reporter: Reporter) -> None:
    """Make runs/latest in the current folder a link to a run in runs/; a real folder with that name is left alone.

    Some disks have no links; if a link cannot be made, warn.
    """
    runs, path = LATEST.parent.resolve(), run.path.resolve()
    if runs not in path.parents or (LATEST.exists() and not LATEST.is_symlink()):
        return
    unfinished = LATEST.with_name(LATEST.name + UNFINISHED)
    remove(unfinished)
    try:
        unfinished.symlink_to(path.relative_to(runs), target_is_directory=True)
        unfinished.replace(LATEST)
    except OSError as error:
        reporter.warn(f"Could not link {LATEST} to the run ({error}). In other commands, add --model {run.model}")
    sync_folder(LATEST.parent)
