"""The commands that index words in their sentences, look up similar occurrences, and show an index on a page."""

import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from elmo_zh.cli.declared import takes
from elmo_zh.cli.model_options import index_options, load_embedder, load_embedder_of, load_index, warn_of_unknown
from elmo_zh.cli.options import (
    ENGINE,
    FOLDER,
    INPUT,
    Common,
    common_options,
    common_options_of_readers,
    input_argument,
    reads,
    refuse_together,
    shared_options,
)
from elmo_zh.config.declare import declare
from elmo_zh.contexts import IndexOptions, PageChoice
from elmo_zh.errors import OptionError
from elmo_zh.language import _

if TYPE_CHECKING:
    from elmo_zh.contexts.index import ContextIndex
    from elmo_zh.contexts.index_text import IndexSettings
    from elmo_zh.embed.embedder import ElmoEmbedder
    from elmo_zh.explore.page import PageContent
    from elmo_zh.explore.points import PointLabels
    from elmo_zh.explore.server import ExploreServer, LiveSentences


@click.command()
@input_argument
@shared_options("model")
@shared_options("output", help="Folder to write.", metavar="INDEX", path=FOLDER, required=True)
@shared_options("segmented", *INPUT, "user_dictionary")
@takes(IndexOptions, "options")
@shared_options("embed.precision", "embed.unknown", "device", *ENGINE)
@common_options
@reads("embed")
def index(common: Common, /, files: tuple[str, ...], options: IndexOptions) -> None:
    """Index words by their vectors, to look up similar occurrences.

    Use it before neighbours, senses and drift; other commands, such as explore and concordance, can use the index too.
    FILE is a text in any format that the segment command reads, a folder, or - for standard input. INDEX is a folder
    that contains the vectors of words in their sentences, and the sentences themselves; docs/indexes.md describes it.
    An interrupted command resumes if it is run again.

    \b
    Example:
      elmo-zh index my-texts/ --split-sentences --output my.index
      elmo-zh index news/ reviews.csv --output news.index --min-count 5 --max-per-word 200
      elmo-zh index news.txt --output few.index --words words.txt --layers 1,2
    """
    if common.segmented:
        refuse_together("--segmented", {"--split-sentences": options.split_sentences})
    from elmo_zh.contexts.build_index import IndexJob
    from elmo_zh.contexts.index_text import describe_missing_words
    from elmo_zh.run.job import run_job

    with common.opened_texts(files, from_name=options.from_name) as texts:
        embedder = load_embedder(common)
        settings = _settings(embedder, options, segmented=common.segmented)
        job = IndexJob(embedder=embedder, texts=texts, output=common.written, settings=settings)
        with common.choose_engine(common.config).started(0) as engine:
            report = run_job(job, force=common.force, reporter=common.console, engine=engine)
    if missing := report.missing_words:
        common.console.warn(describe_missing_words(missing, "--words"))
    result = {**report.counts, "bytes": report.num_bytes, "missing_words": list(missing)}
    following = ("neighbours", "WORD", "--in", "SENTENCE", "--index", report.path)
    common.finish(result, bundle=embedder.bundle, following=following)


def _settings(embedder: "ElmoEmbedder", options: IndexOptions, *, segmented: bool) -> "IndexSettings":
    from elmo_zh.contexts.index_text import IndexSettings, indexed_layers, load_word_list, word_former
    from elmo_zh.errors import ElmoZhError

    layers = indexed_layers(options.layers, embedder.num_layers, "index", "--layers", ElmoZhError)
    words = load_word_list(options.words, word_former(embedder, segmented=segmented)) if options.words else None
    return IndexSettings(layers=layers, words=words, segmented=segmented, options=options)


@dataclass(frozen=True, kw_only=True)
class NeighbourOptions:
    """The options of `neighbours`: the sentence that contains the word, and what is compared and shown."""

    sentence: str = declare(..., "Sentence that contains the word.", names=("--in",), metavar="SENTENCE")
    same_word: bool = declare(False, "Show only occurrences of the same word.")
    layer: int | None = declare(None, "Layer whose vectors are compared. Default: the index's top layer.", least=0)
    top: int = declare(10, "Maximum number of occurrences to show.", least=1)


@click.command()
@click.argument("word", metavar="WORD")
@takes(NeighbourOptions, "options")
@index_options
@shared_options("device")
@common_options_of_readers
@reads("embed")
def neighbours(common: Common, /, word: str, options: NeighbourOptions) -> None:
    """Find the occurrences most similar to a word in a sentence.

    Use it to see which sense the model gives the word in that sentence. Each line shows the cosine between the word's
    vector and the occurrence's, the occurrence in its context, and its file and line; a repeated line is shown only
    once. If the segmenter does not return the word as a single token, the sentence is cut before and after it.

    \b
    Example:
      elmo-zh neighbours 苹果 --in 我昨天买了一斤苹果 --index my.index
      elmo-zh neighbours 苹果 --in 苹果发布了新手机 --index my.index --same-word --layer 1
    """
    if not word.strip():
        raise OptionError.unexpected('WORD ""', "苹果")
    from elmo_zh.contexts.occurrences import best_occurrence, distinct_neighbours, keyword_lines, require_occurrences

    index = load_index(common)
    layer = index.layers[-1] if options.layer is None else options.layer
    index.vectors(layer)  # an error if the index lacks it
    embedder = load_embedder_of(common, index)
    asked = best_occurrence(require_occurrences(embedder, options.sentence, word, segmented=index.is_segmented))
    [activations] = embedder.compute_vectors([asked.tokens])
    only = asked.word if options.same_word else None
    lines = distinct_neighbours(index, activations[layer, asked.position], layer, options.top, only)
    if cut := asked.describe_cut():
        common.console.note(cut)
    warn_of_unknown(common, embedder, asked.word)
    common.finish(
        {
            "word": asked.word,
            "tokens": asked.tokens,
            "position": asked.position,
            "layer": layer,
            "neighbours": [{**line.described(), "word": line.occurrence.word} for line in lines],
        },
        [*keyword_lines(lines), ""],
        bundle=embedder.bundle,
        following=("senses", asked.word, "--index", index.path),
    )


