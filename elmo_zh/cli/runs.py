"""The command that lists runs."""

from pathlib import Path

import click

from elmo_zh.cli.options import Common, common_options


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=Path("runs"))
@common_options
@click.pass_obj
def runs(common: Common, folder: Path) -> None:
    """List the runs below FOLDER (default: runs), the newest first.

    For each it prints the corpus, the tokens to train on, the size on disk, the held-out perplexity beside that of a
    bigram model, when it was finished, and whether it is the latest: the one that `embed` uses by default.

    \b
    Example:
      elmo-zh runs
      elmo-zh runs /data/runs --json
    """
    common.resolve()
    from elmo_zh.inspection.list_runs import describe_runs, list_runs

    found = list_runs(folder)
    common.finish(found, *describe_runs(found))
