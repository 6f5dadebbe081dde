"""The commands for model bundles: info, selftest and convert."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from elmo_zh.bundle.find_bundle import find_bundle
from elmo_zh.bundle.layout import BundleForm
from elmo_zh.cli.console import one_line
from elmo_zh.cli.options import Common, common_options, common_options_of_readers, output_option, shared_options, takes
from elmo_zh.cli.stages import embed_with
from elmo_zh.config import config_names
from elmo_zh.config.fields import option
from elmo_zh.errors import BundleError, OptionError
from elmo_zh.language import translate
from elmo_zh.run.reporter import aligned, counted, format_date

if TYPE_CHECKING:
    from elmo_zh.bundle.read import Bundle
    from elmo_zh.bundle.write import BundleSource
    from elmo_zh.convert.published import KnownText
    from elmo_zh.embed.selftest import Deviation

bundle_argument = click.argument("bundle", type=click.Path(path_type=Path))
_FILE = {"dir_okay": False}


@dataclass(frozen=True, kw_only=True)
class Conversion:
    """The model files to convert, and what to do with them."""

    options: Path | None = option(None, path=_FILE, metavar="FILE")
    """File with the model's options. Default: the file found in SOURCE."""
    weights: Path | None = option(None, path=_FILE, metavar="FILE")
    """File with the model's weights. Default: the file found in SOURCE."""
    vocab: Path | None = option(None, path=_FILE, metavar="FILE")
    """File with the vocabulary, one word per line. Default: the file found in SOURCE."""
    token_embeddings: Path | None = option(None, names=("--embedding",), path=_FILE, metavar="FILE")
    """HDF5 file with the token embeddings of a token-mode model. Default: vocab_embedding.hdf5 in SOURCE."""
    warm_on: Path | None = option(None, path=_FILE, metavar="TEXT")
    """Text from which to compute a warm state: the mean state after the last words of its sentences."""
    segmented: bool = option(False)
    """The --warm-on text has one sentence per line, with tokens separated by single spaces."""
    straight_marks: bool = option(False)
    """Do not swap the begin and end marks of words. All released ELMoForManyLangs models need the swap."""


@click.command()
@click.argument("source", type=click.Path(path_type=Path))
@output_option("DIR", "Folder of the new bundle.", is_folder=True, required=True)
@takes(Conversion, "chosen")
@takes(BundleForm, "form")
@common_options
def convert(common: Common, /, source: Path, output: Path, chosen: Conversion, form: BundleForm) -> None:
    """Convert another program's model to a bundle.

    Use it to embed with a published model. SOURCE is a folder or zip archive: options.json and weights.hdf5 of bilm-tf
    or AllenNLP, a simple_elmo folder or NLPL archive, an ELMoForManyLangs folder, or a bundle (to add a warm state,
    or to change its layout or file size). No code from SOURCE is run. Nothing is written unless all files fit together.

    If you know how the model's text was segmented, specify it (--set text.segmenter=jieba); otherwise `embed` accepts
    only segmented text. Other programs carry the state from sentence to sentence in training, so their models work
    poorly if every sentence starts from a zero state. --warm-on stores a better initial state; vectors still do not
    depend on other sentences.

    \b
    Example:
      elmo-zh convert elmo-2x4096/ --output models/published
      elmo-zh convert 179.zip --output models/zh --warm-on news.txt --set text.segmenter=jieba
      elmo-zh convert runs/mine/model --output for-simple-elmo --layout simple_elmo
    """
    common.resolve()
    if chosen.segmented and chosen.warm_on is None:
        raise click.UsageError("--segmented describes the text of --warm-on, which is missing. Add --warm-on TEXT.")
    if chosen.warm_on is not None and form.layout != "bundle":
        raise click.UsageError(f"--warm-on needs --layout bundle: the layout {form.layout} cannot store a warm state.")
    from elmo_zh.convert.convert import ConvertSettings, convert_model
    from elmo_zh.convert.model_files import ChosenFiles

    files = {each.name: getattr(chosen, each.name) for each in fields(ChosenFiles)}
    settings = ConvertSettings(
        chosen=ChosenFiles(**files),
        text=_known_text(common),
        warm_on=chosen.warm_on,
        segmented=chosen.segmented,
        swapped_marks=not chosen.straight_marks,
        form=form,
    )
    found = convert_model(find_bundle(source), output, settings, force=common.force, reporter=common.console)
    _report_conversion(common, found, output, form.layout)


