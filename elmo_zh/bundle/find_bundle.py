"""Find a bundle by its folder or by the name of an installed model."""

import json
import os
from pathlib import Path

from elmo_zh.bundle.layout import BundleLayout
from elmo_zh.bundle.missing import explain_no_bundle
from elmo_zh.checks import check_path
from elmo_zh.choices import MODELS
from elmo_zh.errors import BundleError, ConfigError
from elmo_zh.run.files import file_digest
from elmo_zh.run.find_runs import LATEST

DEFAULT_MODEL = LATEST / "model"
# The installed model that is used if there is no other.
STARTER = "starter"


def find_bundle(model: str | os.PathLike[str]) -> Path:
    """Return the folder of a bundle, given as a path or as the name of an installed model.

    A folder that exists comes before a model of that name.

    Raises:
        BundleError: If the package of an installed model is damaged.
    """
    path = Path(model)
    if path.exists() or len(path.parts) != 1 or path.name not in MODELS:
        return path
    try:
        return Path(MODELS.load(path.name))
    except (ConfigError, TypeError) as error:
        raise BundleError(f"The installed model {path} cannot be used: {error}") from None


def find_given_bundle(model: object, call: str, name: str = "path") -> Path:
    """Return the folder of the bundle that is given to a Python call; raise TypeError if it is not a path."""
    return find_bundle(check_path(model, call, name, "a bundle or the name of an installed model"))


def find_installed(digest: str) -> Path | None:
    """Return the folder of the installed model whose bundle.json has a digest; None if none has."""
    for name in MODELS.names():
        info = BundleLayout(find_bundle(name)).info
        if info.is_file() and file_digest(info) == digest:
            return info.parent
    return None


def starter_tokens() -> int:
    """Return the number of tokens that the installed starter model has trained on; 0 if none is installed."""
    if STARTER not in MODELS:
        return 0
    info = json.loads(BundleLayout(find_bundle(STARTER)).info.read_text(encoding="utf-8"))
    return int(info["training"].get("tokens", 0))


def default_bundle() -> Path:
    """Return the folder of $ELMO_ZH_MODEL, else of the latest run's model, else of the installed starter model.

    Raises:
        BundleError: If there is no bundle; the message says where the path comes from.
    """
    variable = os.environ.get("ELMO_ZH_MODEL")
    path = find_bundle(variable) if variable else DEFAULT_MODEL
    if BundleLayout(path).info.is_file():
        return path
    if not variable and not path.exists() and STARTER in MODELS:
        return find_bundle(STARTER)
    origin = "$ELMO_ZH_MODEL is wrong" if variable else "No --model is given, and the default is missing"
    raise BundleError(f"{origin}: {explain_no_bundle(path)}")
