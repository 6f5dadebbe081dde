"""The command that labels texts with a trained task."""

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from elmo_zh.cli.model_options import refuse_settings_of_the_model
from elmo_zh.cli.options import Common, common_options, device_option, input_argument, input_options
from elmo_zh.cli.task_options import LABELLED_FORMATS, load_task, moved_model_option, task_option
from elmo_zh.run.reporter import counted

if TYPE_CHECKING:
    from elmo_zh.tasks.task_model import TaskModel

# Also in elmo_zh.tasks, which is imported only when a command works; a test compares them.
PREDICTION_FORMATS = ("jsonl", "tsv", "conll")
SCHEMES = ("BIO", "BMES", "BIOES")
# Lines that show whether a text is a table.
_FIRST_LINES = 5


@click.command()
@input_argument
@task_option
@moved_model_option
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="File to write. Default: standard output.",
)
@click.option(
    "--format",
    "kind",
    type=click.Choice(PREDICTION_FORMATS),
    default="jsonl",
    show_default=True,
    help="Write JSON lines, a table of labels or spans (tsv), or a line for each unit with its tag (conll).",
)
@click.option(
    "--scheme",
    type=click.Choice(SCHEMES),
    help="Write the tags of conll in this scheme. Default: that of the training data.",
)
@click.option(
    "--probabilities",
    is_flag=True,
    help="With tags, also write the probability of each span, or of each unit's tag. Classes always come with theirs.",
)
@click.option(
    "--text-column",
    "text_columns",
    multiple=True,
    metavar="NAME",
    help="The column of each text of a pair, by its name or its number from 1; give the option twice. Without it, the"
    " columns are chosen by their names and their content.",
)
@input_options
@device_option
@common_options
@click.pass_obj
def predict(common: Common, /, files: tuple[str, ...], task_path: Path, **chosen: Any) -> None:
    """Label texts with a trained task.

    Use it on text of any size: it is read and labelled piece by piece. FILE is a text in any form that segment reads, a
    folder, or - for standard input; a line is one text. For pairs it is a table or JSON lines with two texts each.

    \b
    Example:
      elmo-zh task predict file.txt --task my-classifier --format tsv
      elmo-zh task predict file.txt --task my-tagger --output names.jsonl
      elmo-zh task predict file.txt --task my-tagger --format conll --scheme BMES
    """
    config = common.resolve()
    refuse_settings_of_the_model(common, "task predict")
    if common.as_json and chosen["output"] is None:
        raise click.UsageError("With --json stdout holds the result. Give the predictions a file: --output FILE")
    model = load_task(common, task_path, chosen)
    _check_form(model, chosen)
    from elmo_zh.run.files import atomic_path
    from elmo_zh.run.resumable import claimed_output

    output: Path | None = chosen["output"]
    with ExitStack() as stack:
        if output is None:
            file: BinaryIO = sys.stdout.buffer
        else:
            stack.enter_context(
                claimed_output(output, [task_path, *map(Path, files)], Path.is_file, force=common.force)
            )
            file = stack.enter_context(stack.enter_context(atomic_path(output)).open("wb"))
        count = _write_predictions(common, model, files, config, chosen, file)
    if output is None:
        common.console.note(f"{counted(count, 'text')} labelled")
    else:
        common.finish({"output": str(output), "texts": count}, f"{counted(count, 'text')} labelled: {output}")


def _check_form(model: "TaskModel", chosen: dict[str, Any]) -> None:
    kind = model.description.settings.kind
    if chosen["kind"] == "conll" and kind != "tag":
        raise click.UsageError("--format conll is for tags, and this task has none. Give jsonl or tsv.")
    if chosen["scheme"] and (chosen["kind"] != "conll" or not model.description.scheme):
        raise click.UsageError("--scheme is for --format conll of a task whose tags mark spans. Leave it out.")
    if chosen["probabilities"] and kind != "tag":
        raise click.UsageError("--probabilities is for tags: classes always have theirs. Leave it out.")
    columns = chosen["text_columns"]
    if columns and kind != "pairs":
        raise click.UsageError("--text-column is for pairs. Name the fields of other texts with --field.")
    if columns and len(columns) != 2:
        raise click.UsageError(f"--text-column is needed twice, found {len(columns)}.")


def _write_predictions(
    common: Common, model: "TaskModel", files: tuple[str, ...], config: Any, chosen: dict[str, Any], file: BinaryIO
) -> int:
    """Write the predictions of all texts, the header with the first; return their number."""
    from itertools import tee

    from elmo_zh.tasks.predict_file import header_of, rows_of

    settings = model.description.settings
    is_pair = settings.kind == "pairs"
    header = header_of(
        chosen["kind"],
        of_tags=settings.kind == "tag",
        of_numbers=settings.regression,
        num_texts=1 + is_pair,
        with_probabilities=chosen["probabilities"],
    )
    count = 0
    with ExitStack() as stack:
        texts, again = tee(_iter_texts(common, files, config, chosen, stack, is_pair=is_pair))
        progress = stack.enter_context(common.console.progress("predict", unit="texts"))
        given_texts = texts if is_pair else (each[0] for each in texts)
        predictions = model.iter_predict(given_texts, probabilities=chosen["probabilities"])
        for number, (given, prediction) in enumerate(zip(again, predictions, strict=True)):
            row = rows_of(chosen["kind"], number, given, prediction, chosen["scheme"] or "")
            file.write((header + row).encode("utf-8", "surrogatepass"))
            header = ""
            progress.update(1)
            count += 1
    file.write(header.encode())  # of no texts
    return count


def _iter_texts(
    common: Common, files: tuple[str, ...], config: Any, chosen: dict[str, Any], stack: ExitStack, *, is_pair: bool
) -> Any:
    """Yield the text or the two texts of each example."""
    from itertools import chain, islice

    from elmo_zh.corpus.input_texts import input_text, opened_inputs
    from elmo_zh.tasks.data.conll import has_columns
    from elmo_zh.tasks.data.read_labelled import Reading, iter_pairs

    kind = config.text.format if config.text.format in LABELLED_FORMATS else "auto"
    reading = Reading(kind="pairs", format=kind, encoding=config.text.encoding, text_columns=chosen["text_columns"])
    for source in stack.enter_context(opened_inputs(files, common.console)).sources:
        if is_pair:
            yield from iter_pairs(source, reading)
            continue
        lines = input_text(source, config.text).lines_if_text(common.console)
        first = list(islice(lines, _FIRST_LINES))
        columns = next(filter(has_columns, first), None)
        if columns:
            common.console.warn(
                f"{source.name} has columns ({columns[:40]!r}), but each line is read whole as a text. If a column is"
                " the text, name it: --input-format tsv --field 1. For labelled examples use task score."
            )
        yield from ((line,) for line in chain(first, lines))
