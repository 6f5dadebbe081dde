"""The commands of the stages, one for each, and `pipeline`, which runs them all."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from elmo_zh.bundle.layout import BundleForm
from elmo_zh.cli.options import (
    Common,
    common_options,
    corpus_argument,
    device_option,
    engine_options,
    init_option,
    reading_options,
    run_option,
    takes,
)
from elmo_zh.config import Config, config_names
from elmo_zh.invocation import command
from elmo_zh.run.layout import RunDir
from elmo_zh.run.record import StageOutcome, earlier_stages, later_stages, refuse_settings_of
from elmo_zh.training.launch import Launch, read_launch, refuse_launch

_STAGES_WITH_ENGINE = ("segment", "vocab", "encode")


@click.command()
@corpus_argument
@run_option
@reading_options
@engine_options
@common_options
@click.pass_obj
def segment(common: Common, corpus: tuple[str, ...], run_path: Path) -> None:
    """Split raw text into sentences and words.

    Use it as the first stage of a run. CORPUS is files, folders, globs, addresses (https://...) or - for standard
    input. Formats: plain text (one paragraph per line), CSV, TSV, JSON, JSON lines, MediaWiki dumps, wikiextractor,
    HTML, Markdown; packed as .gz, .bz2, .xz, .zst, .zip or .tar. The format and encoding of each file are detected
    (docs/corpora.md).

    Remnants of markup and invisible characters are removed. RUN/corpus_report.md shows what was changed and dropped.

    \b
    Example:
      elmo-zh segment my-texts/ more.txt.xz --run runs/mine
      elmo-zh segment web/ --set text.min_han_share=0.3 --set text.script=simplified --run runs/web
      elmo-zh segment reviews.csv --field title,review --run runs/mine
      elmo-zh segment zhwiki-latest-pages-articles-multistream.xml.bz2 --run runs/wiki
      zcat news.gz | elmo-zh segment - --encoding gb18030 --run runs/mine
      elmo-zh segment done.txt --run runs/mine --set text.segmenter=whitespace
      elmo-zh segment my-texts/ --run runs/mine --engine dask --scheduler tcp://192.168.0.1:8786
    """
    from elmo_zh.stages import segment as segment_stage

    _run_stage(common, run_path, segment_stage.segment, corpus=corpus)


@click.command()
@run_option
@click.option(
    "--init",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="BUNDLE",
    help="Keep all words of this model, and use its settings of section model. Default: no model.",
)
@click.option(
    "--from",
    "words",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Use exactly the words of this file, one per line. Default: the most frequent words of the text.",
)
@engine_options
@common_options
@click.pass_obj
def vocab(common: Common, run_path: Path, init: Path | None, words: Path | None) -> None:
    """Count words and write the vocabulary.

    Use it after segment. It writes RUN/vocab.data, in the order of the words' counts in this run's text. With --init,
    it adds words of the text to those of a model, up to vocab.size words in total; if the model's words fill that, up
    to vocab.size further words.

    \b
    Example:
      elmo-zh vocab --run runs/mine --set vocab.size=50000 --set vocab.min_count=3
      elmo-zh vocab --run runs/law --init runs/news/model
      elmo-zh vocab --run runs/mine --from words.txt
    """
    from elmo_zh.stages import vocab as vocab_stage
    from elmo_zh.stages.init_bundle import resolve_init

    named = config_names(None, common.assignments)
    if init and (words or "vocab.words" in named):
        other = "--from" if words else "vocab.words"
        raise click.UsageError(f"--init and {other} both say which words the vocabulary has. Give only one of them.")

    def change(config: Config) -> Config:
        if init is None and words is None:
            return config
        names = resolve_init(init, config.vocab.init) if init else "", str(words.absolute()) if words else ""
        return replace(config, vocab=replace(config.vocab, init=names[0], words=names[1]))

    _run_stage(common, run_path, vocab_stage.vocab, change=change, named=named)


@click.command()
@run_option
@click.option(
    "--from",
    "vectors",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Use the vectors of this file, in word2vec's text format. Default: train them.",
)
@common_options
@click.pass_obj
def word2vec(common: Common, run_path: Path, vectors: Path | None) -> None:
    """Pretrain the initial token embeddings.

    Use it after vocab, to start training from word2vec vectors of this run's text or from vectors that you have.

    \b
    Example:
      elmo-zh word2vec --run runs/mine --set word2vec.algorithm=skipgram
      elmo-zh word2vec --run runs/mine --from vectors.txt
    """
    from elmo_zh.stages import word2vec as word2vec_stage

    def change(config: Config) -> Config:
        if vectors is None:
            return config
        return replace(config, word2vec=replace(config.word2vec, vectors=str(vectors.absolute())))

    _run_stage(common, run_path, word2vec_stage.word2vec, change=change)


@click.command()
@run_option
@engine_options
@common_options
@click.pass_obj
def encode(common: Common, run_path: Path) -> None:
    """Convert segmented text to the token ids that training reads.

    Use it after vocab. It writes the id store, RUN/ids.

    \b
    Example:
      elmo-zh encode --run runs/mine
      elmo-zh encode --run runs/mine --engine dask --scheduler tcp://192.168.0.1:8786
    """
    from elmo_zh.stages import encode as encode_stage

    _run_stage(common, run_path, encode_stage.encode)


@click.command()
@run_option
@init_option
@device_option
@common_options
@click.pass_obj
def train(common: Common, run_path: Path, init: Path | None, device: str | None) -> None:
    """Train the language model, or continue training it.

    Use it after encode, and again to continue an interrupted training or to train longer. With --init, the weights
    start as those of another model: each word keeps its row, and the row of a new word is computed from those of the
    known words in it. Once training has begun, that model is no longer needed.

    Several processes, on one machine or more, share each step's train.batch_size streams if torchrun starts them
    (the -- keeps torchrun from reading --run); see docs/distributed.md.

    \b
    Example:
      elmo-zh train --run runs/mine
      elmo-zh train --run runs/mine --set train.max_tokens=10000000
      elmo-zh train --run runs/law --init runs/news/model
      torchrun --nproc-per-node 4 -m -- elmo_zh train --run runs/mine
    """
    from elmo_zh.stages import train as train_stage
    from elmo_zh.stages.init_bundle import resolve_init

    launch = read_launch(os.environ)

    def change(config: Config) -> Config:
        if init is None:
            return config
        return replace(config, train=replace(config.train, init=resolve_init(init, config.train.init)))

    if launch.size == 1:
        _run_stage(common, run_path, train_stage.train, change=change, device=device)
    else:
        _train_together(common, run_path, change, device, launch)


def _train_together(
    common: Common, run_path: Path, change: Callable[[Config], Config], device: str | None, launch: Launch
) -> None:
    """Train as one of several processes: rank 0 runs the stage, and the others follow it."""
    from elmo_zh.stages import train as train_stage
    from elmo_zh.stages.train import train_on_other_rank
    from elmo_zh.training.distributed import joined_process_group

    with joined_process_group(launch) as group:
        if group.is_rank_0:
            with group.release_waiting_ranks():
                _run_stage(common, run_path, train_stage.train, change=change, device=device, group=group)
        else:
            train_on_other_rank(RunDir(run_path), group)


@click.command()
@run_option
@click.option(
    "--checkpoint",
    default="best",
    show_default=True,
    metavar="best|last|STEP",
    help="Checkpoint to export: best (lowest held-out perplexity), last, or a step number.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Folder to write. Default: RUN/model.",
)
@takes(BundleForm, "form")
@click.option(
    "--no-word2vec",
    is_flag=True,
    help="Leave out the run's word2vec vectors, which a bundle otherwise holds in float16 for models of tasks.",
)
@common_options
@click.pass_obj
def export(
    common: Common, run_path: Path, checkpoint: str, output: Path | None, form: BundleForm, no_word2vec: bool
) -> None:
    """Export a checkpoint as a model bundle.

    Use it after train, or after interrupting train, to try the model. A bundle is a folder of weights.hdf5,
    options.json, vocab.data and more, which embed reads. Other layouts are for other programs: simple_elmo
    (options.json, model.hdf5, vocab.txt) and safetensors (options.json, model.safetensors with the published names,
    vocab.txt).

    \b
    Example:
      elmo-zh export --run runs/mine
      elmo-zh export --run runs/mine --checkpoint last --output my-model
      elmo-zh export --run runs/mine --dtype float16 --output my-small-model
      elmo-zh export --run runs/mine --layout simple_elmo --output for-simple-elmo
    """
    from elmo_zh.stages import export as export_stage

    given = [f"--layout {form.layout}"] if form.layout != "bundle" else []
    given += [f"--dtype {form.dtype}"] if form.dtype != "float32" else []
    given += ["--no-word2vec"] if no_word2vec else []
    if output is None and given:
        raise click.UsageError(f"{given[0]} needs --output DIR, because RUN/model is for the float32 bundle.")
    form = replace(form, with_word2vec=not no_word2vec)
    _run_stage(common, run_path, export_stage.export, checkpoint=checkpoint, output=output, form=form)


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
    from elmo_zh.stages.init_bundle import with_init

    refuse_launch(os.environ)
    run = RunDir(run_path)
    named = config_names(None, common.assignments)
    if init and "vocab.words" in named:
        raise click.UsageError("--init and vocab.words both say which words the vocabulary has. Give only one of them.")
    config = with_init(common.resolve(run), init)
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


def _run_stage(
    common: Common,
    run_path: Path,
    stage: Callable[..., StageOutcome],
    *,
    change: Callable[[Config], Config] = lambda config: config,
    **arguments: Any,
) -> None:
    name = stage.__name__
    run = RunDir(run_path)
    before, config = run.load_config(None, []), change(common.resolve(run))
    refuse_settings_of(earlier_stages(name), name, run, before, config)
    if name in _STAGES_WITH_ENGINE:
        arguments["engine"] = common.choose_engine(config)
    with run.locked(create=name == "segment"), run.config_kept_on_error():
        outcome = stage(run, config, **arguments, force=common.force, reporter=common.console)
        if outcome.skipped:
            refuse_settings_of(later_stages(name), name, run, before, config)
    result = {"stage": name, "run": str(run_path), "skipped": outcome.skipped, **outcome.counts}
    output = arguments.get("output")
    if output is None:
        common.finish(result, after_stage(name, run, run.load_config(None, [])))
    else:
        common.finish(result, *([embed_with(output)] if arguments["form"].layout == "bundle" else ()))


def after_stage(stage: str, run: RunDir, config: Config) -> str:
    """Return the line that names the command after a stage; training from another model skips word2vec."""
    if stage == "export":
        return embed_with(run.model)
    init = config.train.init or config.vocab.init
    needs_vectors = config.word2vec.enabled and not init
    following = {
        "segment": "vocab",
        "vocab": "word2vec" if needs_vectors else "encode",
        "word2vec": "encode",
        "encode": "word2vec" if needs_vectors and not run.word2vec.exists() else "train",
        "train": "export",
    }[stage]
    own_init = ("--init", init) if following == "train" and init and not config.train.init else ()
    return f"Next: {command(following, '--run', run.path, *own_init)}"


def embed_with(model: Path, *, segmented: bool = False) -> str:
    """Return the line that names the command to embed a file with a model."""
    return f"Next: {command('embed', 'file.txt', '--model', model, *(['--segmented'] if segmented else []))}"
