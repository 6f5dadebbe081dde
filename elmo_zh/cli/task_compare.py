"""The command that measures whether ELMo helps on labelled texts."""

from dataclasses import dataclass, replace
from pathlib import Path

import click

from elmo_zh.cli.declared import takes, typed_options
from elmo_zh.cli.model_options import load_embedder
from elmo_zh.cli.options import FOLDER, Common, common_options, reads, shared_options
from elmo_zh.cli.task_options import checked_job, training_options
from elmo_zh.config.declare import declare
from elmo_zh.config.task_settings import FitJob
from elmo_zh.errors import OptionError

# Options of a comparison that `task fit` lacks, or uses differently: the network to keep learns from all labels. The
# next command does not repeat this one's options for printing either.
_NOT_OF_FIT = {"vectors", "shares", "folds", "limit", "num_seeds"}
_NOT_OF_FIT |= {f"common_{name}" for name in ("output", "word2vec", "force", "quiet", "as_json")}
# What a recommendation decides.
_RECOMMENDED = {"head", "inputs"}


@dataclass(frozen=True, kw_only=True)
class CompareOptions:
    """The options that `task compare` adds to the options for training."""

    num_seeds: int = declare(
        3,
        "Train with N consecutive seeds, each with its own sample of the labels; the folds use the seeds in turn.",
        names=("--seeds",),
        least=1,
        most=100,
        metavar="N",
    )
    vectors: tuple[str, ...] = declare(
        (),
        "Also compare other vectors, listed in the results as NAME. FILE is an array with one row per example, in the"
        " order of the data files (.npy; not for tag), or word vectors in word2vec's text format. May be repeated.",
        metavar="NAME=FILE",
    )
    shares: str = declare("1,0.3,0.1", "Train on these fractions of the training examples.", metavar="SHARE,...")
    folds: int | None = declare(
        None,
        "Divide the examples of a single file into N folds, and test each fold once (cross-validation). With 1, only a"
        " tenth of the examples is tested. Default: 3 if a tenth is fewer than 300 examples, otherwise 1.",
        least=1,
        most=100,
        metavar="N",
    )

    def parsed_shares(self) -> tuple[float, ...]:
        """Return the fractions, each above 0 and at most 1, in descending order; raise OptionError for others."""
        try:
            shares = {float(part) for part in self.shares.split(",")}
        except ValueError:
            shares = set()
        if not shares or not all(0 < share <= 1 for share in shares):
            raise OptionError.unexpected(f"--shares {self.shares}", "0<x<=1: 1,0.3,0.1")
        return tuple(sorted(shares, reverse=True))

    def named_vectors(self) -> dict[str, Path]:
        """Return the files of --vectors by name; raise OptionError if a name or a file is missing."""
        pairs = [(name.strip(), Path(file)) for name, _sign, file in (value.partition("=") for value in self.vectors)]
        for value, (name, file) in zip(self.vectors, pairs, strict=True):
            if not (name and file.is_file()):
                raise OptionError.unexpected(f"--vectors {value}", "NAME=FILE")
        return dict(pairs)


@click.command()
@shared_options("model")
@shared_options("output", help="Folder to write.", metavar="COMPARISON", path=FOLDER, required=True)
@shared_options("word2vec")
@training_options
@takes(CompareOptions, "options")
@shared_options("device")
@common_options
@reads("embed")
def compare(common: Common, /, job: FitJob, options: CompareOptions) -> None:
    """Compare ELMo with word2vec on your labelled texts.

    Use it before you rely on ELMo for a task. The command trains the same network on word2vec, on ELMo and on both (the
    row [word2vec; ELMo]); if characters are tagged, each network reads characters too. It compares the networks with a
    baseline that always gives the same answer; for tag, also with a CRF; and for classes of texts or pairs, also with
    linear models on characters (TF-IDF), on pooled vectors, and on both. Models are trained on all labels and on some
    of them (--shares), except networks for classes, which get only the largest share. The command recommends the
    cheapest model that is not clearly worse than the best. The 95% intervals of the differences are bootstrapped over
    the test examples. KIND and DATA are as for task fit. COMPARISON is a folder with tables, and figures in JSON.
    Repeat an interrupted command to resume it.

    \b
    Example:
      elmo-zh task compare classify reviews.csv --output my-comparison
      elmo-zh task compare tag names/ --model runs/mine/model --output my-comparison --shares 1,0.1 --seeds 1
    """
    job = replace(checked_job(common, job), num_seeds=options.num_seeds)
    shares, vectors = options.parsed_shares(), options.named_vectors()
    embedder = load_embedder(common)
    from elmo_zh.run.job import run_job
    from elmo_zh.tasks.compare import CompareJob

    comparing = CompareJob.of(
        job, embedder, common.written, common.console, folds=options.folds, word2vec=common.word2vec,
        shares=shares, vectors=vectors,
    )  # fmt: skip
    comparison = run_job(comparing, force=common.force, reporter=common.console)
    kind, head, recommended = job.settings.kind, job.settings.head, comparison.recommended
    typed = typed_options(click.get_current_context(), without=_NOT_OF_FIT | _RECOMMENDED)
    if recommended.inputs:
        typed += ["--head", "bilstm" if head == "mixture" else head]
    typed += recommended.options
    common.finish(
        comparison.to_json(),
        comparison.lines(),
        following=("task", "fit", kind, job.files.data, *typed, "--output", f"my-{kind}"),
    )
