"""The command that shows what each layer of a model holds."""

from pathlib import Path
from typing import Any

import click

from elmo_zh.cli.model_options import load_embedder, model_option, model_path, refuse_settings_of_the_model
from elmo_zh.cli.options import Common, common_options, device_option
from elmo_zh.cli.task_options import labelled_options, output_folder_option, reading_of, word2vec_option
from elmo_zh.invocation import command

# What only one of the two probes reads.
_OF_TAGS, _OF_SENSES = ("dev", "test", "limit", "text_columns", "label_column"), ("texts",)


@click.command()
@click.argument("kind", type=click.Choice(("tags", "senses")))
@click.argument("data", type=click.Path(path_type=Path, exists=True))
@model_option
@output_folder_option("PROBE")
@word2vec_option(
    "Model or run whose word2vec vectors are compared with the layers. Default: those of the model, if it has any."
)
@click.option(
    "--text",
    "texts",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="FOLDER",
    help="Folder of the texts that DATA names; only for senses. Default: the folder of DATA.",
)
@click.option(
    "--dev",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="File of development examples; only for tags. Default: a tenth of DATA is set aside.",
)
@click.option(
    "--test",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="File of test examples; only for tags. Default: a tenth of DATA is set aside, but nothing if --dev is given.",
)
@click.option(
    "--limit", type=click.IntRange(1), metavar="N", help="Use at most N of the training examples; only for tags."
)
@click.option(
    "--seed", type=click.IntRange(0, 2**31), default=1, show_default=True, help="Seed of the split and of the training."
)
@labelled_options
@device_option
@common_options
@click.pass_obj
def probe(common: Common, /, kind: str, data: Path, output: Path, **chosen: Any) -> None:
    """Show what each layer of a model holds, and which one to take.

    Use it to choose a layer for --layers. With tags, a linear model predicts the part of speech of each word from one
    layer; DATA is CoNLL-U, or CoNLL with a word and its tag a line, or a folder of such files train.*, dev.* and
    test.*. With senses, each occurrence of a word gets the sense of the most similar other one; DATA is a table like
    data/senses.tsv, or JSON lines with context, target_word, target_position and sense. The table also has word2vec and
    the most frequent tag or sense, to compare with. PROBE is a folder with the table and the figures in JSON.

    \b
    Example:
      elmo-zh task probe tags treebank.conllu --output my-probe
      elmo-zh task probe senses data/senses.tsv --text data/sample --output my-probe
    """
    config = common.resolve()
    refuse_settings_of_the_model(common, "task probe", also="embed")
    wrong = [name for name in (_OF_SENSES if kind == "tags" else _OF_TAGS) if chosen[name]]
    if wrong:
        option = {"texts": "text", "text_columns": "text-column"}.get(wrong[0], wrong[0]).replace("_", "-")
        raise click.UsageError(f"--{option} has no effect on task probe {kind}. Leave it out.")
    if kind == "senses" and data.is_dir():
        raise click.UsageError(f"{data} is a folder, expected a file of marked words.")
    reading = reading_of("tag", config.text.encoding, chosen, regression=False)
    from elmo_zh.tasks.data.datasets import DataFiles
    from elmo_zh.tasks.probe import probe_senses, probe_tags

    unknown = config.embed.unknown_way("backoff")
    embedder = load_embedder(common, model_path(chosen["model"]), config.embed, chosen["device"], unknown=unknown)
    if kind == "tags":
        files = DataFiles(data=data, dev=chosen["dev"], test=chosen["test"], seed=chosen["seed"], limit=chosen["limit"])
        report = probe_tags(
            files,
            reading,
            embedder,
            output,
            word2vec=chosen["word2vec"],
            force=common.force,
            reporter=common.console,
        )
    else:
        report = probe_senses(
            data,
            embedder,
            output,
            texts=chosen["texts"],
            encoding=config.text.encoding,
            word2vec=chosen["word2vec"],
            force=common.force,
            reporter=common.console,
        )
    model = ("--model", chosen["model"]) if chosen["model"] else ()
    common.finish(
        {"output": str(output), **report.to_json()},
        *report.lines(),
        f"Probe: {output}",
        f"Next: {command('embed', 'file.txt', *model, '--layers', str(report.best.layer))}",
    )
