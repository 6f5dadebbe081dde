"""The command that looks at anything that elmo-zh wrote."""

from pathlib import Path

import click

from elmo_zh.bundle.find_bundle import find_bundle
from elmo_zh.cli.options import Common, common_options_of_readers, shared_options
from elmo_zh.errors import OutputError


@click.command()
@click.argument("path", type=click.Path(path_type=Path), default=Path("runs"))
@click.option(
    "--check",
    is_flag=True,
    help="Also test a model bundle on this machine, survey the text of a run, or compare the files of another output"
    " with their digests.",
)
@click.option(
    "--precision",
    "with_precisions",
    is_flag=True,
    help="Measure how much bfloat16 and int8 vectors of a model bundle's stored sentences differ from float32 ones.",
)
@shared_options("device")
@common_options_of_readers
def info(common: Common, /, path: Path, check: bool, with_precisions: bool) -> None:
    """Show what a run, model, index, task or comparison is.

    Use it to see what a folder was made from, its figures, and what to do next. PATH is a run, finished or not; a
    folder of runs, by default runs, which are listed newest first; a model bundle, the name of an installed model, or
    the folder of another program's model; or the output of index, task fit, task compare or task probe.

    With --check, the exit status is 1 if something is wrong. For a model bundle, this checks that its stored sentences
    still give their stored vectors; that the forward LM cannot see the future, nor the backward LM the past; that
    batching and the order of sentences change nothing; and that vocabulary, embedding and softmax match. It also prints
    the neighbours of frequent words for you to judge: if they make no sense, rows and words do not match, or the model
    has hardly been trained. For a run, it reads the training text and shows frequent and long tokens, the shares of Han
    characters, Latin letters, digits and punctuation, sentence lengths, some sentences, and what looks odd.

    \b
    Example:
      elmo-zh info
      elmo-zh info runs/mine --check
      elmo-zh info runs/mine/model --json
      elmo-zh info my.index
    """
    common.resolve()
    from elmo_zh.bundle.layout import BundleLayout
    from elmo_zh.info.describe import describe

    path = find_bundle(path)
    is_bundle = BundleLayout(path).info.is_file()
    if common.device and not (check and is_bundle):
        raise click.UsageError("--device has an effect only on --check of a model bundle. Leave out --device.")
    if with_precisions and not is_bundle:
        raise click.UsageError(f"--precision needs a model bundle, which {path} is not. Leave out --precision.")
    found = describe(path, common.console, check=check, device=common.device or "auto")
    values, lines = found.values, [*found.lines]
    if with_precisions:
        from elmo_zh.info.models import describe_precisions

        measured = describe_precisions(path)
        values, lines = values | measured.values, [*lines, *measured.lines]
    if check:
        values["passed"] = not found.problems
    common.finish(values, *lines)
    if found.problems:
        raise OutputError(f"{path} fails these checks: {'; '.join(found.problems)}. Write or copy the folder again.")
