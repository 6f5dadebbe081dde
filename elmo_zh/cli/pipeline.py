"""The command `pipeline`: all stages, from raw text to a model."""

import os
from dataclasses import replace
from pathlib import Path

import click

from elmo_zh.cli.options import (
    Common,
    common_options,
    corpus_argument,
    engine_options,
    init_option,
    reading_options,
    run_option,
)
from elmo_zh.config import config_names
from elmo_zh.invocation import command
from elmo_zh.run.layout import RunDir
from elmo_zh.training.launch import refuse_launch


@click.command()
@corpus_argument
@run_option
@init_option
@reading_options
@engine_options
@common_options
@click.pass_obj
def pipeline(common: Common, corpus: tuple[str, ...], run_path: Path, init: Path | None) -> None:
    """Run all stages, from raw text to a model bundle.

    Use it to make a model with one command, and again to resume after an interruption. CORPUS is text in any form that
    the command segment reads. With --init, training starts from another model, whose words and settings of section
    model are kept; a new run also prepares its text in the same way as that model's text.

    \b
    Example:
      elmo-zh pipeline my-texts/ --run runs/mine
      elmo-zh pipeline my-texts/ --run runs/mine --config configs/base.toml --set train.epochs=5
      elmo-zh pipeline news.jsonl.gz --field data.text --run runs/news
      elmo-zh pipeline statutes.txt --run runs/law --init runs/news/model
    """
    from elmo_zh.stages import pipeline as pipeline_stage
    from elmo_zh.stages.init_bundle import resolve_init

    refuse_launch(os.environ)
    run = RunDir(run_path)
    config = common.resolve(run)
    named = config_names(None, common.assignments)
    if init and "vocab.words" in named:
        raise click.UsageError("--init and vocab.words both say which words the vocabulary has. Give only one of them.")
    if init:
        path = resolve_init(init, config.train.init)
        vocab_section = replace(config.vocab, init=path, words="")
        config = replace(config, vocab=vocab_section, train=replace(config.train, init=path))
    with run.locked(create=True), run.config_kept_on_error():
        engine = common.choose_engine(config)
        pipeline_stage.pipeline(
            run, config, corpus, named=named, engine=engine, force=common.force, reporter=common.console
        )
    pipeline_stage.link_latest(run)
    common.finish(
        {"run": str(run_path), "model": str(run.model)},
        f"The model is in {run.model}. Next, look at words in their sentences, in the browser:",
        f"  {command('explore', run.path)}",
        "Or write the vectors of a text file:",
        f"  {command('embed', 'file.txt', '--model', run.model)}",
    )
