"""The command that shows what each layer of a model has learned."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from elmo_zh.cli.declared import takes
from elmo_zh.cli.model_options import load_embedder
from elmo_zh.cli.options import FOLDER, Common, common_options, reads, shared_options
from elmo_zh.cli.task_options import checked_reading, data_argument, kind_argument, labelled_options
from elmo_zh.config.declare import declare
from elmo_zh.config.task_settings import DataFiles, Reading


@dataclass(frozen=True, kw_only=True)
class ProbeOptions:
    """The option of `task probe` that is for senses only."""

    text: Path | None = declare(
        None,
        "Folder that contains the texts named in DATA; only for senses. Default: the folder of DATA.",
        metavar="FOLDER",
        path={"exists": True, "file_okay": False},
    )


@click.command()
@kind_argument(("tags", "senses"))
@data_argument
@shared_options("model")
@shared_options("output", help="Folder to write.", metavar="PROBE", path=FOLDER, required=True)
@shared_options("word2vec")
@takes(ProbeOptions, "options")
@takes(DataFiles, "files")
@labelled_options(without=("skips_unlabelled",))
@shared_options("device")
@common_options
@reads("embed")
def probe(common: Common, /, kind: str, data: Path, options: ProbeOptions, files: DataFiles, reading: Reading) -> None:
    """Show what each layer has learned, and which layer to use.

    Use it to choose a layer for embed --layers. With tags, a linear model predicts the part of speech of each word from
    one layer at a time; DATA is CoNLL-U, or CoNLL with a word and its tag on each line, or a folder of such files, with
    train, dev and test in their names. With senses, each occurrence of a word gets the sense of the most similar other
    occurrence; DATA is a table like data/senses.tsv, or JSON lines with context, target_word, target_position and
    sense. For comparison, the resulting table also has rows for word2vec, if available, and for the word's most
    frequent tag or sense. PROBE is a folder with the table and the figures in JSON. --dev, --test, --limit,
    --text-column and --label-column apply only to tags; --text applies only to senses.

    \b
    Example:
      elmo-zh task probe tags treebank.conllu --output my-probe
      elmo-zh task probe senses senses.tsv --text my-texts/ --output my-probe
    """
    reading = checked_reading(common, reading, "tag")
    embedder = load_embedder(common)
    from elmo_zh.run.job import run_job
    from elmo_zh.tasks.probe import probe_senses, probe_tags

    others: dict[str, Any] = {"word2vec": common.word2vec, "reporter": common.console}
    if kind == "tags":
        job = probe_tags(replace(files, data=data), reading, embedder, common.written, **others)
    else:
        job = probe_senses(data, embedder, common.written, texts=options.text, encoding=reading.encoding, **others)
    report = run_job(job, force=common.force, reporter=common.console)
    model = ("--model", common.model) if common.model else ()
    common.finish(
        report.to_json(), report.lines(), following=("embed", "file.txt", *model, "--layers", str(report.best_layer))
    )
