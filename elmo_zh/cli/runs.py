"""The command that lists runs."""

from pathlib import Path

import click

from elmo_zh.cli.options import Common, common_options_of_readers


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=Path("runs"))
@common_options_of_readers
@click.pass_obj
def runs(common: Common, folder: Path) -> None:
    """List the runs in a folder, newest first.

    FOLDER is runs by default. For each run the table shows the corpus, the number of training tokens, the size on disk,
    the held-out perplexity and that of a bigram model, the date, and whether it is the latest run, whose model `embed`
    uses by default.

    \b
    Example:
      elmo-zh runs
      elmo-zh runs /data/runs --json
    """
    common.resolve()
    from elmo_zh.run.list_runs import describe_runs, list_runs

    found = list_runs(folder)
    common.finish(found, *describe_runs(found))
