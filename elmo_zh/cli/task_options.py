"""Options that several commands of labelled tasks have, and how these commands read data and trained tasks."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from elmo_zh.bundle.find_bundle import find_bundle
from elmo_zh.cli.options import Common, Function, encoding_option, with_options

if TYPE_CHECKING:
    from elmo_zh.tasks.data.read_labelled import Reading
    from elmo_zh.tasks.task_model import TaskModel

# Also in elmo_zh.tasks, which is imported only when a command works; a test compares them.
LABELLED_FORMATS = ("auto", "csv", "tsv", "jsonl", "conll")


def labelled_options(function: Any) -> Any:
    """Add the options for how labelled data is read."""
    text_column = click.option(
        "--text-column",
        "text_columns",
        multiple=True,
        metavar="NAME",
        help="Name, or number from 1, of the column or field with the text. Give it twice for pairs. Default: chosen"
        " by the names and the content of the columns.",
    )
    label_column = click.option(
        "--label-column",
        default="",
        metavar="NAME",
        help="Name, or number from 1, of the column or field with the label. Default: chosen by the names and the"
        " content of the columns.",
    )
    input_format = click.option(
        "--input-format",
        type=click.Choice(LABELLED_FORMATS),
        default="auto",
        show_default=True,
        help="Format of the labelled files; auto detects it for each file.",
    )
    return with_options(function, [text_column, label_column, input_format, encoding_option])


def output_folder_option(metavar: str) -> Callable[[Function], Function]:
    """Return the option --output of a command that writes a folder, which its help calls `metavar`."""
    path = click.Path(path_type=Path, file_okay=False)
    return click.option("--output", type=path, required=True, metavar=metavar, help="Folder to write.")


def word2vec_option(help: str) -> Callable[[Function], Function]:  # noqa: A002
    """Return the option --word2vec of a command that compares with these vectors."""
    kind = click.Path(path_type=Path)
    return click.option("--word2vec", type=kind, callback=_find_vectors, metavar="PATH", help=help)


def _find_vectors(_context: click.Context, _parameter: click.Parameter, value: Path | None) -> Path | None:
    """Return the folder of a model or run that is given by its path, or by the name of an installed model."""
    if value is None:
        return None
    path = find_bundle(value)
    if not path.exists():
        raise click.BadParameter(f"{str(value)!r} is neither a folder nor the name of an installed model.")
    return path


def seeds_option(default: int, help: str) -> Callable[[Function], Function]:  # noqa: A002
    """Return the option --seeds of a command that trains several times."""
    number = click.IntRange(1, 100)
    return click.option("--seeds", "num_seeds", type=number, default=default, show_default=True, metavar="N", help=help)


unlabelled_option = click.option(
    "--skip-unlabelled",
    is_flag=True,
    help="Leave out rows with an empty label, of classes and pairs. Default: they are an error.",
)
task_option = click.option(
    "--task",
    "task_path",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    metavar="TASK",
    help="Folder of the trained task, as task fit has written it.",
)
moved_model_option = click.option(
    "--model",
    type=click.Path(path_type=Path),
    metavar="BUNDLE",
    help="Folder of the model that the task was trained on. Give it only if the model has been moved.",
)


def reading_of(kind: str, encoding: str, chosen: dict[str, Any], *, regression: bool) -> "Reading":
    """Return how labelled files are read; raise UsageError for a wrong number of columns."""
    from elmo_zh.tasks.data.read_labelled import Reading

    columns = chosen["text_columns"]
    wanted = 2 if kind == "pairs" else 1
    if columns and len(columns) != wanted:
        raise click.UsageError(f"--text-column is needed {'twice' if wanted == 2 else 'once'}, found {len(columns)}.")
    skips_unlabelled = chosen.get("skip_unlabelled", False)
    if skips_unlabelled and kind == "tag":
        raise click.UsageError("--skip-unlabelled is for classes and pairs; a text without spans is an example too.")
    return Reading(
        kind=kind,
        regression=regression,
        format=chosen["input_format"],
        encoding=encoding,
        text_columns=columns or ("",) * wanted,
        label_column=chosen["label_column"],
        skips_unlabelled=skips_unlabelled,
    )


def load_task(common: Common, path: Path, chosen: dict[str, Any]) -> "TaskModel":
    """Load a trained task, and say on which model it was trained."""
    from elmo_zh.allocator import keep_few_kernels, keep_freed_memory

    keep_few_kernels()
    keep_freed_memory()
    from elmo_zh.bundle.description import model_line
    from elmo_zh.tasks.task_model import TaskModel

    model = TaskModel.load(path, chosen["model"], chosen["device"] or "auto")
    common.console.note(model_line(model.embedder.bundle))
    return model
