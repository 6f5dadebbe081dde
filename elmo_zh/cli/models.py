"""The commands about models themselves: what one is, whether it is sound, and how another program's becomes one."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from elmo_zh.cli.options import Common, common_options, device_option, layout_option
from elmo_zh.config import config_names
from elmo_zh.errors import BundleError

if TYPE_CHECKING:
    from elmo_zh.bundle.read import Bundle
    from elmo_zh.bundle.write import BundleSource
    from elmo_zh.convert.published import KnownText
    from elmo_zh.embed.deviation import Deviation

bundle_argument = click.argument("bundle", type=click.Path(path_type=Path))
_file = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.argument("source", type=click.Path(path_type=Path))
@click.option(
    "--output", type=click.Path(path_type=Path, file_okay=False), required=True, metavar="DIR", help="The new bundle."
)
@click.option("--options", type=_file, metavar="FILE", help="The options, if SOURCE does not show which file it is.")
@click.option("--weights", type=_file, metavar="FILE", help="The weights, likewise.")
@click.option("--vocab", type=_file, metavar="FILE", help="The vocabulary, one word a line.")
@click.option("--embedding", type=_file, metavar="FILE", help="Token embeddings (vocab_embedding.hdf5), token mode.")
@click.option("--warm-on", type=_file, metavar="TEXT", help="Text whose sentence ends give the warm state.")
@click.option("--segmented", is_flag=True, help="TEXT is one sentence a line, its tokens split by single spaces.")
@click.option("--straight-marks", is_flag=True, help="ELMoForManyLangs: begin and end of a word are not swapped.")
@layout_option
@common_options
@click.pass_obj
def convert(
    common: Common,
    source: Path,
    output: Path,
    options: Path | None,
    weights: Path | None,
    vocab: Path | None,
    embedding: Path | None,
    warm_on: Path | None,
    segmented: bool,
    straight_marks: bool,
    layout: str,
) -> None:
    """Turn another program's model into a bundle.

    SOURCE is a folder or zip archive: options.json and weights.hdf5 of bilm-tf or AllenNLP, a simple_elmo folder or
    NLPL archive, a folder of ELMoForManyLangs, or a bundle (to give it a warm state or another layout). No code
    in it is run, and nothing is written unless all of it fits together.

    Say how the model's text was segmented if you know it (--set text.segmenter=jieba); else `embed` takes segmented
    text only. Other programs train with carried state, so that their models are poor from zero state; --warm-on gives
    every sentence a better start, without making its vectors depend on other sentences.

    \b
    Example:
      elmo-zh convert elmo-2x4096/ --output models/published
      elmo-zh convert 179.zip --output models/zh --warm-on news.txt --set text.segmenter=jieba
      elmo-zh convert runs/mine/model --output for-simple-elmo --layout simple_elmo
    """
    common.resolve()
    if segmented and warm_on is None:
        raise click.UsageError("--segmented says how --warm-on TEXT is written, and there is none.")
    if warm_on is not None and layout != "bundle":
        raise click.UsageError(f"--warm-on needs --layout bundle: the layout {layout} cannot hold a warm state.")
    from elmo_zh.convert.convert import ConvertSettings, convert_model
    from elmo_zh.convert.model_files import ChosenFiles

    settings = ConvertSettings(
        chosen=ChosenFiles(options=options, weights=weights, vocab=vocab, token_embeddings=embedding),
        text=_known_text(common),
        warm_on=warm_on,
        segmented=segmented,
        swapped_marks=not straight_marks,
        layout=layout,
    )
    found = convert_model(source, output, settings, force=common.force, reporter=common.console)
    _report_conversion(common, found, output, layout)


def _report_conversion(common: Common, found: "BundleSource", output: Path, layout: str) -> None:
    """Tell what was written and what its user should know of it."""
    from elmo_zh.bundle.compatibility import describe_readers

    shape, has_warm_state = found.bilm.shape, found.bilm.warm_cell is not None and layout == "bundle"
    if found.bilm.warm_cell is not None and not has_warm_state:
        common.console.note(f"The layout {layout} cannot hold the model's warm state, which is left out.")
    if found.carry_state and not has_warm_state and layout == "bundle":
        common.console.note(
            "This model was trained with carried state, so its vectors from zero state are poor. Give it a warm state"
            " with --warm-on TEXT, or use --stateful."
        )
    common.finish(
        {"output": str(output), "mode": shape.mode, "warm_state": has_warm_state},
        f"{output}: {shape.mode} mode, {shape.num_layers} layers of {shape.cell_dim} / {shape.projection_dim},"
        f" {shape.num_parameters():,} parameters, {_rows(found.vocabulary)}.",
        *(describe_readers(shape) if layout != "safetensors" else ()),
    )


def _rows(vocabulary: Any) -> str:
    return f"{len(vocabulary):,} vocabulary rows" if vocabulary else "no vocabulary"


def _known_text(common: Common) -> "KnownText":
    """Return what the user says of the model's text; without a word of it, nothing is known."""
    from elmo_zh.convert.published import KnownText

    config = common.resolve().text
    said = {name for name in config_names(common.config_path, common.assignments) if name.startswith("text.")}
    if not said:
        return KnownText()
    if not said & {
        "text.segmenter",
        "text.user_dictionary",
        "text.jieba_hmm",
    }:  # the last two are those of jieba and rjieba
        raise BundleError(f"{', '.join(sorted(said))} without text.segmenter says too little. Give both, or neither.")
    dictionary = Path(config.user_dictionary) if config.user_dictionary else None
    if dictionary is not None and not dictionary.is_file():
        raise BundleError(f"{dictionary} is missing. Give text.user_dictionary a file, or leave it out.")
    return KnownText(config=config, user_dictionary=dictionary)