def _report_conversion(common: Common, found: "BundleSource", output: Path, layout: str) -> None:
    from elmo_zh.bundle.compatibility import describe_readers
    from elmo_zh.bundle.weights import count_parameters

    shape, has_warm_state = found.bilm.shape, found.bilm.warm_cell is not None and layout == "bundle"
    if found.bilm.warm_cell is not None and not has_warm_state:
        common.console.note(f"The layout {layout} cannot store the model's warm state, so the warm state is left out.")
    if found.carry_state and not has_warm_state and layout == "bundle":
        common.console.note(
            "This model was trained with carried state, so its vectors from zero state are poor. Convert it again with"
            " --warm-on TEXT to give it a warm state, or embed with --stateful."
        )
    rows = f"{len(found.vocabulary):,} vocabulary rows" if found.vocabulary else "no vocabulary"
    common.finish(
        {"output": str(output), "mode": shape.mode, "warm_state": has_warm_state},
        f"Wrote {output}: {shape.mode} mode, layers: {shape.num_layers} (cell {shape.cell_dim},"
        f" projection {shape.projection_dim}), {count_parameters(found.bilm, found.softmax):,} parameters, {rows}.",
        *(describe_readers(shape) if layout not in ("safetensors", "bundle") else ()),
        *([embed_with(output, segmented=found.text is None)] if layout == "bundle" else ()),
    )


def _known_text(common: Common) -> "KnownText":
    """Return the text settings that the user gave for the model; without any, they are unknown."""
    from elmo_zh.convert.published import KnownText

    config = common.resolve().text
    given = {name for name in config_names(common.config_path, common.assignments) if name.startswith("text.")}
    if not given:
        return KnownText()
    # Only jieba and rjieba use text.user_dictionary or text.jieba_hmm, so either setting implies a segmenter.
    if not given & {"text.segmenter", "text.user_dictionary", "text.jieba_hmm"}:
        raise OptionError(
            f"Settings given without text.segmenter: {', '.join(sorted(given))}. Add --set text.segmenter=NAME, or"
            " leave out these settings."
        )
    dictionary = Path(config.user_dictionary) if config.user_dictionary else None
    if dictionary is not None and not dictionary.is_file():
        raise BundleError(
            f"{dictionary} is missing. Set text.user_dictionary to an existing file, or leave out this setting."
        )
    return KnownText(config=config, user_dictionary=dictionary)


@click.command()
@bundle_argument
@click.option(
    "--precision",
    "with_precisions",
    is_flag=True,
    help="Measure how much bfloat16 and int8 vectors of the bundle's stored sentences differ from float32 ones.",
)
@common_options_of_readers
def info(common: Common, /, bundle: Path, with_precisions: bool) -> None:
    """Show the sizes, segmenter and training of a model bundle.

    Use it to find out how a model was made, what its files' digests are, and which other programs can read it.

    \b
    Example:
      elmo-zh info runs/mine/model
      elmo-zh info runs/mine/model --json
      elmo-zh info runs/mine/model --precision
    """
    common.resolve()
    from elmo_zh.bundle.compatibility import describe_readers, refusals
    from elmo_zh.bundle.read import load_bundle

    loaded = load_bundle(find_bundle(bundle))
    shape = loaded.bilm.shape
    summary = {**_describe_bundle(loaded), "readers": refusals(shape)}
    named = ((f"{name}:", str(value)) for name, value in _for_people(summary))
    lines = [*aligned([[translate(one_line(each)) for each in row] for row in named], left=(0, 1))]
    if with_precisions:
        from elmo_zh.bundle.golden import load_golden
        from elmo_zh.bundle.layout import BundleLayout
        from elmo_zh.embed.selftest import measure_deviations

        found = measure_deviations(loaded, load_golden(BundleLayout(loaded.path).golden).sentences)
        summary["precisions"] = [asdict(deviation) for deviation in found]
        lines += map(_describe_deviation, found)
    common.finish(summary, f"{bundle}", *lines, *describe_readers(shape))


def _describe_deviation(found: "Deviation") -> str:
    return (
        f"{f'{found.precision}, layer {found.layer}:':22} differs from float32 by {found.mean:.1e} on average,"
        f" {found.largest:.1e} at most; cosine {found.cosine:.6f} on average, {found.lowest_cosine:.6f} at least"
    )


def _describe_bundle(bundle: "Bundle") -> dict[str, Any]:
    from elmo_zh.bundle.weights import count_parameters, is_tied

    shape = bundle.bilm.shape
    sizes = {field.name: getattr(shape, field.name) for field in fields(shape) if field.name != "characters"}
    if bundle.vocabulary is None:
        del sizes["num_tokens"]
    return {
        "path": str(bundle.path),
        "mode": shape.mode,
        "origin": bundle.info["origin"],
        "sizes": sizes,
        "characters": asdict(shape.characters) if shape.characters else None,
        "parameters": count_parameters(bundle.bilm, bundle.softmax),
        "softmax": bundle.softmax is not None,
        "tied_softmax": is_tied(bundle.bilm, bundle.softmax),
        "vocabulary": len(bundle.vocabulary) if bundle.vocabulary else None,
        "segmenter": bundle.info["segmenter"],
        "text": bundle.info["text"],
        "carry_state": bundle.info["carry_state"],
        "warm_state": bundle.bilm.warm_cell is not None,
        "training": bundle.info["training"],
        "history": asdict(bundle.history),
        "digests": bundle.info["digests"],
    }


