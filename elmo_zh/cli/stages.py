"""The commands that each run one stage; `pipeline`, which runs them all; and `plan`, which estimates their cost."""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from elmo_zh.bundle import BundleForm
from elmo_zh.bundle.find_bundle import find_bundle
from elmo_zh.cli.declared import Function, takes
from elmo_zh.cli.options import ENGINE, FOLDER, Common, common_options, common_options_of_readers, shared_options
from elmo_zh.config import SECTIONS, Config
from elmo_zh.errors import NO_EFFECT, OptionError
from elmo_zh.language import _
from elmo_zh.planning import PlanLimits
from elmo_zh.run.layout import RunDir
from elmo_zh.run.record import StageContext, StageResult
from elmo_zh.run.stage_table import (
    ENCODE,
    EXPORT,
    SEGMENT,
    STAGES,
    TRAIN,
    VOCAB,
    WORD2VEC,
    Stage,
    later_stages,
    unread_settings,
)
from elmo_zh.training import read_launch

# Settings changed by a command's options, by section.
Changes = Mapping[str, Mapping[str, str]]


_run_option = shared_options("run_path", required=True)


def _reading_options(function: Function) -> Function:
    """Add the options for reading a corpus."""
    add_format = shared_options("text.format", names=("--format", "--input-format"))
    return add_format(shared_options("text.field", "text.encoding", "text.bad_bytes")(function))


_corpus_argument = click.argument("corpus", nargs=-1, required=True)


@click.command()
@_corpus_argument
@_run_option
@shared_options("init")
@_reading_options
@shared_options(*ENGINE)
@common_options
def segment(common: Common, /, corpus: tuple[str, ...]) -> None:
    """Split raw text into sentences and words.

    Use it as the first stage of a run. CORPUS is one or more files, folders or globs, or - for standard input. Formats:
    plain text (one paragraph per line), CSV, TSV, Excel, Parquet, JSON, JSON lines, MediaWiki dumps, wikiextractor,
    HTML, Markdown, subtitles, vertical and tagged text. Files may be compressed (.gz, .bz2, .xz, .zst) or in archives
    (.zip, .tar). The format and encoding of each file are detected (docs/corpora.md).

    Invisible characters and remnants of markup are removed. RUN/stages/segment.json shows what was cleaned and dropped.
    With --init, the text is prepared as for that model, and the later stages of the run start from it.

    \b
    Example:
      elmo-zh segment my-texts/ more.txt.xz --run runs/mine
      elmo-zh segment reviews.csv --field title,review --run runs/mine
      zcat news.gz | elmo-zh segment - --encoding gb18030 --run runs/mine
      elmo-zh segment done.txt --run runs/mine --set text.segmenter=whitespace
      elmo-zh segment statutes.txt --run runs/law --init runs/news/model
      elmo-zh segment my-texts/ --run runs/mine --engine dask --scheduler tcp://192.168.0.1:8786
    """
    from elmo_zh.stages.text import segment as segment_corpus

    changes = starting_from(common, "vocab", "train")
    _run_stage(common, SEGMENT, partial(segment_corpus, corpus=corpus), changes)


@click.command()
@_run_option
@shared_options("init", help=SECTIONS["vocab"]["init"].help)
@shared_options("source", *ENGINE)
@common_options
def vocab(common: Common, /) -> None:
    """Count words and write the vocabulary.

    Use it after segment. It writes the most frequent words of this run's text to RUN/vocab.data. With --init, all words
    of a model are kept, and words of the text are added, up to vocab.size words in total. If the model already has that
    many, up to vocab.size more words are added, or none if you set vocab.size with --set.

    \b
    Example:
      elmo-zh vocab --run runs/mine --set vocab.size=50000 --set vocab.min_count=3
      elmo-zh vocab --run runs/law --init runs/news/model
      elmo-zh vocab --run runs/mine --from words.txt
    """
    from elmo_zh.stages.text import vocab as build_vocabulary

    changes = starting_from(common, "vocab")
    if common.source:
        of_init = changes.get("vocab", {}).get("init", "")
        changes = {"vocab": {"init": of_init, "words": str(common.source.absolute())}}
    _run_stage(common, VOCAB, build_vocabulary, changes)


@click.command()
@_run_option
@shared_options("source", help=SECTIONS["word2vec"]["vectors"].help)
@common_options
def word2vec(common: Common, /) -> None:
    """Pretrain the initial token embeddings.

    Use it after vocab, to start training from word2vec vectors of this run's text or from vectors that you have.

    \b
    Example:
      elmo-zh word2vec --run runs/mine --set word2vec.algorithm=skipgram
      elmo-zh word2vec --run runs/mine --from vectors.txt
    """
    from elmo_zh.stages.text import word2vec as make_vectors

    changes = {"word2vec": {"vectors": str(common.source.absolute())}} if common.source else {}
    _run_stage(common, WORD2VEC, make_vectors, changes)


