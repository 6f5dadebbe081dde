"""Stages: do what has changed, skip what has not, and record what was done."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from elmo_zh.config import Config
from elmo_zh.errors import RunError
from elmo_zh.run.files import atomic_path, file_digest, remove, write_json
from elmo_zh.run.layout import RunDir
from elmo_zh.run.reporter import Reporter
from elmo_zh.version import __version__

RECORD_FORMAT = 1
# Says what the parts in a folder were made from.
PARTS_KEY = "made-from"

# The command that makes each artefact, for the message when it is missing.
MAKERS = {
    "segmented": "segment CORPUS",
    "vocab.data": "vocab",
    "vocab.counts": "vocab",
    "character_counts.tsv": "vocab",
    "word2vec.txt": "word2vec",
    "ids": "encode",
    "checkpoints": "train",
}


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One step from files to files.

    Attributes:
        name: The command's name.
        settings: What decides the result, beside the inputs.
        inputs: Name in the record to path; files outside the run (the corpus) are named without their folder.
        budget: Settings that say how far to go; a change lets the stage go on.
        discard: Removes what an unfinished stage would go on from; None for a stage that always starts anew.
        parts: A folder of finished parts, which go on being used if the stage is interrupted and typed again with the
            same inputs and settings, and by the same version; removed at the end.
        discards_training: Whether doing it again with other inputs or settings makes checkpoints worthless.
        work: Does it and returns the files made and counts worth keeping.
    """

    name: str
    settings: Mapping[str, Any]
    inputs: Mapping[str, Path]
    work: Callable[[], "StageResult"]
    budget: Mapping[str, Any] = field(default_factory=dict)
    discard: Callable[[], None] | None = None
    parts: Path | None = None
    discards_training: bool = True


@dataclass(frozen=True, kw_only=True)
class StageResult:
    """What a stage made; counts are told as its result, details stand in its record only."""

    outputs: Sequence[Path]
    counts: Mapping[str, Any] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class StageOutcome:
    """What became of a stage: its counts, and whether it was skipped because nothing had changed."""

    counts: Mapping[str, Any]
    skipped: bool


def run_stage(run: RunDir, config: Config, stage: Stage, *, force: bool, reporter: Reporter) -> StageOutcome:
    """Do a stage unless its record shows that the same was done before.

    Args:
        run: The run folder.
        config: The resolved settings, saved in the run once it is clear that the stage may go ahead.
        stage: What to do.
        force: Do it in any case.
        reporter: Where to tell.

    Raises:
        RunError: If an input is missing, or if redoing would discard a started training without `force`.
    """
    require_inputs(run, stage.inputs.values())
    record_path = run.stage_record(stage.name)
    old = load_record(record_path, damaged_is_none=force)
    inputs = describe_files(stage.inputs, old.get("inputs", {}))
    changes = _changes(old, stage.settings, inputs) if old else []
    if not old and stage.discard is not None and is_in_training(run):
        changes = ["there is no record of what its checkpoints were made from"]
    if changes and stage.discards_training and not force:
        refuse_to_discard_training(run, stage.name, changes)
    run.save_config(config)
    same_budget = old.get("budget") == dict(stage.budget)
    if old.get("finished") and same_budget and not changes and not force and _outputs_stand(run, old):
        if stage.parts is not None:
            remove(stage.parts)  # of a --force that was interrupted
        reporter.note(f"{stage.name}: nothing has changed, skipped.")
        return StageOutcome(counts=old["counts"], skipped=True)
    for change in changes if old else []:
        reporter.note(f"{stage.name}: done again, {change}")
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
        if force or changes:
            stage.discard()
        # What is begun now may go on later, but only from the same inputs and settings.
        write_json(record_path, {**record, "finished": False})
    start = time.monotonic()
    if stage.parts is not None:
        _keep_parts(
            stage.parts, {name: record[name] for name in ("format", "elmo_zh", "settings", "inputs")}, force=force
        )
    result = stage.work()
    outputs = describe_files({str(path.relative_to(run.path)): path for path in result.outputs}, {})
    seconds = round(time.monotonic() - start, 3)
    counts = dict(result.counts)
    finished = {"finished": True, "outputs": outputs, "counts": counts, "seconds": seconds}
    write_json(record_path, {**record, **finished, **result.details})
    if stage.parts is not None:
        remove(stage.parts)
    return StageOutcome(counts=result.counts, skipped=False)