@click.command()
@bundle_argument
@click.option(
    "--precision",
    "with_precisions",
    is_flag=True,
    help="Measure how far bfloat16 and int8 vectors of the bundle's own sentences are from float32's.",
)
@common_options
@click.pass_obj
def info(common: Common, bundle: Path, with_precisions: bool) -> None:
    """Print what a model bundle is: sizes, segmenter, training, digests, which programs can read it.

    \b
    Example:
      elmo-zh info runs/mine/model
      elmo-zh info runs/mine/model --json
      elmo-zh info runs/mine/model --precision
    """
    common.resolve()
    from elmo_zh.bundle.compatibility import describe_readers, refusals
    from elmo_zh.bundle.read import load_bundle

    loaded = load_bundle(bundle)
    shape = loaded.bilm.shape
    summary = {**_describe(loaded), "readers": refusals(shape)}
    lines = [f"{name + ':':22} {value}" for name, value in _for_people(summary)]
    if with_precisions:
        from elmo_zh.embed.deviation import measure_deviations
        from elmo_zh.embed.golden import load_golden

        found = measure_deviations(loaded, load_golden(loaded).sentences)
        summary["precisions"] = [asdict(deviation) for deviation in found]
        lines += map(_describe_deviation, found)
    common.finish(summary, f"{bundle}", *lines, *describe_readers(shape))


def _describe_deviation(found: "Deviation") -> str:
    return (
        f"{f'{found.precision}, layer {found.layer}:':22} differs from float32 by {found.mean:.1e} in the mean,"
        f" {found.largest:.1e} at most; cosine {found.cosine:.6f} in the mean, {found.lowest_cosine:.6f} at least"
    )


def _describe(bundle: "Bundle") -> dict[str, Any]:
    shape = bundle.bilm.shape
    sizes = {field.name: getattr(shape, field.name) for field in fields(shape) if field.name != "characters"}
    if bundle.vocabulary is None:
        del sizes["num_tokens"]
    softmax = sum(parameter.numel() for parameter in bundle.softmax.parameters()) if bundle.softmax else 0
    return {
        "path": str(bundle.path),
        "mode": shape.mode,
        "origin": bundle.info["origin"],
        "sizes": sizes,
        "characters": asdict(shape.characters) if shape.characters else None,
        "parameters": shape.num_parameters() + softmax,
        "softmax": bundle.softmax is not None,
        "vocabulary": len(bundle.vocabulary) if bundle.vocabulary else None,
        "segmenter": bundle.info["segmenter"],
        "text": bundle.info["text"],
        "carry_state": bundle.info["carry_state"],
        "warm_state": bundle.bilm.warm_cell is not None,
        "training": bundle.info["training"],
        "digests": bundle.info["digests"],
    }