@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """The options of `explore` for serving the page."""

    port: int = declare(
        8337, "Port to serve the page on when --output is not given; 0 picks a free port.", least=0, most=65535
    )
    no_browser: bool = declare(False, "Do not open a browser; only print the address of the page.")


@click.command()
@click.argument("index_path", type=click.Path(path_type=Path), metavar="[INDEX|RUN]", required=False)
@shared_options(
    "output", help="HTML file to write. Default: serve the page on this machine until you press Ctrl-C.", metavar="PAGE"
)
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
def explore(common: Common, /, index_path: Path | None, serve: ServeOptions, choice: PageChoice) -> None:
    """Look at words in their sentences, on a page in the browser.

    Without INDEX, explore shows the model in $ELMO_ZH_MODEL; if that is not set, the latest run; and if there are no
    runs, the installed starter model. The command builds the index itself: for a run, in RUN/index, from the run's own
    text; for any other model, in runs/NAME-DIGITS.index, from elmo-zh's sample text (DIGITS are the first digits of the
    model's digest). To show another run or model, specify RUN or --model. INDEX is a folder that the index command
    wrote.

    The page has a map of each word's occurrences in each layer, coloured by usage, by source, or by your labels. A
    click on an occurrence shows its line with the surprisal of each token, words of similar meaning that could replace
    it, and the most similar occurrences. With --output the page is one file, which a browser can open offline. Without
    --output, the page is served at 127.0.0.1 and has a box in which you can type any sentence.

    \b
    Example:
      elmo-zh explore
      elmo-zh explore --output page.html --word 苹果 --word 银行
      elmo-zh explore my.index --labels senses.tsv --output page.html
    """
    from elmo_zh.concordance.kwic import note_longer_words
    from elmo_zh.concordance.query import TokenTable
    from elmo_zh.explore.page import PageContent, check_packages, write_page
    from elmo_zh.explore.server import ExploreServer, LiveSentences

    check_packages()
    output = common.output
    with ExitStack() as stack:
        stack.enter_context(common.claimed(".html", ".htm"))
        server = stack.enter_context(ExploreServer(serve.port)) if output is None else None
        # With --output, --force overwrites the page, not the index.
        index, embedder = _load(common, index_path, force=common.force and output is None)
        labels = _labels(index, choice.labels)
        for word in choice.words:
            index.occurrences(word)  # an error if the index does not have the word
            note_longer_words(TokenTable.of_index(index), index.normalise(word), common.console)
        content = PageContent(index, embedder, choice, common.console, labels)
        if server is not None:
            opens = not (serve.no_browser or common.as_json)
            _show(common, server, content, LiveSentences(index, embedder, content), opens=opens)
        elif output is not None:
            data = content.whole()
            result = {"bytes": write_page(data, output), **_counts(data)}
            following = _("Open {address} in a browser.").format(address=output.resolve().as_uri())
            common.finish(result, bundle=embedder.bundle, following=following)


def _load(common: Common, path: Path | None, *, force: bool) -> tuple["ContextIndex", "ElmoEmbedder"]:
    """Return the index to show and its model; for a run or a model, use its own index, which is built if needed."""
    from elmo_zh.contexts.index import ContextIndex
    from elmo_zh.explore.own_index import Subject, load_own_index
    from elmo_zh.run.layout import is_run

    if path is None or is_run(path):
        refuse_together("RUN", {"--model": path is not None and common.model is not None})
        subject = Subject.find(path or common.model)
        embedder = load_embedder(common, subject.model)
        return load_own_index(subject, embedder, force=force, reporter=common.console), embedder
    index = ContextIndex.load(path)
    return index, load_embedder_of(common, index)


def _labels(index: "ContextIndex", path: Path | None) -> "PointLabels | None":
    """Return the labels read from a table; by default, the senses marked in the sample text, or None for other text."""
    from elmo_zh.explore.own_index import labels_of_sample
    from elmo_zh.explore.points import PointLabels

    table = path or labels_of_sample(index)
    labels = PointLabels.load(table, index.sources) if table else None
    return labels if labels and (path or labels.words) else None


def _show(
    common: Common, server: "ExploreServer", content: "PageContent", sentences: "LiveSentences", *, opens: bool
) -> None:
    """Serve the page, and compute the rest of it meanwhile, until the user presses Ctrl-C."""
    from elmo_zh.explore.page import build_page
    from elmo_zh.explore.server import open_in_browser

    with server.serving(build_page(content.overview, live=True), sentences):
        if not (opens and open_in_browser(server.address)):
            common.console.note(_("Open {address} in a browser.").format(address=server.address))
        result = {"address": server.address, **_counts(content.overview)}
        common.finish(result, bundle=sentences.embedder.bundle)
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
