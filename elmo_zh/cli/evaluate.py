"""The command that measures the perplexity of text under a model."""

from dataclasses import asdict
from pathlib import Path

import click

from elmo_zh.cli.model_options import (
    load_model,
    model_option,
    model_path,
    refuse_reading_of_segmented,
    refuse_settings_of_the_model,
    segmented_option,
    stateful_option,
)
from elmo_zh.cli.options import Common, common_options_of_readers, device_option, input_argument, input_options
from elmo_zh.run.reporter import counted


@click.command()
@input_argument
@model_option
@segmented_option
@input_options
@stateful_option
@device_option
@common_options_of_readers
@click.pass_obj
def evaluate(
    common: Common, files: tuple[str, ...], model: Path | None, segmented: bool, stateful: bool, device: str | None
) -> None:
    """Measure exact perplexity and bits per character of text.

    Use it to compare models on the same text; bits per character can be compared across vocabularies. FILE is a text in
    any form that segment reads, a folder, or - for standard input. Raw text is split into sentences and words as in
    training. No line is left out: what cannot be read is an error.

    \b
    Example:
      elmo-zh evaluate heldout.txt --model runs/mine/model
      elmo-zh evaluate reviews.csv --field review --model runs/mine/model
      elmo-zh evaluate runs/mine/segmented/heldout-00000.txt --segmented --json
    """
    config = common.resolve()
    refuse_settings_of_the_model(common, "evaluate")
    refuse_reading_of_segmented(common, segmented=segmented)
    from elmo_zh.allocator import keep_freed_memory
    from elmo_zh.bundle.description import describe_model
    from elmo_zh.corpus.input_texts import input_text, opened_inputs
    from elmo_zh.embed.unknown_rate import describe_unknown_rate
    from elmo_zh.scoring.evaluate import evaluate_files

    keep_freed_memory()
    with opened_inputs(files, common.console) as sources:
        bundle = load_model(common, model_path(model), "perplexity is", stateful=stateful)
        found = evaluate_files(
            bundle,
            [input_text(source, config.text, segmented=segmented) for source in sources.sources],
            segmented=segmented,
            stateful=stateful,
            device=device or "auto",
            reporter=common.console,
        )
    line = describe_unknown_rate(
        bundle, found.num_tokens, found.num_unknown, lambda: found.unknown_words, segmented=segmented
    )
    if line:
        common.console.warn(f"{line} Unknown words make perplexity lower, so compare bits per character.")
    figures = found.figures
    common.finish(
        {**asdict(figures), "model": describe_model(bundle)},
        f"perplexity {figures.perplexity:,.2f} (forward {figures.forward_perplexity:,.2f},"
        f" backward {figures.backward_perplexity:,.2f}), {figures.bits_per_character:.4f} bits per character,"
        f" {figures.oov_rate:.2%} of the words unknown, {counted(figures.num_predictions, 'prediction')}",
    )
