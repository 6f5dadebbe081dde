"""Options of the commands that train networks of labelled tasks, and the training that they ask for."""

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from elmo_zh.cli.options import Common, with_options
from elmo_zh.cli.task_options import labelled_options, reading_of, unlabelled_option

if TYPE_CHECKING:
    from elmo_zh.tasks.prepared_task import FitJob

# Also in elmo_zh.tasks, which is imported only when a command works; a test compares them.
KINDS = ("classify", "tag", "pairs")
INPUTS = ("word2vec", "elmo", "characters")

_FILES = [
    click.option(
        "--dev",
        type=click.Path(path_type=Path, exists=True, dir_okay=False),
        metavar="FILE",
        help="File of development examples, which decide when to stop. Default: a tenth of DATA is set aside.",
    ),
    click.option(
        "--test",
        type=click.Path(path_type=Path, exists=True, dir_okay=False),
        metavar="FILE",
        help="File of test examples, which are scored at the end. Default: a tenth of DATA is set aside, but nothing if"
        " --dev is given.",
    ),
]
_EXAMPLES = [
    click.option("--regression", is_flag=True, help="Predict numbers; the labels must be numbers."),
    click.option("--limit", type=click.IntRange(1), metavar="N", help="Use at most N of the training examples."),
]
_TRAINING = [
    click.option(
        "--head",
        type=click.Choice(("bilstm", "linear")),
        default="bilstm",
        show_default=True,
        help="Network for classify: a BiLSTM, or a linear model on the mean of the vectors.",
    ),
    click.option(
        "--encoder",
        type=click.Choice(("single", "merged")),
        default="single",
        show_default=True,
        help="LSTMs that read the inputs: a single BiLSTM; or merged, two BiLSTMs, of which the second reads the input"
        " plus the output of the first.",
    ),
    click.option(
        "--elmo-at",
        type=click.Choice(("input", "output", "both")),
        default="input",
        show_default=True,
        help="Where ELMo goes: [x; ELMo] before the network, [h; ELMo] after it, or both.",
    ),
    click.option(
        "--metric",
        type=click.Choice(("accuracy", "macro_f1")),
        default="accuracy",
        show_default=True,
        help="Score of classes that decides when to stop and is compared: accuracy, or macro_f1, the mean F1 of the"
        " classes, for labels where one class is far more frequent.",
    ),
    click.option(
        "--hidden",
        type=click.IntRange(1, 4096),
        default=200,
        show_default=True,
        help="Cells of each direction of the LSTMs.",
    ),
    click.option("--epochs", type=click.IntRange(1), default=30, show_default=True, help="Largest number of epochs."),
    click.option(
        "--patience",
        type=click.IntRange(1),
        default=5,
        show_default=True,
        help="Stop after this many epochs without a better score on the development examples.",
    ),
    click.option(
        "--batch-size",
        type=click.IntRange(1),
        default=32,
        show_default=True,
        help="Texts, or pairs of texts, in each step.",
    ),
    click.option(
        "--learning-rate",
        type=click.FloatRange(0, 1, min_open=True),
        default=0.001,
        show_default=True,
        help="Learning rate of Adam for the network. The weights of ELMo's layers have a rate of their own.",
    ),
    click.option(
        "--seed",
        type=click.IntRange(0, 2**31),
        default=1,
        show_default=True,
        help="Seed of the split and of the training.",
    ),
]


def data_options(function: Any) -> Any:
    """Add the options for labelled data: its files, how they are read, and how much of them is used."""
    return with_options(labelled_options(unlabelled_option(with_options(function, _EXAMPLES))), _FILES)


def training_options(function: Any) -> Any:
    """Add the options for the network and its training."""
    return with_options(function, _TRAINING)


def typed_options(common: Common, context: click.Context, *, without: Collection[str]) -> list[str]:
    """Return the options that the user typed, as words for another command on the same data.

    Args:
        common: The common options; --force, --quiet and --json are left out.
        context: That of the running command.
        without: Names of parameters to leave out.
    """
    words: list[str] = []
    for option in context.command.params:
        name = option.name or ""
        if not isinstance(option, click.Option) or name in without or name not in context.params:
            continue
        if context.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        value = context.params[name]
        if option.is_flag:
            words.append(option.opts[0])
        else:
            words += [word for each in (value if option.multiple else [value]) for word in (option.opts[0], str(each))]
    # The only setting that an option of labelled data sets is the encoding.
    words += [word for each in common.reading for word in ("--encoding", each.partition("=")[2])]
    words += ["--config", str(common.config_path)] if common.config_path else []
    return words + [word for each in common.assignments for word in ("--set", each)]


def job_of(kind: str, data: Path, encoding: str, chosen: dict[str, Any]) -> "FitJob":
    """Return the training that options ask for; raise UsageError for options that do not go together."""
    from elmo_zh.tasks.data.datasets import DataFiles
    from elmo_zh.tasks.networks.settings import HeadSettings
    from elmo_zh.tasks.prepared_task import FitJob
    from elmo_zh.tasks.train_head import BILM_LEARNING_RATE, TrainSettings

    inputs = tuple(name.strip() for name in (chosen.get("inputs") or "").split(",") if name.strip())
    wrong = [name for name in inputs if name not in INPUTS]
    if wrong or len(set(inputs)) != len(inputs):
        raise click.UsageError(f"--inputs {chosen['inputs']}: expected some of {','.join(INPUTS)}, each once.")
    if chosen["regression"] and kind == "tag":
        raise click.UsageError("--regression is for classify and pairs: tags are no numbers. Leave it out.")
    if chosen["head"] != "bilstm" and kind != "classify":
        raise click.UsageError(f"--head {chosen['head']} is for classify. Leave it out.")
    if chosen["metric"] != "accuracy" and (kind == "tag" or chosen["regression"]):
        raise click.UsageError(f"--metric {chosen['metric']} is for classes, not for tags or numbers. Leave it out.")
    return FitJob(
        files=DataFiles(data=data, dev=chosen["dev"], test=chosen["test"], seed=chosen["seed"], limit=chosen["limit"]),
        reading=reading_of(kind, encoding, chosen, regression=chosen["regression"]),
        settings=HeadSettings(
            kind=kind,
            head=chosen["head"],
            inputs=tuple(name for name in INPUTS if name in inputs),
            encoder=chosen["encoder"],
            elmo_at=chosen["elmo_at"],
            regression=chosen["regression"],
            metric=chosen["metric"],
            hidden_dim=chosen["hidden"],
        ),
        training=TrainSettings(
            epochs=chosen["epochs"],
            patience=chosen["patience"],
            batch_size=chosen["batch_size"],
            learning_rate=chosen["learning_rate"],
            bilm_learning_rate=(chosen["fine_tune_rate"] or BILM_LEARNING_RATE) if chosen.get("fine_tune") else None,
        ),
        num_seeds=chosen["num_seeds"],
    )