@click.command()
@_run_option
@shared_options(*ENGINE)
@common_options
def encode(common: Common, /) -> None:
    """Convert segmented text to the token ids that training reads.

    Use it after vocab. It writes the id store, RUN/ids.

    \b
    Example:
      elmo-zh encode --run runs/mine
    """
    from elmo_zh.stages.text import encode as encode_text

    _run_stage(common, ENCODE, encode_text)


@click.command()
@_run_option
@shared_options("init", "device")
@common_options
def train(common: Common, /) -> None:
    """Train the language model, or continue training it.

    Use it after encode, and again to continue after an interruption or to train longer. With --init, training starts
    from the weights of another model and takes over its settings in section model. The words of that model keep their
    rows of the token and softmax tables; the rows of a new word are computed from the known words in it, if there are
    any. Once training has begun, that model is no longer needed.

    With torchrun, several processes on one or more machines train together and share the train.batch_size streams of
    each step (docs/distributed.md). In the example, -- keeps torchrun from treating --run as its own option.

    \b
    Example:
      elmo-zh train --run runs/mine
      elmo-zh train --run runs/mine --set train.max_tokens=10000000
      elmo-zh train --run runs/law --init runs/news/model
      torchrun --nproc-per-node 4 -m -- elmo_zh train --run runs/mine
    """
    from elmo_zh.stages.model import train as train_model
    from elmo_zh.stages.model import train_on_other_rank

    launch, changes = read_launch(os.environ), starting_from(common, "train")
    work = partial(train_model, device=common.device)
    if launch.size == 1:
        _run_stage(common, TRAIN, work, changes)
        return
    from elmo_zh.training.distributed import joined_process_group

    with joined_process_group(launch) as group:
        if group.is_rank_0:
            with group.release_waiting_ranks():
                _run_stage(common, TRAIN, partial(work, group=group), changes)
        else:
            train_on_other_rank(common.run, group)


@click.command()
@_run_option
@shared_options("output", metavar="DIR", help="Folder to write. Default: RUN/model.", path=FOLDER)
@takes(BundleForm, "form")
@shared_options("checkpoint")
@common_options
def export(common: Common, /, form: BundleForm) -> None:
    """Export a checkpoint as a model bundle.

    Use it after train, or after interrupting train, to try the model. A bundle is a folder with weights.hdf5,
    options.json, vocab.data and other files; embed reads it. The other layouts are for other programs: simple_elmo
    (options.json, model.hdf5, vocab.txt) and safetensors (options.json, vocab.txt, and model.safetensors, whose weights
    are named as in the published ELMo models).

    \b
    Example:
      elmo-zh export --run runs/mine
      elmo-zh export --run runs/mine --checkpoint last --output my-model
      elmo-zh export --run runs/mine --layout simple_elmo --output for-simple-elmo
    """
    from elmo_zh.stages.model import export as export_model

    if common.output is None and form != BundleForm():
        raise OptionError.needs("--layout, --dtype", "--output DIR")
    work = partial(export_model, checkpoint=common.checkpoint, output=common.output, form=form)
    following = ("embed", "file.txt", "--model", common.output or common.run.model)
    _run_stage(common, EXPORT, work, following=following if form.layout == "bundle" else ())


@click.command()
@_corpus_argument
@_run_option
@shared_options("init")
@_reading_options
@shared_options(*ENGINE)
@common_options
def pipeline(common: Common, /, corpus: tuple[str, ...]) -> None:
    """Run all stages, from raw text to a model bundle.

    Use it to create a model with one command, and again to resume after an interruption. CORPUS is text in any format
    that the segment command reads. With --init, training starts from another model and keeps that model's words and
    its settings in section model; a new run also adopts that model's settings for preparing text.

    \b
    Example:
      elmo-zh pipeline my-texts/ --run runs/mine
      elmo-zh pipeline my-texts/ --run runs/mine --config configs/base.toml --set train.epochs=5
      elmo-zh pipeline news.jsonl.gz --field data.text --run runs/news
      elmo-zh pipeline statutes.txt --run runs/law --init runs/news/model
    """
    from elmo_zh.stages import model

    run, typed = common.run, changed(common.config, starting_from(common, "vocab", "train"))
    with run.locked(create=True):
        model.pipeline(stage_context(common, run, typed, STAGES), corpus)
    model.link_latest(run)
    common.finish({"run": run.path, "model": run.model}, following=("embed", "file.txt", "--model", run.model))


