"""The commands that use a trained task: label texts with it, or score it on labelled texts."""

import sys
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import replace
from itertools import chain, tee
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from elmo_zh.cli.declared import takes
from elmo_zh.cli.options import (
    Common,
    common_options,
    common_options_of_readers,
    input_argument,
    reads,
    refuse_together,
    shared_options,
)
from elmo_zh.cli.task_options import checked_reading, labelled_options, load_task, moved_model_option, task_options
from elmo_zh.config.task_settings import LABELLED_FORMATS, PREDICTION_FORMATS, PredictionForm, Reading
from elmo_zh.errors import OptionError
from elmo_zh.language import _
from elmo_zh.run.files import atomic_path
from elmo_zh.run.reporter import counted, joined
from elmo_zh.run.tables import chosen_format, write_rows

if TYPE_CHECKING:
    from elmo_zh.tasks.task_model import TaskModel


@click.command()
@input_argument
@task_options
@moved_model_option
@shared_options("output")
@takes(PredictionForm, "form")
@takes(Reading, "reading", without=("label_column", "format", "skips_unlabelled"))
@shared_options("text.format", "text.encoding", "device")
@common_options
@reads("text")
def predict(common: Common, /, files: tuple[str, ...], form: PredictionForm, reading: Reading) -> None:
    """Label texts with a trained task.

    Texts are read and labelled piece by piece, so files may be large. FILE is a text in any format that segment reads,
    a folder, or - for standard input; each line is one text. For pairs, FILE is a table or JSON with two texts per
    record.

    \b
    Example:
      elmo-zh task predict file.txt --task my-classifier --output labels.tsv
      elmo-zh task predict file.txt --task my-tagger --output names.jsonl
      elmo-zh task predict file.txt --task my-tagger --format conll
    """
    output = common.output
    if common.as_json and output is None:
        raise OptionError.needs("--json", "--output FILE")
    task = load_task(common)
    form = replace(form, format=chosen_format(form.format, output, PREDICTION_FORMATS))
    kind = task.description.settings.kind
    if kind != "tag":
        refuse_together(kind, {"--format conll": form.format == "conll"})
    reading = checked_reading(common, reading, kind)
    texts = _iter_texts(common, task, files, reading)
    if output is None:
        _write_predictions(common, task, texts, form, sys.stdout.buffer)
    else:
        with common.claimed(), atomic_path(output) as unfinished, unfinished.open("wb") as file:
            number = _write_predictions(common, task, texts, form, file)
        common.finish({"texts": number})


def _write_predictions(
    common: Common, task: "TaskModel", texts: Generator[tuple[str, ...]], form: PredictionForm, file: BinaryIO
) -> int:
    from elmo_zh.tasks.scores import columns_of, conll_of, rows_of

    settings, kind, number = task.description.settings, str(form.format), 0
    is_pair = settings.kind == "pairs"
    columns = columns_of(of_tags=settings.kind == "tag", of_numbers=settings.regression, num_texts=1 + is_pair)
    with closing(texts), common.console.progress("predict", unit="texts") as progress:
        given, again = tee(texts)
        predictions = task.iter_predict(given if is_pair else (text for [text] in given))

        def labelled() -> Iterator[tuple[int, Any, Any]]:
            nonlocal number
            for row in zip(again, predictions, strict=True):
                yield number, *row
                number += 1
                progress.update(1)

        if kind == "conll":
            blocks = (conll_of(prediction) for _number, _texts, prediction in labelled())
            file.writelines(block.encode("utf-8", "surrogatepass") for block in blocks)
        else:
            rows = chain.from_iterable(rows_of(kind, *row) for row in labelled())
            write_rows(rows, file, kind, columns, shown=lambda value: value)
    return number


def _iter_texts(
    common: Common, task: "TaskModel", files: tuple[str, ...], reading: Reading
) -> Generator[tuple[str, ...]]:
    from elmo_zh.corpus.input_texts import input_text, opened_inputs
    from elmo_zh.corpus.read_labelled import iter_pairs, with_field_of_task

    config, columns = common.config.text, task.description.columns
    config = replace(config, field=",".join(reading.text_columns) or config.field)
    kind = config.format if config.format in LABELLED_FORMATS else "auto"
    reading = replace(reading, format=kind, task_columns=columns)
    with opened_inputs(files, common.console) as opened:
        for source in opened.sources:
            if reading.num_texts == 2:
                yield from input_text(source, config).if_text(iter_pairs(source, reading), common.console)
            else:
                text = input_text(source, with_field_of_task(source, config, next(iter(columns), "")))
                yield from ((line,) for line in text.lines_if_text(common.console))


@click.command()
@click.argument("data", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@task_options
@moved_model_option
@labelled_options()
@shared_options("device")
@common_options_of_readers
@reads("text")
def score(common: Common, /, data: Path, reading: Reading) -> None:
    """Score a trained task on labelled texts.

    Use it on texts that the task was not trained on. DATA is one file in a format that task fit reads. The command
    prints accuracy and F1 for classes and tags; F1, precision and recall for spans; correlation and error for numbers.

    \b
    Example:
      elmo-zh task score more-reviews.csv --task my-classifier
      elmo-zh task score more-names.conll --task my-tagger --json
    """
    task = load_task(common)
    settings = task.description.settings
    reading = checked_reading(common, reading, settings.kind, regression=settings.regression)
    metric, count, scores = task.score(data, reading, common.console)
    rows = [f"{name} {value:.4f}" for name, value in scores.items() if name != "by_label"]
    scored = counted(count, "{number} example", "{number} examples")
    lines = [_("{name}: {value}").format(name=scored, value=joined(rows))]
    for label, of_label in scores.get("by_label", {}).items():
        f1, precision, recall = (f"{of_label[name]:.4f}" for name in ("f1", "precision", "recall"))
        lines.append(
            _("  {label}: F1 {f1}, precision {precision}, recall {recall} ({number} in the data)").format(
                label=label, f1=f1, precision=precision, recall=recall, number=f"{of_label['count']:,}"
            )
        )
    common.finish(
        {"data": data, "task": common.task, "examples": count, "metric": metric, **scores},
        lines,
        following=("task", "predict", "file.txt", "--task", str(common.task)),
    )