def _for_people(summary: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    sizes, origin = summary["sizes"], summary["origin"]
    yield "mode", summary["mode"]
    if cnn := summary["characters"]:
        filters = ", ".join(f"{count} of width {width}" for width, count in cnn["filters"])
        yield "characters", f"{cnn['num_slots']} slots, embedding {cnn['embedding_dim']}"
        yield "filters", f"{filters}; {cnn['activation']}; highway layers: {cnn['num_highways']}"
    yield (
        "layers",
        f"{sizes['num_layers']} in each direction, cell {sizes['cell_dim']}, projection {sizes['projection_dim']}",
    )
    skip = "with skip connections" if sizes["skip_connections"] else "without skip connections"
    cell, projection = sizes["cell_clip"], sizes["projection_clip"]
    cell_limit = f"state clipped at {cell:g}" if cell else "state not clipped"
    limit = f"projection clipped at {projection:g}" if projection else "projection not clipped"
    yield "cell", f"{cell_limit}, {limit}, {skip}"
    table = ", shared with the token table" if summary["tied_softmax"] else ""
    softmax = f"softmax included{table}" if summary["softmax"] else "no softmax, so no perplexities"
    yield "parameters", f"{summary['parameters']:,}; {softmax}"
    split = "; words outside it are split" if (summary["text"] or {}).get("split_unknown") else ""
    yield "vocabulary", f"{summary['vocabulary']:,} rows{split}" if summary["vocabulary"] else "no vocabulary"
    segmenter = summary["segmenter"]
    yield "segmenter", f"{segmenter['name']} {segmenter['version']}" if segmenter else "unknown: embed with --segmented"
    yield "state", _describe_state(summary)
    yield from _describe_training(summary["training"])
    history = summary["history"]
    if history["corpus"]:
        listed = ", ".join(history["corpus"]) + (", ..." if history["num_sources"] > len(history["corpus"]) else "")
        yield "corpus", f"{listed}; {counted(history['num_sources'], 'source')}"
    if history["trained_at"]:
        yield "date", format_date(history["trained_at"])
    yield "made by", str(origin.get("program", "elmo-zh"))
    yield from ((f"from {name}", digest) for name, digest in origin.get("files", {}).items())
    if isinstance(start := origin.get("started_from"), dict):
        tokens = _format_number(start.get("tokens") or "an unknown number of", ",")
        yield "started from", f"{start.get('digest')}, trained on {tokens} tokens"
    yield from summary["digests"].items()


def _describe_state(summary: Mapping[str, Any]) -> str:
    if not summary["carry_state"]:
        return "trained with each sentence starting from zero state"
    if summary["warm_state"]:
        return "trained with carried state; sentences start from the warm state"
    return (
        "trained with carried state, so it works poorly from zero state: give the model a warm state (convert"
        " --warm-on) or use --stateful"
    )


def _describe_training(training: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if {"tokens", "epochs"} <= training.keys():
        tokens, epochs = _format_number(training["tokens"], ","), _format_number(training["epochs"], ".2f")
        yield "trained on", f"{tokens} tokens in {epochs} epochs"
    heldout = training.get("heldout")
    if isinstance(heldout, dict) and {"perplexity", "bits_per_character"} <= heldout.keys():
        perplexity = _format_number(heldout["perplexity"], ",.1f")
        bits = _format_number(heldout["bits_per_character"], ".3f")
        yield "held-out text", f"perplexity {perplexity}, {bits} bits per character ({training.get('heldout_set')})"


def _format_number(value: Any, form: str) -> str:
    return format(value, form) if isinstance(value, int | float) else str(value)


@click.command()
@bundle_argument
@shared_options("device")
@common_options_of_readers
def selftest(common: Common, /, bundle: Path) -> None:
    """Check that a model bundle works correctly on this machine.

    Use it after copying a bundle to another machine; the exit status is 1 if a check fails. It checks that the
    bundle's stored sentences still give their stored vectors; that the forward LM cannot see the future, nor the
    backward LM the past; that batching and the order of sentences change nothing; and that vocabulary, embedding and
    softmax match. It also prints the neighbours of frequent words for you to judge: if they make no sense, rows and
    words do not match, or the model has hardly been trained.

    \b
    Example:
      elmo-zh selftest runs/mine/model
    """
    common.resolve()
    from elmo_zh.bundle.description import model_line
    from elmo_zh.bundle.read import load_bundle
    from elmo_zh.embed.selftest import find_neighbours, run_selftest

    loaded = load_bundle(find_bundle(bundle))
    common.console.note(model_line(loaded))
    checks = run_selftest(loaded, common.device or "auto")
    neighbours = find_neighbours(loaded)
    failed = [check.name for check in checks if check.passed is False]
    marks = {True: "ok", False: "FAILED", None: "skip"}
    common.finish(
        {
            "passed": not failed,
            "checks": [asdict(check) for check in checks],
            "neighbours": [asdict(entry) for entry in neighbours],
        },
        *(f"{translate(marks[check.passed]):6} {translate(f'{check.name}: {check.found}')}" for check in checks),
        *(f"{entry.table}: {entry.word} ~ {' '.join(entry.neighbours)}" for entry in neighbours),
        bundle=loaded,
    )
    if failed:
        raise BundleError(f"{bundle} fails these checks: {'; '.join(failed)}. Export or copy the bundle again.")
