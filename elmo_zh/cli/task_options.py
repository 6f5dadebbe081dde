"""Options that commands for labelled tasks share, and functions that check them or load a trained task."""

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from elmo_zh.cli.declared import Function, takes
from elmo_zh.cli.options import Common, refuse_together, shared_options
from elmo_zh.config.task_settings import KINDS, DataFiles, FitJob, HeadSettings, Reading, TrainSettings
from elmo_zh.language import _

if TYPE_CHECKING:
    from elmo_zh.tasks.task_model import TaskModel


def labelled_options(*, without: Collection[str] = ()) -> Callable[[Function], Function]:
    """Return a decorator that adds the options for reading labelled data."""
    return lambda function: takes(Reading, "reading", without=without)(shared_options("text.encoding")(function))


def training_options(function: Callable[..., Any]) -> Any:
    """Add the arguments and options for training; the command gets them as `job`, a FitJob, with one seed."""

    @wraps(function)
    def command(*args: Any, kind: str, data: Path, **values: Any) -> Any:
        groups = {name: values.pop(name) for name in ("files", "reading", "settings", "training")}
        groups["files"] = replace(groups["files"], data=data)
        groups["settings"] = replace(groups["settings"], kind=kind, inputs=())
        return function(*args, job=FitJob(**groups), **values)

    grouped = takes(HeadSettings, "settings")(takes(TrainSettings, "training")(command))
    return kind_argument(KINDS)(data_argument(takes(DataFiles, "files")(labelled_options()(grouped))))


def checked_job(common: Common, job: FitJob) -> FitJob:
    """Return the job with its options for reading data checked and completed."""
    kind, regression = job.settings.kind, job.settings.regression
    return replace(job, reading=checked_reading(common, job.reading, kind, regression=regression))


def checked_reading(common: Common, reading: Reading, kind: str, *, regression: bool = False) -> Reading:
    """Return the completed reading options; raise UsageError or OptionError if they do not suit `kind`."""
    wanted, given = 2 if kind == "pairs" else 1, len(reading.text_columns)
    if given not in (0, wanted):
        message = _("The number of text columns must be {wanted}, not {given}. Use --text-column once for each.")
        raise click.UsageError(message.format(given=given, wanted=wanted))
    if kind == "tag":
        refuse_together("tag", {"--skip-unlabelled": reading.skips_unlabelled})
    return replace(reading, kind=kind, regression=regression, encoding=common.config.text.encoding)


def kind_argument(kinds: Collection[str]) -> Callable[[Function], Function]:
    """Return a decorator that adds the argument KIND, which has to be one of these kinds."""
    return click.argument("kind", type=click.Choice(list(kinds)))


data_argument = click.argument("data", type=click.Path(path_type=Path, exists=True))


task_options = shared_options("task", required=True)
moved_model_option = shared_options(
    "model", help="Folder of the model that the task uses. Needed only if the model was moved after task fit."
)


def load_task(common: Common) -> "TaskModel":
    """Load a trained task with its model, and report which model that is."""
    from elmo_zh.allocator import keep_few_kernels, keep_freed_memory

    keep_few_kernels()
    keep_freed_memory()
    from elmo_zh.bundle.read import model_line
    from elmo_zh.tasks.task_model import TaskModel

    assert common.task is not None, "the option is required"
    task = TaskModel.load(common.task, common.model, common.device or "auto")
    common.console.note(model_line(task.embedder.bundle))
    return task
