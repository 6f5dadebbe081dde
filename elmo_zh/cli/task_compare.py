"""The command that measures whether ELMo helps on labelled texts."""

from pathlib import Path

import click

from elmo_zh.cli.model_options import load_embedder
from elmo_zh.cli.options import Common, common_options, output_option, reads, shared_options
from elmo_zh.cli.task_options import checked_job, training_options, typed_options, word2vec_option
from elmo_zh.config.task_settings import FitJob
from elmo_zh.invocation import command
from elmo_zh.language import _

# Options of a comparison that `task fit` lacks, or uses differently: the network to keep learns from all labels. The
# next command does not repeat this one's options for printing either.
_NOT_OF_FIT = {"output", "word2vec", "vectors", "shares", "folds", "limit", "num_seeds"}
_NOT_OF_FIT |= {"common_force", "common_quiet", "common_as_json"}


def _shares(_context: click.Context, _parameter: click.Parameter, value: str) -> tuple[float, ...]:
    """Parse comma-separated fractions above 0 and at most 1, and return them in descending order."""
    try:
        shares = tuple(float(part) for part in value.split(","))
    except ValueError:
        shares = ()
    if not shares or not all(0 < share <= 1 for share in shares) or len(set(shares)) != len(shares):
        raise click.BadParameter(
            _("{value}: give one or more different fractions, each above 0 and at most 1, such as 1,0.3,0.1").format(
                value=value
            )
        )
    return tuple(sorted(shares, reverse=True))


def _vectors(
    _context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[tuple[str, Path], ...]:
    """Parse NAME=FILE."""
    pairs = []
    for value in values:
        name, sign, file = value.partition("=")
        if not (name.strip() and sign and Path(file).is_file()):
            raise click.BadParameter(_("{value}: give a name, = and an existing file").format(value=value))
        pairs.append((name.strip(), Path(file)))
    return tuple(pairs)


@click.command()
@shared_options("model")
@output_option("COMPARISON", "Folder to write.", is_folder=True, required=True)
@word2vec_option("Model or run with the word2vec vectors to compare. Default: the model's own vectors.")
@click.option(
    "--vectors",
    multiple=True,
    callback=_vectors,
    metavar="NAME=FILE",
    help="Also compare other vectors, in rows with this name: an array with one row for each example (.npy), in the"
    " order of the files, or vectors of words in word2vec's text format. May be repeated.",
)
@click.option(
    "--shares",
    callback=_shares,
    default="1,0.3,0.1",
    show_default=True,
    metavar="SHARE,...",
    help="Train on these fractions of the training examples.",
)
@click.option(
    "--folds",
    type=click.IntRange(1, 100),
    metavar="N",
    help="Divide the examples of a single file into N folds, and test each fold once (cross-validation). With 1, only a"
    " tenth of the examples is tested. Default: 3 if a tenth is fewer than 300 examples, otherwise 1.",
)
@training_options(
    3, "Train with N consecutive seeds, each with its own sample of the labels; the folds use the seeds in turn."
)
@shared_options("device")
@common_options
@reads("embed")
def compare(
    common: Common,
    /,
    job: FitJob,
    output: Path,
    word2vec: Path | None,
    shares: tuple[float, ...],
    folds: int | None,
    vectors: tuple[tuple[str, Path], ...],
) -> None:
    """Compare ELMo with word2vec on your labelled texts.

    Use it before you rely on ELMo for a task. The command trains the same network on word2vec, on ELMo and on both,
    [word2vec; ELMo]. It compares the networks with a baseline that always predicts the most frequent label; for tag,
    also with a CRF; and for classify, also with linear models on characters (TF-IDF), on pooled vectors, and on both.
    Models are trained on all labels and on some of them (--shares), except networks for classify, which get only the
    largest share. The command recommends the cheapest model that is not clearly worse than the best. The 95% intervals
    of the differences are bootstrapped over the test examples. KIND and DATA are as for task fit. COMPARISON is a
    folder with tables, a picture of learning curves, and figures in JSON. Repeat an interrupted command to resume it.

    \b
    Example:
      elmo-zh task compare classify reviews.csv --output my-comparison
      elmo-zh task compare tag names/ --model runs/mine/model --output my-comparison --shares 1,0.1 --seeds 1
    """
    job = checked_job(common, job)
    embedder = load_embedder(common)
    from elmo_zh.tasks.compare import compare_task

    comparison = compare_task(
        job, embedder, output, force=common.force, reporter=common.console, shares=shares, folds=folds,
        word2vec=word2vec, vectors=dict(vectors),
    )  # fmt: skip
    kind = job.settings.kind
    typed = typed_options(click.get_current_context(), without=_NOT_OF_FIT)
    if "--head" not in typed:
        typed += comparison.recommended.options or ()
    common.finish(
        {"output": str(output), **comparison.to_json()},
        *comparison.lines(),
        _("Comparison: {output}").format(output=output),
        _("Next: {value}").format(value=command("task", "fit", kind, job.files.data, *typed, "--output", f"my-{kind}")),
    )
