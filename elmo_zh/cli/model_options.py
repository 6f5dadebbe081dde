"""Options of the commands that use a model, and the model that they use by default."""

from pathlib import Path

import click

from elmo_zh.bundle.find import DEFAULT_MODEL, STARTER, default_bundle, find_bundle

model_option = click.option(
    "--model",
    type=click.Path(path_type=Path),
    metavar="BUNDLE",
    help="Folder of the model, or name of an installed one."
    f" Default: $ELMO_ZH_MODEL, else {DEFAULT_MODEL}, else {STARTER}.",
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
WARM_UP = "Give it a warm state (command convert, option --warm-on; or export the run again), or use --stateful."


def model_path(given: Path | None) -> Path:
    """Return the folder of the model to use: the given one, or the default.

    Raises:
        BundleError: If there is no bundle; the message says where the path comes from, unless it was given.
    """
    return find_bundle(given) if given else default_bundle()
