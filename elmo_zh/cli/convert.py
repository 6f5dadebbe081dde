"""The commands that convert models, and describe runs, models and other outputs."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from elmo_zh.bundle import BundleForm
from elmo_zh.bundle.find_bundle import find_bundle
from elmo_zh.cli.declared import takes
from elmo_zh.cli.options import (
    FOLDER,
    Common,
    common_options,
    common_options_of_readers,
    figures,
    reads,
    refuse_together,
    shared_options,
)
from elmo_zh.config import config_names
from elmo_zh.convert import Conversion
from elmo_zh.errors import NO_EFFECT, BundleError, OptionError, OutputError
from elmo_zh.language import _

if TYPE_CHECKING:
    from elmo_zh.bundle.read import BundleContent
    from elmo_zh.config import TextConfig


@click.command()
@click.argument("source", type=click.Path(path_type=Path))
@shared_options("output", help="Folder to write.", metavar="DIR", path=FOLDER, required=True)
@takes(Conversion, "conversion")
@takes(BundleForm, "form")
@common_options
@reads("text")
def convert(common: Common, /, source: Path, conversion: Conversion, form: BundleForm) -> None:
    """Convert another program's model to a bundle.

    Use it to embed with a published model. SOURCE is a folder or zip archive: options.json and weights.hdf5 of bilm-tf
    or AllenNLP, a simple_elmo folder or NLPL archive, an ELMoForManyLangs folder, or a bundle (to add a warm state,
    or to change its layout or file size). No code from SOURCE is run. Nothing is written unless all files fit together.

    If you know how the model's text was segmented, specify it (--set text.segmenter=jieba); otherwise the model
    accepts only segmented text. Other programs carry the state from sentence to sentence in training, so their models
    work poorly if every sentence starts from a zero state. --warm-on stores a better initial state; vectors still do
    not depend on other sentences.

    \b
    Example:
      elmo-zh convert elmo-2x4096/ --output models/published
      elmo-zh convert 179.zip --output models/zh --warm-on news.txt --set text.segmenter=jieba
      elmo-zh convert runs/mine/model --output for-simple-elmo --layout simple_elmo
    """
    if conversion.warm_on is not None:
        refuse_together("--warm-on", {f"--layout {form.layout}": form.layout != "bundle"})
    from elmo_zh.convert.convert_model import convert_model

    text, user_dictionary = _known_text(common)
    conversion = replace(conversion, text=text, user_dictionary=user_dictionary)
    model = convert_model(
        find_bundle(source), common.written, conversion, form, force=common.force, reporter=common.console
    )
    _report_conversion(common, model, form.layout)


def _report_conversion(common: Common, model: "BundleContent", layout: str) -> None:
    from elmo_zh.info.describe import POOR_FROM_ZERO

    shape, has_warm_state = model.weights.shape, model.weights.warm_state is not None and layout == "bundle"
    if model.weights.warm_state is not None and not has_warm_state:
        common.console.note(_(NO_EFFECT).format(name="warm_state.hdf5", other=f"--layout {layout}"))
    if model.carry_state and not has_warm_state and layout == "bundle":
        common.console.note(_(POOR_FROM_ZERO))
    sizes = {"num_layers": shape.num_layers, "cell_dim": shape.cell_dim, "projection_dim": shape.projection_dim}
    result = {"mode": shape.mode, "warm_state": has_warm_state, **sizes}
    segmented = ("--segmented",) if model.text is None else ()
    common.finish(
        {**result, "num_words": len(model.vocabulary or ())},
        figures(result),
        following=("embed", "file.txt", "--model", common.written, *segmented) if layout == "bundle" else (),
    )


def _known_text(common: Common) -> "tuple[TextConfig | None, Path | None]":
    """Return the user's text settings for the model, and the dictionary; (None, None) if no such setting was given."""
    config = common.config.text
    names = {name for name in config_names(common.config_path, common.assignments) if name.startswith("text.")}
    if not names:
        return None, None
    # Only jieba and rjieba use text.user_dictionary or text.jieba_hmm, so either setting implies a segmenter.
    if not names & {"text.segmenter", "text.user_dictionary", "text.jieba_hmm"}:
        raise OptionError.needs(", ".join(sorted(names)), "--set text.segmenter=NAME")
    dictionary = Path(config.dictionary) if config.dictionary else None
    if dictionary is not None and not dictionary.is_file():
        raise BundleError.missing(dictionary)
    return config, dictionary


@click.command()
@click.argument("path", type=click.Path(path_type=Path), default=Path("runs"))
@click.option(
    "--check",
    is_flag=True,
    help="Also test a model bundle on this machine, or compare the files of another output with their digests.",
)
@shared_options("device")
@common_options_of_readers
def info(common: Common, /, path: Path, check: bool) -> None:
    """Describe a run, model, index, task or comparison.

    Use it to see what a folder was made from, its figures, and what to do next. PATH is a run, finished or not; a
    folder of runs (by default, the folder runs), which are listed newest first; a model bundle, the name of an
    installed model, or the folder of another program's model; or the output of index, task fit, task compare or task
    probe.

    With --check, the exit status is 1 if something is wrong. The sentences stored in a model bundle must still give the
    stored vectors and tokens, whatever other sentences are in the batch. In other outputs and in runs, no file may have
    changed since it was written.

    \b
    Example:
      elmo-zh info
      elmo-zh info runs/mine --check
      elmo-zh info runs/mine/model --json
      elmo-zh info my.index
    """
    from elmo_zh.info.describe import describe

    path = find_bundle(path)
    description = describe(path, check=check, device=common.device or "auto")
    values = description.values
    if check:
        values["passed"] = not description.problems
    common.finish(values, description.lines)
    if description.problems:
        raise OutputError.damaged(path, _("; ").join(description.problems))
