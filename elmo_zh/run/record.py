"""Run a stage unless its record shows that nothing has changed, record its results, and describe what has changed."""

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from elmo_zh.config import Config, default_setting
from elmo_zh.engine import EngineChoice
from elmo_zh.errors import INSIDE_RUN, OTHER_DIGEST, ElmoZhError, RunError
from elmo_zh.language import _
from elmo_zh.run.files import PARTS, file_digest, read_sealed, remove, require_regular, sealed, write_json
from elmo_zh.run.layout import RunDir
from elmo_zh.run.reporter import Reporter, counted, first_ten
from elmo_zh.run.stage_table import EXPORT, STAGES, Stage, maker_of, makers_for
from elmo_zh.version import __version__

RECORD_FORMAT = 2


@dataclass(frozen=True, kw_only=True)
class StageResult:
    """The result of a stage; the record has its counts, which are also printed, and its details, which are not."""

    counts: Mapping[str, Any] = field(default_factory=dict)
    outputs: Sequence[Path] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    skipped: bool = False  # because nothing had changed


@dataclass(frozen=True, kw_only=True)
class StageContext:
    """The run, the settings and the options that a command passes to each stage."""

    run: RunDir
    config: Config  # The final settings, as `stages.settings.resolve_settings` returns them
    reporter: Reporter
    force: bool = False  # Run even if nothing has changed, and discard training that depends on the stage
    engine: EngineChoice = field(default_factory=EngineChoice)


def run_stage(
    stage: Stage,
    context: StageContext,
    work: Callable[[], StageResult],
    *,
    files: Mapping[str, Path] | None = None,
    facts: Mapping[str, Any] | None = None,
) -> StageResult:
    """Run a stage, unless nothing has changed since it finished and `context.force` is false; save the settings.

    Args:
        stage: Its declaration.
        context: The run, the settings, and how to work.
        work: Does the work, and returns the files that it made and the counts to record.
        files: Inputs besides those in the declaration, by their names in the record.
        facts: Recorded values that decide the result besides settings, such as the version of the segmenter.

    Raises:
        RunError: If an input is missing or damaged, an earlier stage ran with other settings, or, without force, the
            changes would make the run's checkpoints useless.
    """
    run, config, force = context.run, context.config, context.force
    new = describe_stage(stage, context, files or {}, facts or {})
    old = load_record(run.stage_record(stage.name), damaged_is_none=force)
    changes = describe_changes(old, new) if old else []
    if not force and stage is not EXPORT and is_in_training(run):
        missing = _("the record of how the checkpoints were made is missing")
        _require_no_loss(run, changes or ([missing] if stage.resumes and not old else []))
    is_finished = old.get("finished") and not old.get("continues")
    is_finished = is_finished and old["budget"] == new["budget"] and not (changes or force)
    if is_finished and _are_unchanged({name: run.path / name for name in old["outputs"]}, old["outputs"]):
        for name in stage.makes:
            remove(run.path / f"{name}{PARTS}")  # left by an interrupted --force
        context.reporter.note(_("{stage}: nothing has changed, skipped.").format(stage=stage.name))
        run.save_config(config)
        return StageResult(counts=old["counts"], skipped=True)
    if changes and old:
        message = _("{stage} runs again: {changes}.")
        context.reporter.note(message.format(stage=stage.name, changes=_("; ").join(changes)))
    return _run_and_record(stage, context, new, work, starts_over=force or bool(changes))


