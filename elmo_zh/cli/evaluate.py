"""The command that measures the perplexity of text under a model."""

from dataclasses import asdict
from pathlib import Path

import click

from elmo_zh.cli.model_options import FROM_ZERO, WARM_UP, model_option, model_path, segmented_option, stateful_option
from elmo_zh.cli.options import Common, common_options_of_readers, device_option


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@model_option
@segmented_option
@stateful_option
@device_option
@common_options_of_readers
@click.pass_obj
def evaluate(
    common: Common, files: tuple[str, ...], model: Path | None, segmented: bool, stateful: bool, device: str | None
) -> None:
    """Measure exact perplexity and bits per character of text.

    Use it to compare models on the same text; bits per character can be compared across vocabularies.

    \b
    Example:
      elmo-zh evaluate heldout.txt --model runs/mine/model
      elmo-zh evaluate runs/mine/segmented/heldout-00000.txt --segmented --json
    """
    common.resolve()
    from elmo_zh.allocator import keep_freed_memory
    from elmo_zh.bundle.read import load_bundle
    from elmo_zh.corpus.files import find_corpus_files
    from elmo_zh.training.evaluate import evaluate_files

    keep_freed_memory()
    found = find_corpus_files(files)
    bundle = load_bundle(model_path(model))
    if bundle.needs_warm_state() and not stateful:
        common.console.warn(f"{FROM_ZERO}, so its perplexity is worse than it could be. {WARM_UP}")
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
