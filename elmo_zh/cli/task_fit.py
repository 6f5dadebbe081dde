"""The command that trains a model of a labelled task."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from elmo_zh.cli.model_options import load_embedder, model_option, model_path, refuse_settings_of_the_model
from elmo_zh.cli.options import Common, common_options, device_option
from elmo_zh.cli.task_options import labelled_options, reading_of
from elmo_zh.invocation import command
from elmo_zh.run.reporter import counted

if TYPE_CHECKING:
    from elmo_zh.tasks.prepared_task import FitJob, FitReport

# Also in elmo_zh.tasks, which is imported only when a command works; a test compares them.
KINDS = ("classify", "tag", "pairs")
INPUTS = ("word2vec", "elmo", "characters")


@click.command()
@click.argument("kind", type=click.Choice(KINDS))
@click.argument("data", type=click.Path(path_type=Path, exists=True))
@model_option
@click.option(
    "--output", type=click.Path(path_type=Path, file_okay=False), required=True, metavar="TASK", help="Folder to write."
)
@click.option(
    "--dev",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Development examples, which decide when to stop. Default: a tenth of DATA.",
)
@click.option(
    "--test",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Test examples, scored at the end. Default: a tenth of DATA, but none if --dev is given.",
)
@labelled_options
@click.option("--regression", is_flag=True, help="Labels are numbers.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Use N of the training examples at most.")
@click.option(
    "--inputs",
    metavar="NAME,...",
    help=f"What the network reads of each unit: some of {','.join(INPUTS)}. Default: word2vec,elmo; with characters"
    " where these are tagged.",
)
@click.option(
    "--elmo-at",
    type=click.Choice(("input", "output", "both")),
    default="input",
    show_default=True,
    help="Where ELMo goes: [x; ELMo] before the network, [h; ELMo] after it, or both.",
)
@click.option(
    "--head",
    type=click.Choice(("bilstm", "linear")),
    default="bilstm",
    show_default=True,
    help="Network of classify: a BiLSTM, or a linear model on the mean of the vectors.",
)
@click.option("--hidden", type=click.IntRange(1, 4096), default=200, show_default=True, help="Size of the LSTMs.")
@click.option("--epochs", type=click.IntRange(1), default=30, show_default=True, help="Epochs at most.")
@click.option(
    "--patience",
    type=click.IntRange(1),
    default=5,
    show_default=True,
    help="Stop after so many epochs without a better score on the development examples.",
)
@click.option("--batch-size", type=click.IntRange(1), default=32, show_default=True, help="Texts in each step.")
@click.option(
    "--learning-rate",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.001,
    show_default=True,
    help="Learning rate of Adam; the weights of ELMo's layers have their own.",
)
@click.option("--seed", type=click.IntRange(0, 2**31), default=1, show_default=True, help="Seed of split and training.")
@click.option(
    "--seeds",
    "num_seeds",
    type=click.IntRange(1, 100),
    default=1,
    show_default=True,
    metavar="N",
    help="Train N times, from consecutive seeds, and keep the best on the development examples.",
)
@device_option
@common_options
@click.pass_obj
def fit(common: Common, /, kind: str, data: Path, output: Path, **chosen: Any) -> None:
    """Train a classifier, a tagger or a model of pairs.

    Use it on labelled texts. KIND is classify, tag or pairs. DATA is a file, or a folder of files train.*, dev.* and
    test.*: CSV, TSV or JSON lines for classify and pairs; CoNLL (BIO, BMES, BIOES, or a tag for each unit) or JSON
    lines with spans of characters for tag. The vectors of the model are computed once. TASK gets the network, its
    scores, metrics.jsonl and pictures; an interrupted command resumes. docs/tasks.md describes data, networks and
    files.

    \b
    Example:
      elmo-zh task fit classify reviews.csv --output my-classifier
      elmo-zh task fit tag names/ --model runs/mine/model --output my-tagger --seeds 3
      elmo-zh task fit pairs questions.csv --inputs word2vec --output without-elmo
    """
    config = common.resolve()
    refuse_settings_of_the_model(common, "task fit", also="embed")
    job = _job(kind, data, config.text.encoding, chosen)
    from elmo_zh.tasks.fit import fit_task

    embedder = load_embedder(common, model_path(chosen["model"]), config.embed, chosen["device"])
    report = fit_task(job, embedder, output, force=common.force, reporter=common.console)
    common.finish(
        {
            "output": str(report.output),
            "metric": report.metric,
            "scores": report.description.scores,
            "layer_weights": report.description.layer_weights,
            "inputs": report.description.settings.inputs,
            "examples": {part: report.description.training[f"{part}_examples"] for part in ("train", "dev", "test")},
        },
        *_described(report),
    )


def _job(kind: str, data: Path, encoding: str, chosen: dict[str, Any]) -> "FitJob":
    from elmo_zh.tasks.data.datasets import DataFiles
    from elmo_zh.tasks.networks.settings import HeadSettings
    from elmo_zh.tasks.prepared_task import FitJob
    from elmo_zh.tasks.train_head import TrainSettings

    inputs = tuple(name.strip() for name in (chosen["inputs"] or "").split(",") if name.strip())
    wrong = [name for name in inputs if name not in INPUTS]
    if wrong or len(set(inputs)) != len(inputs):
        raise click.UsageError(f"--inputs {chosen['inputs']}: expected some of {','.join(INPUTS)}, each once.")
    if chosen["regression"] and kind == "tag":
        raise click.UsageError("--regression is for classify and pairs: tags are no numbers. Leave it out.")
    if chosen["head"] != "bilstm" and kind != "classify":
        raise click.UsageError(f"--head {chosen['head']} is for classify. Leave it out.")
    return FitJob(
        files=DataFiles(data=data, dev=chosen["dev"], test=chosen["test"], seed=chosen["seed"], limit=chosen["limit"]),
        reading=reading_of(kind, encoding, chosen, regression=chosen["regression"]),
        settings=HeadSettings(
            kind=kind,
            head=chosen["head"],
            inputs=tuple(name for name in INPUTS if name in inputs),
            elmo_at=chosen["elmo_at"],
            regression=chosen["regression"],
            hidden_dim=chosen["hidden"],
        ),
        training=TrainSettings(
            epochs=chosen["epochs"],
            patience=chosen["patience"],
            batch_size=chosen["batch_size"],
            learning_rate=chosen["learning_rate"],
        ),
        num_seeds=chosen["num_seeds"],
    )


def _described(report: "FitReport") -> list[str]:
    scores, metric = report.description.scores, report.metric
    lines = []
    for part in ("dev", "test"):
        if part in scores:
            by_seed = [each[part] for each in scores["seeds"].values()]
            shown = f" (seeds: {', '.join(f'{value:.4f}' for value in by_seed)})" if len(by_seed) > 1 else ""
            examples = counted(report.description.training[f"{part}_examples"], f"{part} example")
            lines.append(f"{metric} {scores[part][metric]:.4f} on {examples}{shown}")
    for place, weights in report.description.layer_weights.items():
        lines.append(f"Weights of ELMo's layers at the {place}: {', '.join(f'{weight:.3f}' for weight in weights)}")
    lines.append(f"Trained task: {report.output}")
    lines.append(f"Next: {command('task', 'predict', 'file.txt', '--task', report.output)}")
    return lines