def describe_stage(
    stage: Stage, context: StageContext, files: Mapping[str, Path], facts: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what decides a stage's result, for its record; raise RunError if an input is missing, damaged or stale."""
    run, config = context.run, context.config
    paths = {**input_files(stage, context), **files}
    require_files(run, paths.values())
    _require_same_settings(stage, run, config, facts)
    known = load_record(run.stage_record(stage.name), damaged_is_none=context.force).get("inputs", {})
    inputs = describe_files(paths, known)
    _require_intact(stage, run, inputs)
    return {
        "settings": {**stage.settings(config), **facts},
        "budget": stage.budget_settings(config),
        "inputs": inputs,
    }


def _require_no_loss(run: RunDir, changes: Sequence[str]) -> None:
    """Raise RunError if there are changes that make the run's checkpoints useless."""
    if changes:
        message = _(
            "{run} contains training progress that would be discarded. Reason: {changes}. To keep it, choose another"
            " run: {other}; to start over: {again}."
        )
        gaps = {"run": run.path, "changes": _("; ").join(changes), "other": "--run RUN", "again": "--force"}
        raise RunError(message.format(**gaps))


def _run_and_record(
    stage: Stage, context: StageContext, new: Mapping[str, Any], work: Callable[[], StageResult], *, starts_over: bool
) -> StageResult:
    run, path = context.run, context.run.stage_record(stage.name)
    started_at = datetime.now(UTC).isoformat(timespec="seconds")
    record = {"stage": stage.name, "format": RECORD_FORMAT, "elmo_zh": __version__, **new, "started_at": started_at}
    if stage.resumes:
        for name in stage.makes if starts_over else ():
            remove(run.path / name)
        # An interrupted stage may resume later, but only with the inputs and settings that are recorded here.
        write_json(path, sealed({**record, "finished": False}))
    known = run.load_config(None, []) if run.config.exists() else None
    run.save_config(context.config)
    start = time.monotonic()
    try:
        result = work()
    except ElmoZhError:  # perhaps because of the settings
        run.config.unlink() if known is None else run.save_config(known)
        raise
    outputs = describe_files({str(path.relative_to(run.path)): path for path in result.outputs}, {})
    seconds = round(time.monotonic() - start, 3)
    finished = {"finished": True, "outputs": outputs, "counts": dict(result.counts), "seconds": seconds}
    write_json(path, sealed({**record, **finished, **result.details}))
    return result


# Inputs


def input_files(stage: Stage, context: StageContext) -> dict[str, Path]:
    """Return the files of a run that a stage reads, by their paths in the run; a missing required one raises RunError.

    A folder, such as the id store, only has to exist: the stage knows which of its files it reads.
    """
    run, files = context.run, {}
    required = stage.inputs(context.config)
    for pattern in (*required, *stage.optional_inputs):
        matches = sorted(run.path.glob(pattern))
        if not matches and pattern in required:
            folder = run.path / Path(pattern).parts[0]
            require_files(run, [folder, run.path / pattern])
        files.update({str(path.relative_to(run.path)): path for path in matches if not path.is_dir()})
    return files


def require_files(run: RunDir, paths: Iterable[Path]) -> None:
    """Raise RunError for the first path that does not exist, naming the command that creates it, if one does."""
    for path in paths:
        if not path.exists():
            maker = maker_of(path.relative_to(run.path)) if path.is_relative_to(run.path) else None
            if maker is None:
                raise RunError.missing(path)
            raise RunError.missing(path, maker.command(run.path))


def _require_intact(stage: Stage, run: RunDir, described: Mapping[str, Any]) -> None:
    """Raise RunError if an input that must be intact has changed since the stage that wrote it recorded its digest.

    `described` has the digests of inputs that are already known.
    """
    for maker in STAGES:
        recorded = load_record(run.stage_record(maker.name), damaged_is_none=True).get("outputs", {})
        intact = [name for name in recorded if any(fnmatch(name, pattern) for pattern in stage.intact_inputs)]
        files = {name: run.path / name for name in intact if (run.path / name).is_file()}
        for name, entry in describe_files(files, described).items():
            if entry["digest"] != recorded[name]["digest"]:
                reason = _(OTHER_DIGEST).format(name=run.stage_record(maker.name))
                raise RunError.damaged(files[name], reason, maker.command(run.path, "--force"))


def _require_same_settings(stage: Stage, run: RunDir, config: Config, facts: Mapping[str, Any]) -> None:
    """Raise RunError if a stage that this one needs ran with other settings; ignore settings that both use."""
    needed = makers_for(stage, config)
    for maker in filter(needed.__contains__, STAGES):
        recorded = load_record(run.stage_record(maker.name)).get("settings", {})
        now = {name: value for name, value in maker.settings(config).items() if not stage.uses(name)}
        now |= {name: facts[name] for name in facts.keys() & recorded.keys()}
        before = {name: recorded[name] for name in now.keys() & recorded.keys()}
        if recorded and (changes := describe_settings(before, now)):
            message = _(
                "{stage} ran with other settings: {changes}. Use the old values again, or run it again: {command}"
            )
            again = maker.command(run.path)
            raise RunError(message.format(stage=maker.name, changes=_("; ").join(changes), command=again))


# Records


def source_digest(run: RunDir, stage: str, name: str, path: Path) -> str:
    """Return the digest of a source file; if it is gone or inside the run, the digest that the stage recorded.

    Raises:
        RunError: If the stage has recorded none.
    """
    is_inside = run.holds(path)
    if path.is_file() and not is_inside:
        return file_digest(path)
    known = load_record(run.stage_record(stage), damaged_is_none=True).get("settings", {}).get(name)
    if known:
        return str(known)
    if is_inside:
        raise RunError(_(INSIDE_RUN).format(path=path, run=run.path))
    raise RunError.missing(path)


def load_record(path: Path, *, damaged_is_none: bool = False) -> dict[str, Any]:
    """Return a stage record, or an empty one if it is missing or in a different format.

    A damaged record raises RunError; with `damaged_is_none` it counts as missing.
    """
    if not path.exists():
        return {}
    try:
        record = read_sealed(path)
    except ValueError as error:
        if damaged_is_none:
            return {}
        raise RunError.unusable(path, error) from None
    return record if record.get("format") == RECORD_FORMAT else {}


def load_records(run: RunDir, *, damaged_is_none: bool = False) -> dict[str, dict[str, Any]]:
    """Return the records of all stages that have one in the current format, by stage name."""
    require_regular(*run.path.rglob("*"))
    names = (stage.name for stage in STAGES)
    records = {name: load_record(run.stage_record(name), damaged_is_none=damaged_is_none) for name in names}
    return {name: record for name, record in records.items() if record}


def corpus_names(run: RunDir) -> list[str]:
    """Return the files and folders of the run's corpus as the user named them; [] if there is no record of it."""
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


def _are_unchanged(files: Mapping[str, Path], recorded: Mapping[str, Any]) -> bool:
    if not all(path.is_file() for path in files.values()):
        return False
    now = describe_files(files, recorded)
    return all(now[name]["digest"] == recorded[name]["digest"] for name in files)


# What has changed


def describe_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return a phrase for each changed setting, such as "vocab.size 30000 -> 50000", and one for all changed inputs."""
    changes = describe_settings(old["settings"], new["settings"])
    before, now = ({name: entry["digest"] for name, entry in record["inputs"].items()} for record in (old, new))
    if sorted(before.values()) != sorted(now.values()):
        names = sorted(name for name in {**before, **now} if before.get(name) != now.get(name))
        count = counted(len(names), "{number} file", "{number} files")
        changes.append(_("{count} changed ({names})").format(count=count, names=first_ten(names)))
    return changes


def describe_settings(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return a phrase for each changed setting, by the names that users type; a missing value counts as the default."""
    values = {name: (_value(name, before), _value(name, now)) for name in sorted({*before, *now})}
    changed = {name: pair for name, pair in values.items() if pair[0] != pair[1]}
    if "text.segmenter" in changed:
        changed.pop("text.segmenter_version", None)  # another segmenter has another version
    return [f"{name} {_spell(old, new)} -> {_spell(new, old)}" for name, (old, new) in changed.items()]


def _value(name: str, settings: Mapping[str, Any]) -> Any:
    return settings[name] if name in settings else default_setting(name)


def _spell(value: Any, other: Any) -> str:
    """Return a value in the form that --set takes, a digest by its first digits, or a segmenter by its name."""
    if isinstance(value, str) and value.startswith("sha256:"):
        return value[7:15]
    if isinstance(value, dict):
        return spell_segmenter(value, other)
    if value is None or isinstance(value, str):
        return value or _("none")
    return json.dumps(value, ensure_ascii=False)


def spell_segmenter(described: Mapping[str, str] | None, other: Mapping[str, str] | None = None) -> str:
    """Return a segmenter's name, such as "jieba 0.42.1", with the digests that differ from another segmenter's."""
    if not described:
        return "unknown"
    words = [" ".join(described[key] for key in ("name", "version") if key in described)]
    for key in sorted({*described, *(other or {})} - {"name", "version", "package"}):
        if other is not None and described.get(key) != other.get(key):
            value = described.get(key, "none").removeprefix("sha256:")
            words.append(f"{key.replace('_', ' ')} {value[:8]}")
    return " with ".join([words[0], ", ".join(words[1:])] if words[1:] else words)
