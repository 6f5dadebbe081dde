"""The command line. Only this package imports click and prints."""

import atexit
import gc
import io
import json
import os
import re
import signal
import sys

import click

from elmo_zh.allocator import let_idle_threads_sleep
from elmo_zh.cli.concordance import collocates, concordance, frequencies, keywords, words
from elmo_zh.cli.console import explain_failure, one_line, speak, with_advice
from elmo_zh.cli.convert import convert, info
from elmo_zh.cli.embed import embed, evaluate, score
from elmo_zh.cli.index import explore, index, neighbours
from elmo_zh.cli.stages import encode, export, pipeline, plan, segment, train, vocab, word2vec
from elmo_zh.cli.task_compare import compare
from elmo_zh.cli.task_fit import fit
from elmo_zh.cli.task_predict import predict
from elmo_zh.cli.task_predict import score as score_task
from elmo_zh.cli.task_probe import probe
from elmo_zh.cli.usages import drift, senses, substitutes
from elmo_zh.errors import OptionError
from elmo_zh.language import N_, _, chosen_language
from elmo_zh.run.reporter import silence_stderr
from elmo_zh.version import __version__

EXIT_KNOWN_PROBLEM, EXIT_USAGE, EXIT_HUNG_UP, EXIT_INTERRUPTED, EXIT_TERMINATED = 1, 2, 129, 130, 143


@click.group()
def task() -> None:
    """Train, use, score and compare models for labelled tasks.

    Use it if you have a few thousand labelled texts. A label is a class or a number for a text or a pair of texts, or a
    tag for a character or a word. Small models are trained on top of a bundle's vectors; compare says whether ELMo
    helps on your data.

    \b
    Example:
      elmo-zh task fit tag names.conll --output my-tagger
      elmo-zh task predict file.txt --task my-tagger
      elmo-zh task score more-names.conll --task my-tagger
      elmo-zh task compare tag names.conll --output my-comparison
    """


for _command in (fit, predict, score_task, compare, probe):
    task.add_command(_command)


# The sections of `elmo-zh --help`, with the commands in the order in which they are used.
SECTIONS = {
    N_("Prepare"): (plan, segment, vocab, word2vec, encode),
    N_("Train"): (train, export, pipeline),
    N_("Use"): (embed, evaluate, score, substitutes, task, convert),
    N_("Study"): (concordance, frequencies, collocates, keywords, words, index, neighbours, senses, drift, explore),
    N_("Inspect"): (info,),
}


class SectionedHelp(click.Group):
    """A click group that lists its commands by section, each with the full first sentence of its help."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the sections, with all descriptions in one column."""
        width = max(map(len, self.commands))
        for title, commands in SECTIONS.items():
            with formatter.section(_(title)):
                # Without a limit, click would cut a sentence off where the line ends.
                rows = [
                    (str(command.name).ljust(width), command.get_short_help_str(limit=1000)) for command in commands
                ]
                formatter.write_dl(rows)


def _print_schema(context: click.Context, _parameter: click.Parameter, is_wanted: bool) -> None:
    if is_wanted:
        from elmo_zh.config.load import settings_schema

        click.echo(json.dumps(settings_schema(), ensure_ascii=False, indent=2))
        context.exit()


@click.group(cls=SectionedHelp, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="elmo-zh")
@click.option(
    "--print-schema",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_schema,
    help="Print the JSON Schema of the settings, for editors of TOML files, and exit.",
)
def cli() -> None:
    """Train ELMo models on Chinese text and embed text with them.

    Train with one command, then embed:

    \b
      elmo-zh pipeline my-texts/ --run runs/mine
      elmo-zh embed file.txt --model runs/mine/model

    Or train stage by stage: segment, vocab, word2vec, encode, train, export. A stage whose inputs and settings
    have not changed is skipped. An interrupted stage resumes if its command is run again.
    """


for _section in SECTIONS.values():
    for _command in _section:
        cli.add_command(_command)


def _end_children() -> None:
    """Kill worker processes that are still running because a second interrupt came while they were being stopped."""
    from multiprocessing import active_children

    for child in active_children():
        child.kill()


def _hang_up(*_: object) -> None:
    silence_stderr()
    sys.exit(EXIT_HUNG_UP)


def _show(error: click.UsageError) -> None:
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        return
    advised = with_advice(error)
    text = advised.format_message()
    if chosen_language() != "en":
        text = re.sub(r"'[.。](?= |$)", "'。", text).replace("。 ", "。")  # sentences are joined as in English
    click.UsageError(text, advised.ctx).show()


def main() -> None:
    """Run the command line and exit with its status."""
    let_idle_threads_sleep()
    # On exit, Python would search all that torch has created for garbage, which takes half as long as importing torch.
    atexit.register(gc.freeze)
    # Names of files may contain bytes that are not UTF-8; print them as escapes, as on stderr.
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(EXIT_TERMINATED))
    # A closed terminal ends the program as SIGTERM does, unless it was started with nohup.
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        signal.signal(signal.SIGHUP, _hang_up)
    speak(cli)
    try:
        status = cli.main(standalone_mode=False)
    except click.UsageError as error:
        _show(error)
        status = EXIT_USAGE
    except (click.Abort, KeyboardInterrupt, SystemExit) as stop:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # so that a second Ctrl-C does not interrupt the cleanup
        _end_children()
        status = stop.code if isinstance(stop, SystemExit) else EXIT_INTERRUPTED
        # click exits with 1 if its output was closed; one of several training processes speaks for all of them.
        if status != EXIT_KNOWN_PROBLEM and os.environ.get("RANK", "0") == "0":
            click.echo(
                _(
                    "Interrupted. Run the same command again; a command that can resume keeps its finished work,"
                    " unless --force is given."
                ),
                err=True,
            )
    except Exception as error:
        # Everything is reported: a known problem in one line, a bug of this program with its traceback.
        messages = explain_failure(error, next(iter(sys.argv[1:]), ""))
        if messages is None:
            error.add_note(_("This is a bug in elmo-zh. Please report it with the lines above."))
            raise
        for message in messages:
            click.echo(one_line(_("Error: {message}").format(message=message)), err=True)
        status = EXIT_USAGE if isinstance(error, OptionError) else EXIT_KNOWN_PROBLEM
    sys.exit(status if isinstance(status, int) else 0)