def _for_people(summary: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield name and value of each line."""
    sizes, origin = summary["sizes"], summary["origin"]
    yield "mode", summary["mode"]
    if characters := summary["characters"]:
        filters = ", ".join(f"{count} of width {width}" for width, count in characters["filters"])
        yield "characters", f"{characters['num_slots']} slots, embedding {characters['embedding_dim']}"
        yield "filters", f"{filters}; {characters['activation']}; {characters['num_highways']} highway layers"
    yield (
        "layers",
        f"{sizes['num_layers']} in each direction, cell {sizes['cell_dim']}, projection {sizes['projection_dim']}",
    )
    skip = "with" if sizes["skip_connections"] else "without"
    yield "cell", f"clips {sizes['cell_clip']:g} / {sizes['projection_clip']:g} (0 is none), {skip} skip connections"
    softmax = "softmax included" if summary["softmax"] else "no softmax, so no perplexities"
    yield "parameters", f"{summary['parameters']:,}, {softmax}"
    yield "vocabulary", f"{summary['vocabulary']:,} rows" if summary["vocabulary"] else "none"
    segmenter = summary["segmenter"]
    yield "segmenter", f"{segmenter['name']} {segmenter['version']}" if segmenter else "not known: use --segmented"
    yield "state", _describe_state(summary)
    yield from _describe_training(summary["training"])
    yield "made by", str(origin.get("program", "elmo-zh"))
    yield from ((f"from {name}", digest) for name, digest in origin.get("files", {}).items())
    if isinstance(start := origin.get("started_from"), dict):
        tokens = _number(start.get("tokens") or "an unknown number of", ",")
        yield "started from", f"{start.get('digest')}, trained on {tokens} tokens"
    yield from summary["digests"].items()


def _describe_state(summary: Mapping[str, Any]) -> str:
    if not summary["carry_state"]:
        return "trained from zero state at each sentence"
    if summary["warm_state"]:
        return "trained with carried state; sentences start from the warm state"
    return (
        "trained with carried state, poor from zero state: give it a warm state (convert --warm-on) or use --stateful"
    )


def _describe_training(training: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if {"tokens", "epochs"} <= training.keys():
        yield "trained on", f"{_number(training['tokens'], ',')} tokens, {_number(training['epochs'], '.2f')} epochs"
    heldout = training.get("heldout")
    if isinstance(heldout, dict) and {"perplexity", "bits_per_character"} <= heldout.keys():
        perplexity, bits = _number(heldout["perplexity"], ",.1f"), _number(heldout["bits_per_character"], ".3f")
        yield "held-out text", f"perplexity {perplexity}, {bits} bits per character ({training.get('heldout_set')})"


def _number(value: Any, form: str) -> str:
    """Return a number in a form; anything else that stands in its place, as it is."""
    return format(value, form) if isinstance(value, int | float) else str(value)


@click.command()
@bundle_argument
@device_option
@common_options
@click.pass_obj
def selftest(common: Common, bundle: Path, device: str | None) -> None:
    """Check on this machine that a model bundle does what it should; exit status 1 if not.

    Stored vectors come out again; the forward LM cannot see the future nor the backward LM the past; batch and order
    change nothing; vocabulary, embedding and softmax belong together. For you to judge, it prints the neighbours of
    frequent words: if they make no sense, rows and words do not belong together, or the model is hardly trained.

    \b
    Example:
      elmo-zh selftest runs/mine/model
    """
    common.resolve()
    from elmo_zh.bundle.read import load_bundle
    from elmo_zh.embed.selftest import find_neighbours, run_selftest

    loaded = load_bundle(bundle)
    checks = run_selftest(loaded, device or "auto")
    neighbours = find_neighbours(loaded)
    failed = [check.name for check in checks if not check.passed]
    common.finish(
        {
            "passed": not failed,
            "checks": [asdict(check) for check in checks],
            "neighbours": [asdict(entry) for entry in neighbours],
        },
        *(f"{'ok    ' if check.passed else 'FAILED'} {check.name}: {check.found}" for check in checks),
        *(f"{entry.table}: {entry.word} ~ {' '.join(entry.neighbours)}" for entry in neighbours),
    )
    if failed:
        raise BundleError(f"{bundle} does not hold: {'; '.join(failed)}. Export or copy the bundle again.")
