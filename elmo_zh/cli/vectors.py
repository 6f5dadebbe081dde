"""The commands that use a model."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import click

from elmo_zh.cli.options import Common, common_options, device_option
from elmo_zh.errors import CorpusError

DEFAULT_MODEL = "runs/latest/model"

model_option = click.option(
    "--model",
    type=click.Path(path_type=Path),
    metavar="BUNDLE",
    help=f"Folder of the model; default $ELMO_ZH_MODEL, else {DEFAULT_MODEL}.",
)
segmented_option = click.option(
    "--segmented", is_flag=True, help="The text is one sentence a line, its tokens split by single spaces."
)

stateful_option = click.option(
    "--stateful",
    is_flag=True,
    help="Carry the LSTM state from sentence to sentence, as the original programs do; one by one, so slower.",
)
_FROM_ZERO = "This model was trained with carried state, and every sentence starts from zero state here"
_WARM_UP = "Give it a warm state (elmo-zh convert --warm-on TEXT, or export the run again), or use --stateful."


def _model_path(given: Path | None) -> Path:
    return given or Path(os.environ.get("ELMO_ZH_MODEL") or DEFAULT_MODEL)


@click.command()
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@model_option
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Default: FILE.hdf5.")
@segmented_option
@click.option("--layers", metavar="all|average|top|N", help="Which layers to write; default all.")
@click.option("--dtype", type=click.Choice(["float32", "float16"]), help="Kind of numbers; default float32.")
@click.option("--sentence-index", is_flag=True, help="Add AllenNLP's sentence_to_index.")
@stateful_option
@device_option
@common_options
@click.pass_obj
def embed(
    common: Common,
    file: Path,
    model: Path | None,
    output: Path | None,
    segmented: bool,
    layers: str | None,
    dtype: str | None,
    sentence_index: bool,
    stateful: bool,
    device: str | None,
) -> None:
    """Write the vectors of each line of FILE to HDF5; FILE - is stdin.

    Dataset "0", "1", ... is the line's vectors, from line 0: (layers, tokens, numbers). tokens/0, ... are its words.

    \b
    Example:
      elmo-zh embed file.txt
      elmo-zh embed file.txt --layers average --dtype float16 --output vectors.hdf5
      echo 今天天气很好 | elmo-zh embed -
    """
    config = common.resolve()
    output = output or Path("embeddings.hdf5" if str(file) == "-" else f"{file}.hdf5")
    with _readable(file) as source:
        from elmo_zh.allocator import keep_freed_memory
        from elmo_zh.bundle.read import load_bundle
        from elmo_zh.embed.dump import DumpSettings, dump_vectors
        from elmo_zh.embed.embedder import ElmoEmbedder

        keep_freed_memory()
        bundle = load_bundle(_model_path(model))
        if bundle.needs_warm_state() and not stateful:
            common.console.warn(f"{_FROM_ZERO}, so its vectors are poorer than they could be. {_WARM_UP}")
        settings = DumpSettings(
            segmented=segmented,
            layers=layers or config.embed.layers,
            dtype=dtype or config.embed.dtype,
            sentence_index=sentence_index,
            stateful=stateful,
        )
        batch_tokens = config.embed.batch_tokens
        embedder = ElmoEmbedder(bundle, device or "auto", stateful=stateful, batch_tokens=batch_tokens)
        counts = dump_vectors(embedder, source, output, settings, force=common.force, reporter=common.console)
    cut = f", {counts.cut_tokens:,} too long and cut" if counts.cut_tokens else ""
    common.finish(
        {"output": str(output), **asdict(counts)},
        f"{counts.lines:,} lines ({counts.empty_lines:,} empty), {counts.tokens:,} tokens"
        f" ({counts.unknown_tokens:,} unknown{cut}), {output.stat().st_size / 1e6:,.1f} MB: {output}",
    )


@contextmanager
def _readable(file: Path) -> Iterator[Path]:
    """Yield a file to read: the one given, or stdin spooled to a temporary file, so that it can be read twice."""
    if str(file) != "-":
        if not file.is_file():
            raise CorpusError(f"{file} does not exist or is no file. Give a text file, one sentence a line.")
        yield file
        return
    with tempfile.NamedTemporaryFile(prefix="elmo-zh-", suffix=".txt") as spool:
        shutil.copyfileobj(sys.stdin.buffer, spool)
        spool.flush()
        yield Path(spool.name)


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@model_option
@segmented_option
@stateful_option
@device_option
@common_options
@click.pass_obj
def evaluate(
    common: Common, files: tuple[str, ...], model: Path | None, segmented: bool, stateful: bool, device: str | None
) -> None:
    """Measure exact perplexity and bits per character of text.

    \b
    Example:
      elmo-zh evaluate heldout.txt --model runs/mine/model
      elmo-zh evaluate runs/mine/segmented/heldout-00000.txt --segmented --json
    """
    common.resolve()
    from elmo_zh.allocator import keep_freed_memory
    from elmo_zh.bundle.read import load_bundle
    from elmo_zh.text.corpus import find_corpus_files
    from elmo_zh.training.evaluate import evaluate_files

    keep_freed_memory()
    found = find_corpus_files(files)
    bundle = load_bundle(_model_path(model))
    if bundle.needs_warm_state() and not stateful:
        common.console.warn(f"{_FROM_ZERO}, so its perplexity is worse than it could be. {_WARM_UP}")
    figures = evaluate_files(
        bundle,
        found.paths,
        segmented=segmented,
        stateful=stateful,
        device=device or "auto",
        reporter=common.console,
    )
    common.finish(
        asdict(figures),
        f"perplexity {figures.perplexity:,.2f} (forward {figures.forward_perplexity:,.2f},"
        f" backward {figures.backward_perplexity:,.2f}), {figures.bits_per_character:.4f} bits per character,"
        f" {figures.oov_rate:.2%} of the words unknown, {figures.num_predictions:,} predictions",
    )