def starting_from(common: Common, *sections: str) -> Changes:
    """Return what --init changes in these sections; in vocab, it also drops a word list that --set did not give."""
    if common.init is None:
        return {}
    path = str(find_bundle(common.init).absolute())
    words = {} if "vocab.words" in common.named else {"words": ""}
    return {name: {"init": path, **(words if name == "vocab" else {})} for name in sections}


def changed(config: Config, changes: Changes) -> Config:
    """Return settings with the changes that a command's options make; raise OptionError if they contradict others."""
    sections = {name: replace(getattr(config, name), **values) for name, values in changes.items()}
    config = replace(config, **sections)
    if problems := [*config.problems()]:
        raise OptionError(*problems)
    return config


def stage_context(common: Common, run: RunDir, typed: Config, stages: Collection[Stage]) -> StageContext:
    """Return the context of stages; the settings in `typed` are completed from the starting model, if there is one."""
    from elmo_zh.stages.settings import resolve_settings

    force, console = common.force, common.console
    config = resolve_settings(run, typed, stages, common.named, force=force, reporter=console)
    for name, reason in sorted(unread_settings(config).items()):
        if name in common.named:
            console.warn(_(NO_EFFECT).format(name=name, other=reason))
    engine = common.choose_engine(config)
    return StageContext(run=run, config=config, reporter=console, force=force, engine=engine)


def _run_stage(
    common: Common,
    stage: Stage,
    work: Callable[[StageContext], StageResult],
    changes: Changes | None = None,
    *,
    following: Sequence[str | Path] | None = None,
) -> None:
    """Run one stage, and print its result and the next command, or the one in `following` instead."""
    run, typed = common.run, changed(common.config, changes or {})
    with run.locked(create=stage is SEGMENT):
        context = stage_context(common, run, typed, [stage])
        outcome = work(context)
    result = {"stage": stage.name, "run": run.path, "skipped": outcome.skipped, **outcome.counts}
    common.finish(result, (), following=after_stage(stage, run, context.config) if following is None else following)


def after_stage(stage: Stage, run: RunDir, config: Config) -> tuple[str | Path, ...]:
    """Return the words of the next command after a stage; training from another model skips word2vec."""
    init = config.train.init or config.vocab.init
    needs_vectors = config.word2vec.enabled and not init
    following = next(other for other in later_stages(stage) if needs_vectors or other is not WORD2VEC)
    if stage is ENCODE and needs_vectors and not run.word2vec.exists():
        following = WORD2VEC
    own_init = ("--init", init) if following is TRAIN and init and not config.train.init else ()
    return (*following.words(run.path), *own_init)


@click.command()
@_corpus_argument
@shared_options("run_path", help="Use this run's settings, and save the plan as RUN/plan.json.")
@takes(PlanLimits, "limits")
@shared_options("init")
@_reading_options
@common_options_of_readers
def plan(common: Common, /, corpus: tuple[str, ...], limits: PlanLimits) -> None:
    """Estimate a run's time, memory and disk space from a sample.

    Use it before a long run to choose a configuration. CORPUS is text in any format that the segment command reads. The
    command runs the stages up to encode on a sample of the corpus and tries a few steps of training. From these it
    estimates the numbers of characters, tokens and distinct words; how much of the text its most frequent words cover;
    the time and disk space of each stage on this machine; and the memory that training needs. With --init, the plan is
    for the run that pipeline would start from that model.

    \b
    Example:
      elmo-zh plan my-texts/ --run runs/mine
      elmo-zh plan news.jsonl.gz --field data.text --no-training
      elmo-zh plan statutes.txt --init starter
    """
    from elmo_zh.corpus.sources import gathered_sources
    from elmo_zh.planning.plan import describe_plan, make_plan
    from elmo_zh.run.files import write_json
    from elmo_zh.run.outputs import require_no_input
    from elmo_zh.stages.settings import find_user_dictionary

    with ExitStack() as stack:
        path = common.run_path or Path(stack.enter_context(TemporaryDirectory(prefix="elmo-zh-plan-")))
        run = RunDir(path)
        typed = changed(common.config, starting_from(common, "vocab", "train"))
        config = stage_context(common, run, typed, STAGES).config
        if common.run_path:
            stack.enter_context(run.locked(create=True))
        sources = stack.enter_context(gathered_sources(corpus, run.path, run.fetched))
        sources.report_skipped(common.console)
        dictionary = find_user_dictionary(run, config)
        estimates = make_plan(sources, config, dictionary, limits, common.console)
        if common.run_path:
            sources_read = [source.path for source in sources.sources]
            require_no_input(run.plan, sources_read, "--run")
            write_json(run.plan, estimates)
    init = ("--init", common.init) if common.init else ()
    following = ("pipeline", *corpus, "--run", common.run_path, *init) if common.run_path else ()
    common.finish(estimates, describe_plan(estimates), following=following)
