"""Run all stages in order, from raw text to a bundle."""

from collections.abc import Sequence

from elmo_zh.language import _
from elmo_zh.run.files import UNFINISHED, remove, sync_folder
from elmo_zh.run.find_runs import LATEST
from elmo_zh.run.layout import RunDir
from elmo_zh.run.record import StageContext
from elmo_zh.run.reporter import Reporter
from elmo_zh.stages.encode import encode
from elmo_zh.stages.export import export
from elmo_zh.stages.segment import segment
from elmo_zh.stages.train import train
from elmo_zh.stages.vocab import vocab
from elmo_zh.stages.word2vec import word2vec


def pipeline(context: StageContext, corpus: Sequence[str]) -> None:
    """Run all stages in order, skipping word2vec if training starts from a bundle."""
    segment(context, corpus)
    vocab(context)
    if not context.config.train.init:
        word2vec(context)
    encode(context)
    train(context)
    export(context)


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
        message = _("Could not link {path} to the run ({error}). In other commands, add --model {model}")
        reporter.warn(message.format(path=LATEST, error=error, model=run.model))
    sync_folder(LATEST.parent)