def _keep_parts(folder: Path, made_from: Mapping[str, Any], *, force: bool) -> None:
    """Leave only such parts in a folder as were made from the very same; with `force` none."""
    digests = {name: entry["digest"] for name, entry in made_from["inputs"].items()}
    content = json.dumps({**made_from, "inputs": digests}, sort_keys=True, ensure_ascii=False)
    path = folder / PARTS_KEY
    if force or not path.exists() or path.read_text(encoding="utf-8") != content:
        remove(folder)
        with atomic_path(path) as unfinished:
            unfinished.write_text(content, encoding="utf-8")


def require_inputs(run: RunDir, paths: Any) -> None:
    """Raise RunError, naming the command that makes it, for the first path that does not exist."""
    for path in paths:
        if not path.exists():
            inside = path.relative_to(run.path).parts[0] if path.is_relative_to(run.path) else ""
            maker = MAKERS.get(inside)
            hint = f"Make it with: elmo-zh {maker} --run {run.path}" if maker else "Check the path."
            raise RunError(f"{path} is missing. {hint}")


def source_digest(run: RunDir, stage: str, name: str, path: Path, hint: str = "Check the path.") -> str:
    """Return the digest of a file outside the run, for the settings of a stage that is to start from it.

    Once the stage was begun, the file may go away: then nothing is said to have changed.

    Args:
        run: The run.
        stage: The stage's name.
        name: The setting that the digest is recorded under.
        path: The file.
        hint: What to do if it is missing.

    Raises:
        RunError: If the file is missing or the run's own, and the stage was not begun with it.
    """
    is_own = run.holds(path)
    if path.is_file() and not is_own:
        return file_digest(path)
    known = load_record(run.stage_record(stage), damaged_is_none=True).get("settings", {}).get(name)
    if known:
        return str(known)
    if is_own:
        raise RunError(f"{path} is of {run.path} itself, which cannot start from what it makes. Choose another --run.")
    raise RunError(f"{path} is missing. {hint}")


def load_record(path: Path, *, damaged_is_none: bool = False) -> dict[str, Any]:
    """Return a stage record, or an empty one if there is none or it is of another format."""
    if not path.exists():
        return {}
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        if damaged_is_none:
            return {}
        raise RunError(f"{path} is damaged ({error}). Have the stage done again with --force.") from None
    return record if record.get("format") == RECORD_FORMAT else {}


def describe_files(files: Mapping[str, Path], known: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return digest, size and time stamp of each file, taking the digest from `known` where nothing has moved.

    Size and time stamp only save reading a file again; what counts is the digest of its content.
    """
    described = {}
    for name, path in files.items():
        status = path.stat()
        stamp = {"bytes": status.st_size, "modified_ns": status.st_mtime_ns}
        before = known.get(name, {})
        is_known = stamp == {key: before.get(key) for key in stamp}
        digest = before["digest"] if is_known else file_digest(path)
        described[name] = {"digest": digest, **stamp}
    return described


def _changes(old: Mapping[str, Any], settings: Mapping[str, Any], inputs: Mapping[str, Any]) -> list[str]:
    """Return one line for each setting or input that differs from the record."""
    changes = [
        f"{name} was {old['settings'].get(name)!r}, is {settings.get(name)!r}"
        for name in sorted({*old["settings"], *settings})
        if old["settings"].get(name) != settings.get(name)
    ]
    before = {name: entry["digest"] for name, entry in old["inputs"].items()}
    now = {name: entry["digest"] for name, entry in inputs.items()}
    if sorted(before.values()) != sorted(now.values()):
        changes.extend(_file_changes(before, now))
    return changes


def _file_changes(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    different = sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
    lines = []
    for name in different[:5]:
        what = "new" if name not in before else "gone" if name not in now else "another content"
        lines.append(f"input {name}: {what}")
    if len(different) > 5:
        lines.append(f"and {len(different) - 5} more inputs differ")
    return lines


def is_in_training(run: RunDir) -> bool:
    """Return whether the run holds checkpoints."""
    return run.checkpoints.is_dir() and any(run.checkpoints.glob("step-*"))


def refuse_to_discard_training(run: RunDir, stage: str, changes: Sequence[str]) -> None:
    """Raise RunError if the run holds checkpoints, which `changes` in a stage would make worthless."""
    if is_in_training(run):
        raise RunError(
            *(f"{run.path} is in training and {stage} would differ: {change}." for change in changes),
            f"Choose another --run (make train: RUN=...), or add --force (with the pipeline command)"
            f" to discard {run.checkpoints} and start over.",
        )


def _outputs_stand(run: RunDir, record: Mapping[str, Any]) -> bool:
    """Return whether all recorded outputs are still there with the recorded content."""
    paths = {name: run.path / name for name in record["outputs"]}
    if not all(path.is_file() for path in paths.values()):
        return False
    now = describe_files(paths, record["outputs"])
    return all(now[name]["digest"] == entry["digest"] for name, entry in record["outputs"].items())
