"""Run a stage if anything has changed since its record was written, skip it otherwise, and record its results."""

import os
import shlex
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from elmo_zh.config import Config, result_settings
from elmo_zh.errors import RunError
from elmo_zh.invocation import command, program, train_option
from elmo_zh.run.changes import describe_changes, describe_settings
from elmo_zh.run.files import file_digest, own_digest, read_json, remove, sealed, write_json
from elmo_zh.run.find_runs import explain_no_run
from elmo_zh.run.layout import RunDir
from elmo_zh.run.reporter import Reporter
from elmo_zh.run.work_folder import WorkFolder
from elmo_zh.version import __version__

RECORD_FORMAT = 1

# The stages in the order in which they run.
STAGES = ("segment", "vocab", "word2vec", "encode", "train", "export")
# The command that makes each file, for the message when it is missing.
MAKERS = {
    "segmented": "segment CORPUS",
    "vocab.data": "vocab",
    "vocab.counts": "vocab",
    "character_counts.tsv": "vocab",
    "word2vec.txt": "word2vec",
    "ids": "encode",
    "checkpoints": "train",
}
# The sections that a stage's result depends on. `encode` has no settings of its own.
_SECTIONS = {"segment": ("text",), "vocab": ("vocab",), "word2vec": ("word2vec",), "train": ("model", "train")}
# Settings in the sections of other stages that a stage also reads.
_ALSO_READ = {
    "vocab": {"model"},  # taken from --init
    "word2vec": {"model"},
    "encode": {"model"},
    "train": {"word2vec.enabled"},
}


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A stage of a run: its name, the settings and inputs that decide its result, and the work that it does."""

    name: str
    settings: Mapping[str, Any]  # Settings that decide the result, together with the inputs
    # Path of each input by its name in the record; files outside the run (the corpus) are named without their folder.
    inputs: Mapping[str, Path]
    work: Callable[[], "StageResult"]  # Runs the stage, and returns the files that it made and the counts to record
    # Settings that say how far to go; if only they change, the stage continues.
    budget: Mapping[str, Any] = field(default_factory=dict)
    # Removes the files that an unfinished stage would resume from; None for a stage that always starts from scratch.
    discard: Callable[[], None] | None = None
    # Folder of finished parts, removed at the end. An interrupted stage uses them again if its inputs, its settings and
    # the version are the same.
    parts: Path | None = None
    inputs_made_by: str = ""  # Stage whose record, if there is one, has the digests that inputs must have
    # Whether the run's checkpoints become worthless if the stage runs again with other inputs or settings.
    discards_training: bool = True


@dataclass(frozen=True, kw_only=True)
class StageResult:
    """The result of a stage; its counts are also printed, its details appear only in the stage record."""

    outputs: Sequence[Path]
    counts: Mapping[str, Any] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class StageOutcome:
    """The counts of a stage, and whether it was skipped because nothing had changed."""

    counts: Mapping[str, Any]
    skipped: bool


def run_stage(run: RunDir, config: Config, stage: Stage, *, force: bool, reporter: Reporter) -> StageOutcome:
    """Run a stage unless its record shows that nothing has changed since it finished; save the settings either way.

    Raises:
        RunError: If an input is missing or damaged, or a changed stage would make the run's checkpoints useless.
    """
    require_inputs(run, stage.inputs.values())
    old = load_record(run.stage_record(stage.name), damaged_is_none=force)
    inputs = describe_files(stage.inputs, old.get("inputs", {}))
    changes = describe_changes(stage.name, old, stage.settings, inputs) if old else []
    if not old and stage.discard is not None and is_in_training(run):
        changes = ["the record of how the checkpoints were made is missing"]
    if changes and stage.discards_training and not force:
        refuse_to_discard_training(run, changes)
    if stage.inputs_made_by:
        require_as_made(run, stage.inputs_made_by, stage.inputs, inputs)
    run.save_config(config)
    same_budget = old.get("budget") == dict(stage.budget)
    outputs = {name: run.path / name for name in old.get("outputs", {})}
    is_finished = old.get("finished") and same_budget and not (changes or force)
    if is_finished and _are_unchanged(outputs, old["outputs"]):
        if stage.parts is not None:
            remove(stage.parts)  # left by an interrupted --force
        reporter.note(f"{stage.name}: nothing has changed, skipped.")
        return StageOutcome(counts=old["counts"], skipped=True)
    if old and changes:
        reporter.note(f"{stage.name} runs again: {'; '.join(changes)}.")
    counts = _run_and_record(run, stage, inputs, starts_over=force or bool(changes), force=force)
    return StageOutcome(counts=counts, skipped=False)


def _run_and_record(
    run: RunDir, stage: Stage, inputs: Mapping[str, Any], *, starts_over: bool, force: bool
) -> Mapping[str, Any]:
    record_path = run.stage_record(stage.name)
    record = {
        "stage": stage.name,
        "format": RECORD_FORMAT,
        "elmo_zh": __version__,
        "settings": dict(stage.settings),
        "budget": dict(stage.budget),
        "inputs": inputs,
        "started_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    if stage.discard is not None:
        if starts_over:
            stage.discard()
        # An interrupted stage may resume later, but only with the inputs and settings that are recorded here.
        write_json(record_path, sealed({**record, "finished": False}))
    start = time.monotonic()
    if stage.parts is not None:
        digests = {name: entry["digest"] for name, entry in inputs.items()}
        made_from = {name: record[name] for name in ("format", "elmo_zh", "settings")}
        WorkFolder(stage.parts).open({**made_from, "inputs": digests}, force=force)
    result = stage.work()
    outputs = describe_files({str(path.relative_to(run.path)): path for path in result.outputs}, {})
    seconds = round(time.monotonic() - start, 3)
    finished = {"finished": True, "outputs": outputs, "counts": dict(result.counts), "seconds": seconds}
    write_json(record_path, sealed({**record, **finished, **result.details}))
    if stage.parts is not None:
        remove(stage.parts)
    return result.counts


def require_inputs(run: RunDir, paths: Any) -> None:
    """Raise RunError for the first path that does not exist, naming the command that creates it."""
    for path in paths:
        if not path.exists():
            if not run.path.exists() and run.holds(path):
                raise RunError(explain_no_run(run.path))
            inside = path.relative_to(run.path).parts[0] if path.is_relative_to(run.path) else ""
            maker = MAKERS.get(inside)
            hint = f"Create it with: {command(*maker.split(), '--run', run.path)}" if maker else "Check the path."
            raise RunError(f"{path} is missing. {hint}")


def require_as_made(run: RunDir, maker: str, files: Mapping[str, Path], described: Mapping[str, Any]) -> None:
    """Raise RunError if a file, described by `describe_files`, has changed since its stage wrote it."""
    made = load_record(run.stage_record(maker), damaged_is_none=True).get("outputs", {})
    for name, entry in made.items():
        if name in files and described[name]["digest"] != entry["digest"]:
            raise RunError(
                f"{files[name]} is not the file that {maker} wrote: it was damaged or replaced."
                f" Recreate it with: {command(maker, '--run', run.path, '--force')}"
            )


def source_digest(run: RunDir, stage: str, name: str, path: Path, explain: Callable[[], str] | None = None) -> str:
    """Return the digest of a file outside the run, or the recorded one if the stage has begun and the file is gone."""
    is_own = run.holds(path)
    if path.is_file() and not is_own:
        return file_digest(path)
    known = load_record(run.stage_record(stage), damaged_is_none=True).get("settings", {}).get(name)
    if known:
        return str(known)
    if is_own:
        raise RunError(f"{path} is inside {run.path}, and a run cannot start from its own files. Choose another --run.")
    raise RunError(explain() if explain else f"{path} is missing. Check the path.")


def load_record(path: Path, *, damaged_is_none: bool = False) -> dict[str, Any]:
    """Return a stage record, or an empty one if it is missing or in a different format.

    A damaged record raises RunError; with `damaged_is_none` it counts as missing.
    """
    if not path.exists():
        return {}
    try:
        record = read_json(path)
        _require_parts(record)
    except ValueError as error:
        if damaged_is_none:
            return {}
        raise RunError(f"{path} is damaged ({error}). {_remedy(path)}") from None
    return record if record.get("format") == RECORD_FORMAT else {}


def _require_parts(record: Any) -> None:
    """Raise ValueError unless a JSON value is a stage record of some other format, or a complete one of this format."""
    if not isinstance(record, dict):
        raise ValueError(f"it holds a {type(record).__name__}, not an object")
    if record.get("format") != RECORD_FORMAT:
        return
    # Records of earlier versions have no digest.
    if "digest" in record and record["digest"] != own_digest(record):
        raise ValueError("its digest does not match its content")
    for name in ("settings", "inputs", *(("outputs", "counts") if record.get("finished") else ())):
        if not isinstance(record.get(name), dict):
            raise ValueError(f"it has no {name}")
    try:
        ended_at(record)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"its start or its seconds are wrong: {error}") from None


def _remedy(path: Path) -> str:
    """Tell the user how to fix a damaged stage record; --force is the last resort, since it deletes checkpoints."""
    if path.stem != "train":
        return f"Delete this file; the stage {path.stem} then runs again, and nothing else is lost."
    command, run = program(), shlex.quote(str(path.parents[1]))
    return (
        f"The checkpoints are still there: export the model with {command} export --run {run}, or start over with"
        f" {command} train --run {run} --force"
    )


def load_records(run: RunDir, *, damaged_is_none: bool = False) -> dict[str, dict[str, Any]]:
    """Return the records of the stages that have started, by stage name."""
    records = {name: load_record(run.stage_record(name), damaged_is_none=damaged_is_none) for name in STAGES}
    return {name: record for name, record in records.items() if record}


def corpus_names(run: RunDir) -> list[str]:
    """Return the files and folders of the run's corpus as the user named them; empty if it was not segmented here."""
    record = load_record(run.stage_record("segment"), damaged_is_none=True)
    return sorted(map(str, record.get("corpus") or record.get("inputs", {})))


