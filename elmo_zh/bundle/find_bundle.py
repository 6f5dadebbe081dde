"""Find a bundle by its path, installed name or digest, or explain what is there instead."""

import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from os import PathLike
from pathlib import Path

from elmo_zh.bundle import BundleLayout
from elmo_zh.choices import MODELS
from elmo_zh.errors import BundleError, ConfigError, RunError
from elmo_zh.invocation import command, not_installed, path_from_here, starter_line, train_command
from elmo_zh.language import _
from elmo_zh.run.files import file_digest
from elmo_zh.run.layout import LATEST, RunDir, is_run
from elmo_zh.run.outputs import NOT_REPLACED, kind_of
from elmo_zh.run.record import load_record
from elmo_zh.run.reporter import first_ten

DEFAULT_MODEL = LATEST / "model"
# The name of the installed model that is used if there is no other.
STARTER = "starter"
_STARTER_PACKAGE = "elmo_zh_starter"
_SHOWN_DIGITS = 12
# No bundle.json comes near this size.
_LARGEST_INFO_BYTES = 2**24


def find_bundle(model: str | PathLike[str]) -> Path:
    """Return the folder of a model, given as a path or by its installed name; an existing path takes precedence.

    The folder may be missing, or not be a bundle.

    Raises:
        BundleError: If the installed model cannot be loaded.
    """
    path = Path(model)
    if path.exists() or len(path.parts) != 1 or path.name not in MODELS:
        return path
    return _load_installed(path.name)


def _load_installed(name: str) -> Path:
    try:
        return Path(MODELS.load(name))
    except (ConfigError, TypeError) as error:
        raise BundleError(f"--model {name}: {error}") from None


def shown_model(path: Path) -> str:
    """Return how users refer to a model: by its name if it is installed, otherwise by its path."""
    return installed_name(path) or str(path_from_here(path))


def installed_name(path: Path) -> str | None:
    """Return the name under which the model in a folder is installed, or None if it is not installed."""
    return next((name for name, folder in _iter_installed() if folder == path), None)


def _iter_installed() -> Iterator[tuple[str, Path]]:
    """Yield the name and folder of each installed model; skip broken packages, which raise an error only when named."""
    for name in MODELS.names():
        with suppress(BundleError):
            yield name, _load_installed(name)


def find_same_bundle(digest: str, path: Path, owner: Path) -> Path | None:
    """Return the folder of the model with which `owner` was made, found by its digest, or None if it is gone.

    It is looked for under each folder that contains `owner` (by the last parts of its old `path`), among the installed
    models, and at `path`.
    """
    parts = path.relative_to(path.anchor).parts
    beside = (above.joinpath(*parts[first:]) for above in owner.resolve().parents for first in range(len(parts)))
    for folder in chain(beside, (folder for __, folder in _iter_installed()), [path]):
        info = BundleLayout(folder).info
        if info.is_file() and info.stat().st_size <= _LARGEST_INFO_BYTES and file_digest(info) == digest:
            return folder
    return None


def other_model(owner: Path, made_with: str, digest: str, given: Path, given_digest: str) -> BundleError:
    """Return the error for a given model that is not the model (by its digest) with which `owner` was made."""
    own, other = (full.removeprefix("sha256:")[:_SHOWN_DIGITS] for full in (digest, given_digest))
    message = _(
        "{path} was made with the model {model} ({own}), but {given} is a different model ({other}). Specify the first"
        " model with --model, or recreate {path}."
    )
    return BundleError(message.format(path=owner, model=made_with, own=own, given=given, other=other))


def default_bundle() -> Path:
    """Return the folder of the default model: $ELMO_ZH_MODEL, else runs/latest/model, else the installed starter.

    Raises:
        BundleError: If the folder chosen in this way holds no bundle.
    """
    variable = os.environ.get("ELMO_ZH_MODEL")
    path = find_bundle(variable) if variable else DEFAULT_MODEL
    if BundleLayout(path).info.is_file():
        return path
    if not variable and not path.exists() and STARTER in MODELS:
        return _load_installed(STARTER)
    origin = "$ELMO_ZH_MODEL" if variable else "--model"
    raise BundleError(f"{origin}: {explain_no_bundle(path)}")


def explain_no_starter(path: Path) -> str:
    """Explain how to install the starter if a path names it and it is not installed; otherwise return ""."""
    is_starter = path == Path(STARTER) or _STARTER_PACKAGE in path.parts
    if not is_starter or STARTER in MODELS:
        return ""
    return not_installed(f"--model {STARTER}", _STARTER_PACKAGE, starter_line())


def explain_no_bundle(path: Path) -> str:
    """Explain what is at a path that holds no bundle, and what to do next."""
    if not path.exists() and (advice := explain_no_starter(path)):
        return advice
    run = path.parent if path.name == "model" else path
    if is_run(run):
        return _("{path} is not a model bundle. {step}").format(path=run, step=next_step_of_run(run))
    if path.is_dir() and (BundleLayout(path).options.is_file() or kind_of(path)):
        message = _("{path} is not a model bundle. {step}")
        return message.format(path=path, step=_("Next: {command}").format(command=command("info", path)))
    names = [*MODELS, *([str(DEFAULT_MODEL)] if BundleLayout(DEFAULT_MODEL).info.is_file() else [])]
    step = _("Known names: {names}. Next: {command}").format(
        names=first_ten(names) or _("none"), command=train_command()
    )
    what = _("{path} is not a model bundle. {step}") if path.exists() else _("{path} does not exist. {step}")
    return what.format(path=path_from_here(path), step=step)


def next_step_of_run(path: Path) -> str:
    """Return a line with the command to type next: one that uses the model of a run, or one that makes it."""
    run = RunDir(path)
    if BundleLayout(run.model).info.is_file():
        step = command("embed", "file.txt", "--model", run.model)
    elif run.checkpoints.is_dir():
        training = load_record(run.stage_record("train"), damaged_is_none=True)
        is_stopped = bool(training) and not training.get("finished")
        step = command("train" if is_stopped else "export", "--run", path)
    else:
        step = train_command(run=str(path))
    return _("Next: {command}").format(command=step)


def require_no_bundle(path: Path) -> None:
    """Raise RunError if a run's folder is a bundle, because the run would overwrite its files."""
    if BundleLayout(path).info.is_file():
        raise RunError(_(NOT_REPLACED).format(path=path, option="--run"))
