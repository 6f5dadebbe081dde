"""The command that writes a page on which the words of an index can be looked at."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from elmo_zh.cli.model_options import load_embedder, model_option, refuse_settings_of_the_model
from elmo_zh.cli.neighbours import choose_model
from elmo_zh.cli.options import Common, common_options, device_option
from elmo_zh.run.reporter import counted, format_bytes

if TYPE_CHECKING:
    from elmo_zh.embed.embedder import ElmoEmbedder


@click.command()
@click.argument("index_path", type=click.Path(path_type=Path, file_okay=False), metavar="INDEX")
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    metavar="PAGE",
    help="HTML file to write.",
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
    output: Path,
    model: Path | None,
    device: str | None,
    **chosen: Any,
) -> None:
    """Write a page to look at words in their sentences.

    PAGE is one file, which a browser opens without a network. For each word it shows a map of its occurrences in each
    layer. A click on an occurrence shows its line with the surprisal of each token, the words that could stand in its
    place, and the most similar occurrences. INDEX is a folder that the command index has written. Without --model, the
    model is the one that made the index, if it is still there.

    \b
    Example:
      elmo-zh explore sample.index --output page.html
      elmo-zh explore news.index --output page.html --word 苹果 --word 银行 --max-per-word 300
    """
    config = common.resolve()
    refuse_settings_of_the_model(common, "explore", also="embed")
    from elmo_zh.contexts.explore.chosen_points import PageChoice
    from elmo_zh.contexts.explore.page import check_packages, write_page
    from elmo_zh.contexts.explore.page_data import build_page_data
    from elmo_zh.contexts.index import ContextIndex
    from elmo_zh.errors import OutputError

    if output.exists() and not common.force:
        raise OutputError(f"{output} exists already. Choose another --output, or replace it with --force.")
    check_packages()
    index = ContextIndex.load(index_path)
    made_with = index.model
    embedder = load_embedder(
        common,
        choose_model(index, model),
        config.embed,
        device,
        precision=made_with["precision"],
        unknown=made_with["unknown"],
    )
    index.require_model(embedder.bundle.digest, embedder.bundle.path)
    data = build_page_data(index, embedder, PageChoice(**chosen), device or "auto", common.console)
    num_bytes = write_page(data, output)
    _finish(common, embedder, output, data, num_bytes)


def _finish(common: Common, embedder: "ElmoEmbedder", output: Path, data: dict[str, Any], num_bytes: int) -> None:
    from elmo_zh.bundle.description import describe_model

    words = [word for word, *_ in data["words"]]
    common.finish(
        {
            "output": str(output),
            "words": words,
            "occurrences": len(data["points"]),
            "lines": len(data["lines"]),
            "bytes": num_bytes,
            "model": describe_model(embedder.bundle),
        },
        f"{counted(len(data['points']), 'occurrence')} of {counted(len(words), 'word')},"
        f" {format_bytes(num_bytes)}: {output}",
        f"Next: open {output.resolve().as_uri()} in a browser.",
    )
