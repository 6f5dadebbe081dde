"""Find a bundle by its folder or by the name of an installed model; otherwise, explain what is there instead."""

import os
import shlex
from collections.abc import Iterator
from contextlib import suppress
from difflib import get_close_matches
from itertools import chain
from os import PathLike
from pathlib import Path

from elmo_zh.bundle.layout import BundleLayout
from elmo_zh.choices import MODELS
from elmo_zh.config import Config
from elmo_zh.errors import BundleError, ConfigError, RunError
from elmo_zh.invocation import command, path_from_here, program, starter_line, train_command, train_option
from elmo_zh.run.files import file_digest, read_json
from elmo_zh.run.find_runs import LATEST, RUNS, closest_run, is_run, iter_runs
from elmo_zh.run.layout import RunDir
from elmo_zh.run.mark import KINDS, kind_of

DEFAULT_MODEL = LATEST / "model"
# The name of the installed model that is used if there is no other.
STARTER = "starter"
_STARTER_PACKAGE = "elmo_zh_starter"
# No bundle.json comes near this size.
_LARGEST_INFO_BYTES = 2**24


def find_bundle(model: str | os.PathLike[str]) -> Path:
    """Return the folder of a bundle, given as a path or as the name of an installed model; a path takes precedence."""
    path = Path(model)
    if path.exists() or len(path.parts) != 1 or path.name not in MODELS:
        return path
    return _load_installed(path.name)


def _load_installed(name: str) -> Path:
    try:
        return Path(MODELS.load(name))
    except (ConfigError, TypeError) as error:
        raise BundleError(f"The installed model {name} cannot be used: {error}") from None


def find_given_bundle(model: str | PathLike[str]) -> Path:
    """Return the folder of a bundle passed to a Python call, by its path or by the name of an installed model."""
    return find_bundle(Path(model))


def find_installed(digest: str) -> Path | None:
    """Return the folder of the installed model whose bundle.json has the given digest, or None."""
    for _, folder in _iter_installed():
        info = BundleLayout(folder).info
        if info.is_file() and file_digest(info) == digest:
            return folder
    return None


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
    """Find a model by its digest: beside its `owner`, among installed models or at its old path; None if it is gone."""
    parts = path.relative_to(path.anchor).parts
    beside = (above.joinpath(*parts[first:]) for above in owner.resolve().parents for first in range(len(parts)))
    for folder in chain(beside, [find_installed(digest), path]):
        info = BundleLayout(folder).info if folder else None
        if info and info.is_file() and info.stat().st_size <= _LARGEST_INFO_BYTES and file_digest(info) == digest:
            return folder
    return None


def starter_advice(config: Config, num_tokens: float) -> list[str]:
    """Advise starting from the installed starter if it was trained on more than 20 times the text of the corpus."""
    starter = dict(_iter_installed()).get(STARTER)
    if starter is None or config.train.init or config.vocab.init or config.model.mode != "token":
        return []
    text = int(read_json(BundleLayout(starter).info)["training"].get("train_tokens", 0))
    if 20 * num_tokens >= text:
        return []
    return [
        f"For so little text, start from the installed starter model, trained on {text:,} tokens: add"
        f" {train_option('--init', STARTER)}. On 200 kB, 1 MB and 5 MB of news, this lowered"
        " held-out perplexity by 75%, 36% and 18% in a fifth to a third of the tokens (docs/starter.md)."
    ]


def default_bundle() -> Path:
    """Return the folder of the model to use by default: $ELMO_ZH_MODEL, the newest run's, or the installed starter."""
    variable = os.environ.get("ELMO_ZH_MODEL")
    path = find_bundle(variable) if variable else DEFAULT_MODEL
    if BundleLayout(path).info.is_file():
        return path
    if not variable and not path.exists() and STARTER in MODELS:
        return _load_installed(STARTER)
    origin = "$ELMO_ZH_MODEL is wrong" if variable else "No --model is given, and the default is missing"
    raise BundleError(f"{origin}: {explain_no_bundle(path)}")


def explain_no_starter(path: Path) -> str:
    """Explain how to install the starter if a path names it and it is not installed; otherwise return ""."""
    is_starter = path == Path(STARTER) or _STARTER_PACKAGE in path.parts
    return f"{STARTER} is not installed. {starter_line()}" if is_starter and STARTER not in MODELS else ""


def explain_no_bundle(path: Path) -> str:
    """Explain what is at a path that holds no bundle, and what to do next."""
    if not path.exists() and (advice := explain_no_starter(path)):
        return advice
    if is_run(path):
        return f"{path} is a run, not a model bundle. {next_step_of_run(path)}"
    if is_run(path.parent) and path == RunDir(path.parent).model and not path.exists():
        return f"{path} does not exist: the run {path.parent} has no model. {next_step_of_run(path.parent)}"
    if not path.exists():
        return f"{path_from_here(path)} does not exist. {_suggest_model(path)}"
    if not path.is_dir():
        return f"{path} is a file, not the folder of a model bundle. {_suggest_model(path)}"
    if BundleLayout(path).options.is_file():
        advice = command("convert", path, "--output", "DIR")
        return f"{path} has options.json, but no bundle.json. To convert another program's model: {advice}"
    if kind := KINDS.get(kind_of(path)):
        return f"{path} is {kind.what}, not a model bundle. Show it with: {command('info', path)}"
    return f"{path} is not a model bundle: bundle.json is missing. {_suggest_model(path)}"


def next_step_of_run(path: Path) -> str:
    """Explain how to get the model of a run: its path if there is one, otherwise the command to type."""
    run, typed = RunDir(path), shlex.quote(str(path))
    if BundleLayout(run.model).info.is_file():
        return f"Its model is {run.model}"
    if run.checkpoints.is_dir():
        return f"Export its model first: {program()} export --run {typed}"
    return f"The run has not been trained yet. Continue with: {train_command('my-texts/', '--run', str(path))}"


def _suggest_model(path: Path) -> str:
    """Suggest the bundle that was probably meant; failing that, the existing bundles; failing that, training one."""
    if BundleLayout(path.parent).info.is_file():
        return f"Did you mean {path.parent}?"
    if names := get_close_matches(path.name, MODELS, 1):
        return f"Did you mean {names[0]}?"
    runs = [run for run in iter_runs(RUNS) if BundleLayout(RunDir(run).model).info.is_file()]
    train = train_command()
    if close := closest_run(path.parent if path.name == RunDir(path).model.name else path, runs):
        return f"Did you mean {RunDir(close).model}?"
    names = [*MODELS, *(str(RunDir(run).model) for run in runs[:3])]
    return f"Give a model, such as {', '.join(names)}, or train one: {train}" if names else f"Train a model: {train}"


def require_no_bundle(path: Path) -> None:
    """Raise RunError if a run's folder is a bundle, because the run would overwrite its files."""
    if BundleLayout(path).info.is_file():
        step = f"Its run is {path.parent}" if is_run(path.parent) else "Choose another --run."
        raise RunError(f"{path} is a model bundle, not a run. {step}")
