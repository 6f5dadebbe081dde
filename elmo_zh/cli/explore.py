"""The command that writes a page on which the words of an index can be looked at."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from elmo_zh.cli.model_options import load_embedder, model_of_index, model_option, refuse_settings_of_the_model
from elmo_zh.cli.options import Common, common_options, device_option
from elmo_zh.run.reporter import counted, format_bytes

if TYPE_CHECKING:
    from elmo_zh.contexts.index import ContextIndex
    from elmo_zh.embed.embedder import ElmoEmbedder

_PORT = 8337


@click.command()
@click.argument("index_path", type=click.Path(path_type=Path, file_okay=False), metavar="INDEX")
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="PAGE",
    help="HTML file to write. Default: serve the page on this machine, until Ctrl-C.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help=f"Port to serve the page at, without --output; 0 takes any free one. Default {_PORT}.",
)
@click.option("--word", "words", multiple=True, metavar="WORD", help="Word of the index to show; may be repeated.")
@click.option(
    "--num-words",
    type=click.IntRange(1),
    default=20,
    show_default=True,
    help="Without --word, show so many words: those of two characters or more whose vectors differ most.",
)
@click.option(
    "--max-per-word",
    type=click.IntRange(1),
    default=100,
    show_default=True,
    help="Show at most so many occurrences of a word: of more, a random sample.",
)
@click.option(
    "--seed", type=click.IntRange(0, 2**32 - 1), default=1, show_default=True, help="Seed of the samples and of t-SNE."
)
@model_option
@device_option
@common_options
@click.pass_obj
def explore(
    common: Common,
    /,
    index_path: Path,
    output: Path | None,
    port: int | None,
    model: Path | None,
    device: str | None,
    **chosen: Any,
) -> None:
    """Make a page to look at words in their sentences.

    PAGE is one file, which a browser opens without a network. Without --output the page is served at 127.0.0.1, and has
    a box for any sentence. For each word it shows a map of its occurrences in each layer. A click on an occurrence
    shows its line with the surprisal of each token, the words that could stand in its place, and the most similar
    occurrences. INDEX is a folder that the command index has written. Without --model, the model is the one that made
    the index, if it is still there.

    \b
    Example:
      elmo-zh explore sample.index --output page.html
      elmo-zh explore sample.index
      elmo-zh explore news.index --output page.html --word 苹果 --word 银行 --max-per-word 300
    """
    config = common.resolve()
    refuse_settings_of_the_model(common, "explore", also="embed")
    from elmo_zh.contexts.explore.chosen_points import PageChoice
    from elmo_zh.contexts.explore.page import check_packages
    from elmo_zh.contexts.explore.page_data import build_page_data
    from elmo_zh.contexts.index import ContextIndex
    from elmo_zh.errors import OutputError

    if output is not None and port is not None:
        raise click.UsageError("--port has no effect with --output, which serves nothing. Leave out one of them.")
    if output is not None and output.exists() and not common.force:
        raise OutputError(f"{output} exists already. Choose another --output, or replace it with --force.")
    check_packages()
    index = ContextIndex.load(index_path)
    made_with = index.model
    embedder = load_embedder(
        common,
        model_of_index(index, model),
        config.embed,
        device,
        precision=made_with["precision"],
        unknown=made_with["unknown"],
    )
    index.require_model(embedder.bundle.digest, embedder.bundle.path)
    data = build_page_data(index, embedder, PageChoice(**chosen), device or "auto", common.console)
    if output is None:
        _serve(common, index, embedder, data, device or "auto", _PORT if port is None else port)
    else:
        _write(common, embedder, output, data)


def _serve(
    common: Common, index: "ContextIndex", embedder: "ElmoEmbedder", data: dict[str, Any], device: str, port: int
) -> None:
    """Serve the page until Ctrl-C, which is how it should end."""
    from elmo_zh.contexts.explore.live_sentences import LiveSentences
    from elmo_zh.contexts.explore.page import build_page
    from elmo_zh.contexts.explore.server import ExploreServer

    with ExploreServer(build_page(data, live=True), LiveSentences(index, embedder, device), port) as server:
        common.finish(
            {"address": server.address, **_content(embedder, data)},
            f"Open {server.address} in a browser. Ctrl-C ends the server.",
        )
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            common.console.note("The server has ended.")


def _content(embedder: "ElmoEmbedder", data: dict[str, Any]) -> dict[str, Any]:
    from elmo_zh.bundle.description import describe_model

    return {
        "words": [word for word, *_ in data["words"]],
        "occurrences": len(data["points"]),
        "lines": len(data["lines"]),
        "model": describe_model(embedder.bundle),
    }


def _write(common: Common, embedder: "ElmoEmbedder", output: Path, data: dict[str, Any]) -> None:
    from elmo_zh.contexts.explore.page import write_page

    num_bytes = write_page(data, output)
    words = data["words"]
    common.finish(
        {"output": str(output), "bytes": num_bytes, **_content(embedder, data)},
        f"{counted(len(data['points']), 'occurrence')} of {counted(len(words), 'word')},"
        f" {format_bytes(num_bytes)}: {output}",
        f"Next: open {output.resolve().as_uri()} in a browser.",
    )
