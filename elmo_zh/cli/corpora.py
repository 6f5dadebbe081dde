"""The commands that describe corpora: plan (what a run will take) and inspect (what a run contains)."""

import shlex
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from elmo_zh.cli.options import Common, check_run_path, common_options_of_readers, reading_options
from elmo_zh.invocation import program
from elmo_zh.run.layout import RunDir

if TYPE_CHECKING:
    from elmo_zh.config import Config

# Fraction of the starter model's training up to which a corpus is called small beside it.
_LITTLE_BESIDE_STARTER = 0.1


@click.command()
@click.argument("corpus", nargs=-1, required=True)
@click.option(
    "--run",
    "run_path",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="RUN",
    callback=check_run_path,
    help="Use this run's settings, and save the plan as RUN/plan.json so that inspect can compare it with the run.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=1),
    default=20,
    show_default=True,
    help="Time limit for reading the corpus, and again for segmenting the sample, in seconds.",
)
@click.option(
    "--sample-megabytes",
    type=click.FloatRange(min=0.1),
    default=2,
    show_default=True,
    help="Megabytes of text to sample at most.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Random seed of the sample.")
@click.option("--no-training", is_flag=True, help="Do not measure training speed; torch is then not needed.")
@reading_options
@common_options_of_readers
@click.pass_obj
def plan(
    common: Common,
    corpus: tuple[str, ...],
    run_path: Path | None,
    seconds: float,
    sample_megabytes: float,
    seed: int,
    no_training: bool,
) -> None:
    """Estimate from a sample what a run on a corpus will take.

    Use it before a long run to choose a configuration. CORPUS is text in any form that the command segment reads. The
    estimates are the numbers of documents, characters, tokens and distinct words, each with an interval; how many words
    cover how much of the text; time, memory and disk space of each stage on this machine; and the training time of each
    shipped configuration.

    \b
    Example:
      elmo-zh plan my-texts/ --run runs/mine
      elmo-zh plan zhwiki-latest-pages-articles-multistream.xml.bz2 --config configs/base.toml
      elmo-zh plan news.jsonl.gz --field data.text --no-training
    """
    from elmo_zh.corpus.sources import gathered_sources
    from elmo_zh.planning.plan import make_plan
    from elmo_zh.planning.plan_lines import describe_plan
    from elmo_zh.planning.reading import SampleSize
    from elmo_zh.run.files import require_no_input, write_json
    from elmo_zh.stages.inputs import find_user_dictionary

    with ExitStack() as stack:
        path = run_path or Path(stack.enter_context(TemporaryDirectory(prefix="elmo-zh-plan-")))
        run = RunDir(path)
        config = common.resolve(run)
        if run_path:
            stack.enter_context(run.locked(create=True))
        sources = stack.enter_context(gathered_sources(corpus, run.path, run.fetched))
        size = SampleSize(
            num_bytes=round(sample_megabytes * 1e6), seconds=seconds, seed=seed, tries_training=not no_training
        )
        dictionary = find_user_dictionary(run, config)
        found = make_plan(sources, config, dictionary, size, common.console)
        if run_path:
            require_no_input(run.plan, [source.path for source in sources.sources], "Choose another --run.")
            write_json(run.plan, found)
    kept = []
    if run_path:
        typed = shlex.quote(str(run_path))
        kept = [
            f"Saved as {run.plan}. Next: {program()} pipeline {shlex.join(corpus)} --run {typed}",
            f"Compare the plan with the finished run: {program()} inspect {typed}",
        ]
    common.finish(found, *describe_plan(found), *_advise_starter(config, found["figures"]["tokens"]["value"]), *kept)


def _advise_starter(config: "Config", num_tokens: float) -> Iterator[str]:
    """Yield the advice to start from the installed starter model where it has seen far more text than this corpus."""
    from elmo_zh.bundle.find_bundle import starter_tokens

    seen = 0 if config.train.init or config.vocab.init or config.model.mode != "token" else starter_tokens()
    if num_tokens < _LITTLE_BESIDE_STARTER * seen:
        yield (
            f"Recommended: start from the installed model starter, which has trained on {seen:,} tokens: add"
            " INIT=starter to make train, or --init starter to pipeline."
        )


@click.command()
@click.argument("run_path", type=click.Path(path_type=Path, file_okay=False), metavar="RUN")
@click.option(
    "--samples",
    "num_samples",
    type=click.IntRange(min=0),
    default=5,
    show_default=True,
    help="Number of random sentences to show.",
)
@click.option(
    "--tokens",
    "num_tokens",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="Number of frequent and of long tokens to show.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Random seed of the choice of sentences.")
@common_options_of_readers
@click.pass_obj
def inspect(common: Common, run_path: Path, num_samples: int, num_tokens: int, seed: int) -> None:
    """Show what a run contains, finished or not.

    Use it to check the text before training. It shows counts of each source, how many words cover how much of the
    training text (also as a picture, RUN/coverage.png), frequent and long tokens, the shares of Han, Latin, digits and
    punctuation, sentence lengths, some sentences, and what looks odd and how to fix it. If RUN/plan.json exists, it
    also compares the plan with the run.

    \b
    Example:
      elmo-zh inspect runs/mine
      elmo-zh inspect runs/mine --samples 20 --seed 7
      elmo-zh inspect runs/mine --json
    """
    from elmo_zh.inspection.inspect_run import describe_inspection, inspect_run

    run = RunDir(run_path)
    common.resolve(run)
    found = inspect_run(run, num_samples=num_samples, num_tokens=num_tokens, seed=seed, reporter=common.console)
    common.finish(found, *describe_inspection(found))
