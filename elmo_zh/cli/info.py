"""The command that looks at anything that elmo-zh wrote."""

from pathlib import Path

import click

from elmo_zh.bundle.find_bundle import find_bundle
from elmo_zh.cli.options import Common, common_options_of_readers, shared_options
from elmo_zh.errors import OutputError
from elmo_zh.language import _


@click.command()
@click.argument("path", type=click.Path(path_type=Path), default=Path("runs"))
@click.option(
    "--check",
    is_flag=True,
    help="Also test a model bundle on this machine, or compare the files of another output with their digests.",
)
@shared_options("device")
@common_options_of_readers
def info(common: Common, /, path: Path, check: bool) -> None:
    """Show what a run, model, index, task or comparison is.

    Use it to see what a folder was made from, its figures, and what to do next. PATH is a run, finished or not; a
    folder of runs, by default runs, which are listed newest first; a model bundle, the name of an installed model, or
    the folder of another program's model; or the output of index, task fit, task compare or task probe.

    With --check, the exit status is 1 if something is wrong. For a model bundle, this checks that its stored sentences
    still give their stored vectors and tokens; that other sentences in a batch change nothing; and that vocabulary and
    embedding match. For other outputs and runs, it checks that no file has changed since it was written.

    \b
    Example:
      elmo-zh info
      elmo-zh info runs/mine --check
      elmo-zh info runs/mine/model --json
      elmo-zh info my.index
    """
    from elmo_zh.info.describe import describe

    path = find_bundle(path)
    description = describe(path, check=check, device=common.device or "auto")
    values = description.values
    if check:
        values["passed"] = not description.problems
    common.finish(values, *description.lines)
    if description.problems:
        message = _("{path} fails these checks: {problems}. Write or copy the folder again.")
        raise OutputError(message.format(path=path, problems="; ".join(map(_, description.problems))))