def unchanged_corpus(run: RunDir) -> list[Path]:
    """Return the files of the run's corpus if all of them still exist with the same content, otherwise []."""
    record = load_record(run.stage_record("segment"), damaged_is_none=True)
    inputs, folder = record.get("inputs", {}), record.get("folder")
    if not inputs or not isinstance(folder, str):
        return []
    place = Path(os.path.normpath(run.path.resolve() / folder))
    files = {name: place / name for name in inputs}
    return list(files.values()) if _are_unchanged(files, inputs) else []


def ended_at(record: Mapping[str, Any]) -> str:
    """Return when a recorded stage ended, in ISO 8601, or when it started if it has not finished."""
    end = datetime.fromisoformat(record["started_at"]) + timedelta(seconds=record.get("seconds", 0))
    return end.isoformat(timespec="seconds")


def finished_stages(run: RunDir, *, damaged_is_none: bool = False) -> dict[str, dict[str, Any]]:
    """Return the records of the finished stages by stage name."""
    records = load_records(run, damaged_is_none=damaged_is_none)
    return {name: record for name, record in records.items() if record.get("finished")}


def describe_files(files: Mapping[str, Path], known: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return digest, size and modification time of each file; reuse the digest in `known` if size and time match."""
    described = {}
    for name, path in files.items():
        status = path.stat()
        stamp = {"bytes": status.st_size, "modified_ns": status.st_mtime_ns}
        before = known.get(name, {})
        is_known = stamp == {key: before.get(key) for key in stamp}
        digest = before["digest"] if is_known else file_digest(path)
        described[name] = {"digest": digest, **stamp}
    return described


def is_in_training(run: RunDir) -> bool:
    """Return whether the run has checkpoints."""
    return run.checkpoints.is_dir() and any(run.checkpoints.glob("step-*"))


def refuse_to_discard_training(run: RunDir, changes: Sequence[str]) -> None:
    """Raise RunError if the run holds checkpoints that these changes would make useless."""
    if is_in_training(run):
        raise RunError(
            f"{run.path} contains training progress that would be discarded. Reason: {'; '.join(changes)}. To"
            f" keep it, choose another run: {train_option('--run', 'RUN')}; to start over: {train_option('--force')}."
        )


def _are_unchanged(files: Mapping[str, Path], recorded: Mapping[str, Any]) -> bool:
    if not all(path.is_file() for path in files.values()):
        return False
    now = describe_files(files, recorded)
    return all(now[name]["digest"] == recorded[name]["digest"] for name in files)


def earlier_stages(stage: str) -> tuple[str, ...]:
    """Return the stages that run before a stage."""
    return STAGES[: STAGES.index(stage)]


def later_stages(stage: str) -> tuple[str, ...]:
    """Return the stages that run after a stage."""
    return STAGES[STAGES.index(stage) + 1 :]


def refuse_settings_of(others: Collection[str], stage: str, run: RunDir, before: Config, config: Config) -> None:
    """Raise RunError for changed settings that this stage does not use but other stages have used."""
    for other in others:
        if changes := list(_changes(other, stage, run, before, config)):
            command = "segment CORPUS" if other == "segment" else other
            typed = f"{program()} {command} --run {shlex.quote(str(run.path))} --set ..."
            raise RunError(
                f"{stage} does not use these settings, and {other} ran with other values: {'; '.join(changes)}."
                f" Leave these settings out, or change them with: {typed}"
            )


def _changes(other: str, stage: str, run: RunDir, before: Config, config: Config) -> Iterator[str]:
    record = load_record(run.stage_record(other), damaged_is_none=True)
    also_read = _ALSO_READ.get(stage, ())
    for section in _SECTIONS.get(other, ()) if record else ():
        known = _recorded(other, section, record)
        old, default, now = (result_settings(getattr(each, section)) for each in (before, Config(), config))
        for key, value in now.items():
            name = f"{section}.{key}"
            is_new = value not in (old[key], known.get(key, default[key]))
            if is_new and section not in also_read and name not in also_read:
                yield from describe_settings({name: old[key]}, {name: value})


def _recorded(stage: str, section: str, record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the recorded settings of a section by key; train records them with the section's name."""
    settings: dict[str, Any] = record["settings"]
    if stage != "train":
        return settings
    prefix = f"{section}."
    named = {name.removeprefix(prefix): value for name, value in settings.items() if name.startswith(prefix)}
    return {**named, **(record["budget"] if section == "train" else {})}
