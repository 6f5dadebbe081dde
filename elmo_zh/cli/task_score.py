"""The command that scores a trained task on labelled texts."""

from pathlib import Path
from typing import Any

import click

from elmo_zh.cli.model_options import refuse_settings_of_the_model
from elmo_zh.cli.options import Common, common_options_of_readers, device_option
from elmo_zh.cli.task_options import (
    labelled_options,
    load_task,
    moved_model_option,
    reading_of,
    task_option,
    unlabelled_option,
)
from elmo_zh.invocation import command
from elmo_zh.run.reporter import counted


@click.command()
@click.argument("data", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@task_option
@moved_model_option
@labelled_options
@unlabelled_option
@device_option
@common_options_of_readers
@click.pass_obj
def score(common: Common, /, data: Path, task_path: Path, **chosen: Any) -> None:
    """Score a trained task on labelled texts.

    Use it on texts that the task was not trained on. DATA is read as by task fit. The command prints accuracy and F1
    for classes and tags, F1 for whole spans, and correlation and error for numbers.

    \b
    Example:
      elmo-zh task score more-reviews.csv --task my-classifier
      elmo-zh task score more-names.conll --task my-tagger --json
    """
    config = common.resolve()
    refuse_settings_of_the_model(common, "task score")
    model = load_task(common, task_path, chosen)
    from elmo_zh.tasks.score_task import score_examples

    settings = model.description.settings
    reading = reading_of(settings.kind, config.text.encoding, chosen, regression=settings.regression)
    metric, count, scores = score_examples(model, data, reading, common.console)
    rows = [f"{name} {value:.4f}" for name, value in scores.items() if name != "by_label"]
    lines = [f"{', '.join(rows)} on {counted(count, 'example')}"]
    for label, each in scores.get("by_label", {}).items():
        lines.append(
            f"  {label}: F1 {each['f1']:.4f}, precision {each['precision']:.4f}, recall {each['recall']:.4f}"
            f" ({each['count']:,})"
        )
    lines.append(f"Next: {command('task', 'predict', 'file.txt', '--task', task_path)}")
    common.finish({"data": str(data), "task": str(task_path), "examples": count, "metric": metric, **scores}, *lines)
