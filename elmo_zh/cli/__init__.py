"""The command line. Only this package imports click, prints or knows exit statuses."""

import signal
import sys

import click

from elmo_zh.allocator import let_idle_threads_sleep
from elmo_zh.cli.corpora import inspect, plan
from elmo_zh.cli.failures import explain_failure
from elmo_zh.cli.models import convert, info, selftest
from elmo_zh.cli.runs import runs
from elmo_zh.cli.stages import encode, export, pipeline, segment, train, vocab, word2vec
from elmo_zh.cli.vectors import embed, evaluate, merge
from elmo_zh.version import __version__

EXIT_KNOWN_PROBLEM, EXIT_USAGE, EXIT_INTERRUPTED, EXIT_TERMINATED = 1, 2, 130, 143


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="elmo-zh")
def cli() -> None:
    """From raw Chinese text to ELMo vectors.

    All at once:

    \b
      elmo-zh pipeline my-texts/ --run runs/mine
      elmo-zh embed file.txt --model runs/mine/model

    or stage by stage: segment, vocab, word2vec, encode, train, export. A stage whose inputs and settings have
    not changed is skipped, and an interrupted one goes on when its command is typed again.
    """


for command in (
    plan,
    pipeline,
    segment,
    vocab,
    word2vec,
    encode,
    train,
    export,
    embed,
    merge,
    evaluate,
    convert,
    inspect,
    runs,
    info,
    selftest,
):
    cli.add_command(command)


def _end_children() -> None:
    """End worker processes that an interruption in the midst of their own end has left."""
    from multiprocessing import active_children

    for child in active_children():
        child.kill()


def main() -> None:
    """Run the command line and exit with its status."""
    let_idle_threads_sleep()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(EXIT_TERMINATED))
    try:
        status = cli.main(standalone_mode=False)
    except click.UsageError as error:
        error.show()
        status = EXIT_USAGE
    except (click.Abort, KeyboardInterrupt):
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C must not break into the end
        _end_children()
        again = "the same command without --force" if "--force" in sys.argv else "the same command again"
        click.echo(f"Interrupted. Type {again} to go on.", err=True)
        status = EXIT_INTERRUPTED
    except BrokenPipeError:
        status = EXIT_KNOWN_PROBLEM
    except Exception as error:
        messages = explain_failure(error)
        if messages is None:
            raise
        for message in messages:
            click.echo(f"Error: {message}", err=True)
        status = EXIT_KNOWN_PROBLEM
    sys.exit(status if isinstance(status, int) else 0)
