"""Options of the commands that use a model, and the model that they use by default."""

import os
from pathlib import Path

import click

from elmo_zh.bundle.layout import BundleLayout
from elmo_zh.bundle.missing import explain_no_bundle
from elmo_zh.errors import BundleError

DEFAULT_MODEL = "runs/latest/model"

model_option = click.option(
    "--model",
    type=click.Path(path_type=Path),
    metavar="BUNDLE",
    help=f"Folder of the model. Default: $ELMO_ZH_MODEL, or {DEFAULT_MODEL} if that is not set.",
)
segmented_option = click.option(
    "--segmented", is_flag=True, help="The text has one sentence per line, its tokens separated by single spaces."
)
stateful_option = click.option(
    "--stateful",
    is_flag=True,
    help="Carry the LSTM state from sentence to sentence, as the original programs do; slower, one sentence at a time.",
)

# Parts of the warning about models trained with carried state.
FROM_ZERO = "This model was trained with carried state, but here every sentence starts from zero state"
WARM_UP = "Give it a warm state (elmo-zh convert --warm-on TEXT, or export the run again), or use --stateful."


def model_path(given: Path | None) -> Path:
    """Return the folder of the model to use: the given one, else $ELMO_ZH_MODEL, else that of the latest run.

    Raises:
        BundleError: If there is no bundle; the message says where the path comes from, unless it was given.
    """
    variable = os.environ.get("ELMO_ZH_MODEL")
    path = given or Path(variable or DEFAULT_MODEL)
    if given is None and not BundleLayout(path).info.is_file():
        origin = "$ELMO_ZH_MODEL is wrong" if variable else "No --model is given, and the default is missing"
        raise BundleError(f"{origin}: {explain_no_bundle(path)}")
    return path
