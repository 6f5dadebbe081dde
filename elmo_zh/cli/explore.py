"""The command that opens a page for exploring the words in an index."""

import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from elmo_zh.cli.model_options import load_embedder, load_embedder_of
from elmo_zh.cli.options import Common, common_options, figures, output_option, reads, shared_options, takes
from elmo_zh.config.declare import declare
from elmo_zh.contexts import PageChoice
from elmo_zh.language import _

if TYPE_CHECKING:
    from elmo_zh.contexts.index import ContextIndex
    from elmo_zh.embed.embedder import ElmoEmbedder
    from elmo_zh.explore.colourings import PointLabels
    from elmo_zh.explore.page_content import PageContent
    from elmo_zh.explore.server import ExploreServer, LiveSentences


@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """The options of `explore` for serving the page."""

    port: int = declare(
        8337, "Port to serve the page on when --output is not given; 0 picks a free port.", least=0, most=65535
    )
    no_browser: bool = declare(False, "Do not open a browser; only print the address of the page.")


@click.command()
@click.argument("index_path", type=click.Path(path_type=Path), metavar="[INDEX|RUN]", required=False)
@output_option("PAGE", "HTML file to write. Default: serve the page on this machine, until Ctrl-C.")
@takes(ServeOptions, "serve")
@takes(PageChoice, "choice")
@shared_options(
    "model",
    help="Folder of the model, or the name of an installed model. Default: the model of INDEX or RUN, otherwise"
    " $ELMO_ZH_MODEL, otherwise runs/latest/model, otherwise starter.",
)
@shared_options("device")
@common_options
@reads("embed")
def explore(
    common: Common,
    /,
    index_path: Path | None,
    output: Path | None,
    serve: ServeOptions,
    choice: PageChoice,
) -> None:
    """Look at words in their sentences, on a page in the browser.

    Without INDEX, explore shows the model in $ELMO_ZH_MODEL; if that is not set, the latest run; and if there are no
    runs, the installed starter model. The command builds the index itself: for a run, in RUN/index, from the run's own
    text; for any other model, in runs/NAME-DIGITS.index, from elmo-zh's sample text (DIGITS are the first digits of the
    model's digest). To show another run or model, give RUN or --model. INDEX is a folder written by the index command.

    The page has a map of each word's occurrences in each layer, coloured by usage, by source, or by your labels. A
    click on an occurrence shows its line with the surprisal of each token, the words that could stand in its place, and
    the most similar occurrences. With --output the page is one file, which a browser can open offline. Without
    --output, the page is served at 127.0.0.1 and has a box in which you can type any sentence.

    \b
    Example:
      elmo-zh explore
      elmo-zh explore --output page.html --word 苹果 --word 银行
      elmo-zh explore my.index --labels senses.tsv --output page.html
    """
    from elmo_zh.explore.page import check_packages, write_page
    from elmo_zh.explore.page_content import PageContent
    from elmo_zh.explore.server import ExploreServer, LiveSentences

    check_packages()
    with ExitStack() as stack:
        stack.enter_context(common.claimed(output, formats=(".html", ".htm")))
        server = stack.enter_context(ExploreServer(serve.port).serving()) if output is None else None
        # Announce the page once, before the first step that takes long; errors before that open no browser.
        opens = not (serve.no_browser or common.as_json)
        announce = cache(partial(_announce, common, server.address, opens=opens)) if server else None
        index, embedder = _load(common, index_path, announce)
        labels = _labels(index, choice.labels)
        for word in choice.words:
            index.occurrences(word)  # an error if the index does not have the word
        if announce:
            announce()
        content = PageContent(index, embedder, choice, common.console, labels)
        if server is not None:
            _show(common, server, content, LiveSentences(index, embedder, content))
        elif output is not None:
            data = content.whole()
            result = {"output": str(output), "bytes": write_page(data, output), **_counts(data)}
            common.finish(result, *figures(result), bundle=embedder.bundle)


def _load(
    common: Common, path: Path | None, announce: Callable[[], None] | None
) -> tuple["ContextIndex", "ElmoEmbedder"]:
    """Return the index to show and its model; without an index, make one."""
    from elmo_zh.contexts.index import ContextIndex
    from elmo_zh.explore.own_index import Subject, load_own_index
    from elmo_zh.run.find_runs import is_run

    if path is None or is_run(path):
        if path is not None and common.model is not None:
            raise click.UsageError(_("A run has a model of its own. Leave out RUN or --model."))
        subject = Subject.find(path or common.model)
        embedder = load_embedder(common, subject.model)
        # With --output, --force overwrites the page, not the index.
        force = common.force and announce is not None
        return load_own_index(subject, embedder, force=force, reporter=common.console, before=announce), embedder
    index = ContextIndex.load(path)
    return index, load_embedder_of(common, index)


def _labels(index: "ContextIndex", path: Path | None) -> "PointLabels | None":
    """Return the labels read from a table; by default, the senses marked in the sample text."""
    from elmo_zh.explore.colourings import PointLabels
    from elmo_zh.explore.own_index import labels_of_sample

    if path is not None:
        return PointLabels.load(path, index.sources, archives=index.archives)
    senses = labels_of_sample(index)
    labels = PointLabels.load(senses, index.sources, skips_others=True) if senses else None
    return labels if labels and labels.rows else None


def _announce(common: Common, address: str, *, opens: bool) -> None:
    from elmo_zh.explore.server import open_in_browser

    is_opened = opens and open_in_browser(address)
    line = _("The page is open in your browser: {address}") if is_opened else _("Open {address} in a browser.")
    common.console.note(line.format(address=address))


def _show(common: Common, server: "ExploreServer", content: "PageContent", sentences: "LiveSentences") -> None:
    """Show the page and compute the rest of it until Ctrl-C, which is the normal way to end it."""
    from elmo_zh.explore.page import build_page

    server.show(build_page(content.overview, live=True), sentences)
    result = {"address": server.address, **_counts(content.overview)}
    end = _("Ctrl-C stops the server.")
    common.finish(result, *figures(result), end, bundle=sentences.embedder.bundle)
    sys.stdout.flush()
    try:
        sentences.compute_words()
        server.wait()
    except KeyboardInterrupt:
        return


def _counts(data: dict[str, Any]) -> dict[str, Any]:
    return {
        "words": [word for word, *_ in data["words"]],
        "occurrences": len(data["points"]),
        "lines": len(data["lines"]),
    }
