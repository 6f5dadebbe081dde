"""Messages for a path that is not a model bundle, or is one where a run belongs: what is there, and what was meant."""

import shlex
from pathlib import Path

from elmo_zh.bundle.layout import BundleLayout
from elmo_zh.choices import MODELS
from elmo_zh.errors import RunError
from elmo_zh.invocation import command, program
from elmo_zh.run.files import is_locked
from elmo_zh.run.find_runs import RUNS, closest_run, is_run, iter_runs
from elmo_zh.run.layout import RunDir
from elmo_zh.run.record import finished_stages

_MOST_NAMES = 3

# The other folders that elmo-zh makes: the file by which each is known, what it is, and the command that reads it.
_OTHER_FOLDERS = (
    ("task.json", "a trained task", ("task", "predict", "FILE", "--task")),
    ("index.json", "an index", ("senses", "WORD", "--index")),
)


def explain_no_bundle(path: Path) -> str:
    """Return the message for a path that holds no bundle: what is there instead, and the next step."""
    if is_run(path):
        return f"{path} is a run, not a model bundle. {next_step_of_run(path)}"
    if is_run(path.parent) and path == RunDir(path.parent).model and not path.exists():
        return f"{path} does not exist: the run {path.parent} has no model. {next_step_of_run(path.parent)}"
    if not path.exists():
        return f"{path} does not exist. {_suggest_model(path)}"
    if not path.is_dir() and BundleLayout(path.parent).info.is_file():
        return f"{path} is a file of a model bundle. Give its folder: {path.parent}"
    if not path.is_dir():
        return f"{path} is a file, not the folder of a model bundle. {_suggest_model(path)}"
    if BundleLayout(path).options.is_file():
        return (
            f"{path} is not a model bundle: it has options.json, but no bundle.json. Convert a model of another program"
            f" with: {program()} convert {shlex.quote(str(path))} --output DIR"
        )
    for name, what, reader in _OTHER_FOLDERS:
        if (path / name).is_file():
            return f"{path} is {what}, not a model bundle. Read it with: {command(*reader, path)}"
    return f"{path} is not a model bundle: bundle.json is missing. {_suggest_model(path)}"


def require_no_bundle(path: Path) -> None:
    """Raise RunError if the folder of a run is that of a bundle, whose files the run's would replace."""
    if not BundleLayout(path).info.is_file():
        return
    step = f"Its run is {path.parent}" if is_run(path.parent) else "Choose another --run."
    raise RunError(f"{path} is a model bundle, not a run. {step}")


def next_step_of_run(path: Path) -> str:
    """Return what to do to use the model of a run."""
    run, typed = RunDir(path), shlex.quote(str(path))
    if BundleLayout(run.model).info.is_file():
        return f"Its model is {run.model}"
    if is_locked(run.lock):
        return f"It is in use: wait until the command that works on it has finished. To look: {command('runs')}"
    if run.checkpoints.is_dir():
        return f"Export its model first: {program()} export --run {typed}"
    finished = finished_stages(run, damaged_is_none=True)
    first = next((stage for stage in ("segment", "vocab", "encode") if stage not in finished), "train")
    stage = command(first, *(["CORPUS"] if first == "segment" else []), "--run", path)
    return f"It is not trained yet. Continue with: make train CORPUS=my-texts/ RUN={typed}, or stage by stage: {stage}"


def _suggest_model(path: Path) -> str:
    """Return which bundle was probably meant; else those that exist; else how to train one."""
    runs: list[Path] = []
    unfinished: list[Path] = []
    for run in iter_runs(RUNS):
        (runs if BundleLayout(RunDir(run).model).info.is_file() else unfinished).append(run)
    if close := closest_run(path.parent if path.name == RunDir(path).model.name else path, runs):
        return f"Did you mean {RunDir(close).model}?"
    if unfinished and not runs:
        return f"The run {unfinished[0]} has no model yet. {next_step_of_run(unfinished[0])}"
    names = [*MODELS, *(str(RunDir(run).model) for run in runs[:_MOST_NAMES])]
    if not names:
        return "Train a model first: make train CORPUS=my-texts/"
    return f"Give a model, such as {', '.join(names)}, or train one: make train CORPUS=my-texts/"
