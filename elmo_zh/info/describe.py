"""Describe folders as JSON values and as lines."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmo_zh.bundle import BundleLayout
from elmo_zh.bundle.find_bundle import explain_no_bundle, next_step_of_run
from elmo_zh.bundle.options_json import load_options
from elmo_zh.corpus.counts import visible
from elmo_zh.errors import OutputError, RunError
from elmo_zh.invocation import command
from elmo_zh.language import N_, _
from elmo_zh.names import label
from elmo_zh.run.files import folder_bytes, read_json, require_regular
from elmo_zh.run.layout import LATEST, RUNS, RunDir, explain_no_run, iter_runs
from elmo_zh.run.outputs import KINDS, changed_files, kind_of, load_mark, require_unchanged
from elmo_zh.run.record import corpus_names, ended_at, load_records
from elmo_zh.run.reporter import aligned, first_ten, format_bytes, format_date, format_seconds, joined

if TYPE_CHECKING:
    from elmo_zh.bundle.read import Bundle

# What is shown of the JSON file that each kind of output has under its own name, such as index.json.
_SHOWN = {
    "index": ("model", "dimension", "settings", "counts", "missing_words"),
    "task": ("settings", "labels", "model", "members", "training", "scores"),
    "comparison": ("metric", "verdict", "recommended", "model", "examples", "files"),
    "probe": ("what", "best_layer", "rows", "model", "examples"),
}
# Parts of values that only --json shows, and values whose parts are settings, which have the names that users type.
_ONLY_JSON, _SETTINGS = frozenset({"by_label", "chosen_seed", "digests", "members", "seeds"}), ("settings", "text")
_PLAIN = {None: N_("none"), True: N_("yes"), False: N_("no")}
_RESULTS = {True: N_("ok"), False: N_("FAILED"), None: N_("skip")}
POOR_FROM_ZERO = N_(
    "This model was trained with carried state, so its vectors from zero state are poor. Convert it with"
    " --warm-on TEXT to give it a warm state, or embed with --stateful."
)


@dataclass(frozen=True)
class Description:
    """A description of a folder as JSON values and as lines, with the problems that a check found."""

    values: dict[str, Any]
    lines: Sequence[str]
    problems: list[str] = field(default_factory=list)


def rows(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line, `name: value`, for each value that is not an empty string or collection."""
    shown = {name: value for name, value in values.items() if value not in ("", (), [], {})}
    if shown:
        parts = {name: _shown(value, str if name in _SETTINGS else label) for name, value in shown.items()}
        yield from aligned([(visible(label(name)) + _(":"), part) for name, part in parts.items()], left=(0, 1))


def _shown(value: Any, say: Callable[[str], str] = label, *, is_part: bool = False) -> str:
    if isinstance(value, Mapping):
        parts = ((name, part) for name, part in value.items() if name not in _ONLY_JSON)
        shown = joined([f"{visible(say(str(name)))} {_shown(part, say, is_part=True)}" for name, part in parts])
        return f"({shown})" if is_part else shown
    if isinstance(value, list | tuple):
        return first_ten([_shown(part, say, is_part=True) for part in value])
    if value is None or isinstance(value, bool):
        return _(_PLAIN[value])
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.4g}" if isinstance(value, float) else visible(str(value))


def describe(path: Path, *, check: bool = False, device: str = "auto") -> Description:
    """Describe a run, a folder of runs, a bundle, an index, a task, a comparison, a probe, or another program's model.

    With `check`, also run the self-test of a bundle, or compare the files of other outputs and runs with their digests.
    """
    if not path.is_dir() and path != RUNS:
        raise RunError(explain_no_run(path) if path.parent == RUNS else explain_no_bundle(path))
    kind = "bundle" if BundleLayout(path).info.is_file() else kind_of(path)
    if kind:
        require_regular(*path.rglob("*"))
    if kind == "bundle":
        return _describe_bundle(path, check=check, device=device)
    if kind in _SHOWN:
        return _describe_output(path, kind, check=check)
    if kind == "run":
        return _describe_run(path, check=check)
    if (path / "options.json").is_file() or (path / "char.dic").is_file():
        return _describe_foreign(path)
    runs = list_runs(path)
    if not runs and path != RUNS:
        raise RunError(explain_no_run(path))
    lines = [*list_lines(runs)] if runs else [explain_no_run(path)]
    return Description({"kind": "folder of runs", "path": str(path), "runs": runs}, lines)


def _describe_output(path: Path, kind: str, *, check: bool) -> Description:
    file = path / f"{kind}.json"
    if not file.is_file():
        raise OutputError.missing(file)
    require_unchanged(file)
    try:
        content = read_json(file)
        figures = {name: content[name] for name in _SHOWN[kind] if content.get(name) is not None}
        texts = [str(text["name"]) for text in content.get("texts", [])]
        digests = {**load_mark(path).get("files", {}), **content.get("digests", {})}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise OutputError.damaged(file, f"{error!r:.80}") from None
    date = datetime.fromtimestamp(file.stat().st_mtime, UTC).isoformat(timespec="seconds")
    values = {"kind": kind, "path": str(path), "bytes": folder_bytes(path), "date": date, "texts": texts, **figures}
    reader, report = KINDS[kind].reader, path / f"{kind}.md"
    lines = _lines(values, *reader, *([path] if reader else []))
    if report.is_file():
        lines = report.read_text(encoding="utf-8").rstrip().split("\n")
    return _checked(path, values, lines, digests if check else {})


def _checked(path: Path, values: dict[str, Any], lines: list[str], digests: Mapping[str, str | None]) -> Description:
    """Return a description with the files that have changed since their digests were recorded."""
    changed = changed_files(path, digests)
    if digests:
        values["changed_files"] = changed
    if digests and not changed:
        lines.append(_("Files checked: {count}. None has changed since it was written.").format(count=len(digests)))
    return Description(values, lines, changed)


def _describe_foreign(path: Path) -> Description:
    """Describe another program's model by its files and its options; `convert` checks that they fit together."""
    options = path / "options.json"
    content = load_options(options) if options.is_file() else {}
    values = {
        "kind": "model",
        "path": str(path),
        "files": sorted(file.name for file in path.iterdir()),
        "options": content,
    }
    return Description(values, _lines(values, "convert", path, "--output", "DIR"))


def _lines(values: dict[str, Any], *words: str | Path) -> list[str]:
    """Return values as lines; with `words`, add the next command to the values and to the lines."""
    lines = [values["path"], *rows({name: value for name, value in values.items() if name not in ("path", "digests")})]
    if words:
        values["next"] = command(*words)
        lines.append(_("Next: {command}").format(command=values["next"]))
    return lines


# Bundles


def _describe_bundle(path: Path, *, check: bool, device: str) -> Description:
    """Describe a bundle after checking the digests of its files; with `check`, also run its self-test."""
    from elmo_zh.bundle.read import load_bundle
    from elmo_zh.embed.selftest import run_selftest

    bundle = load_bundle(path)
    values = _values_of(bundle)
    *lines, following = _lines(values, "embed", "file.txt", "--model", path, *(() if bundle.text else ("--segmented",)))
    problems: list[str] = []
    if check:
        checks = run_selftest(bundle, device)
        failed = [_(result.name) for result in checks if result.passed is False]
        problems = [_("{name}: {value}").format(name=_(_RESULTS[False]), value=name) for name in failed]
        values["checks"] = [asdict(result) for result in checks]
        described = [_("{name}: {value}").format(name=_(result.name), value=result.found) for result in checks]
        lines += [f"{_(_RESULTS[result.passed]):6} {line}" for result, line in zip(checks, described, strict=True)]
    if bundle.needs_warm_state():
        lines.append(_(POOR_FROM_ZERO))
    return Description(values, [*lines, following], problems)


def _values_of(bundle: "Bundle") -> dict[str, Any]:
    from elmo_zh.bundle.weights import count_parameters

    shape = bundle.shape
    sizes = {field.name: getattr(shape, field.name) for field in fields(shape) if field.name != "characters"}
    if bundle.vocabulary is None:
        del sizes["num_tokens"]
    return {
        "kind": "bundle",
        "path": str(bundle.path),
        "digest": bundle.digest,
        "mode": shape.mode,
        "origin": bundle.info["origin"],
        "sizes": sizes,
        "characters": asdict(shape.characters) if shape.characters else None,
        "parameters": count_parameters(bundle.weights),
        "softmax": bundle.weights.has_softmax,
        "tied_softmax": bundle.weights.is_tied,
        "vocabulary": len(bundle.vocabulary) if bundle.vocabulary else None,
        "segmenter": bundle.info["segmenter"],
        "text": bundle.info["text"],
        "carry_state": bundle.info["carry_state"],
        "warm_state": bundle.weights.warm_state is not None,
        "training": bundle.info["training"],
        "history": asdict(bundle.history),
        "digests": bundle.info["digests"],
    }


# Runs


def _describe_run(path: Path, *, check: bool) -> Description:
    values = describe_run(path)
    names = ("corpus", "bytes", "started_at", "finished_at", "checkpoint_step")
    shown = rows({name: values[name] for name in names if values[name] is not None})
    records = load_records(RunDir(path), damaged_is_none=True).values() if check else ()
    digests = {name: entry["digest"] for record in records for name, entry in record.get("outputs", {}).items()}
    return _checked(path, values, [str(path), *shown, *_run_lines(values), values["next"]], digests)


def describe_run(path: Path) -> dict[str, Any]:
    """Describe a run, finished or not, from the records of its stages; damaged records count as missing."""
    run = RunDir(path)
    records = load_records(run, damaged_is_none=True)
    finished = {name: record for name, record in records.items() if record.get("finished")}
    segmented, trained = (finished.get(name, {}).get("counts", {}) for name in ("segment", "train"))
    steps = [int(step.name[len("step-") :]) for step in run.checkpoints.glob("step-" + "[0-9]" * 8)]
    return {
        "kind": "run",
        "path": str(path),
        "corpus": corpus_names(run),
        "bytes": folder_bytes(path),
        "is_latest": LATEST.is_dir() and LATEST.resolve() == path.resolve(),
        "started_at": min((record["started_at"] for record in records.values()), default=""),
        "finished_at": max(map(ended_at, finished.values()), default=""),
        "stages": {name: {"seconds": record["seconds"], **record["counts"]} for name, record in finished.items()},
        "checkpoint_step": max(steps, default=None),
        "train_tokens": segmented.get("train_tokens"),
        "perplexity": trained.get("heldout", {}).get("perplexity"),
        "bigram_perplexity": trained.get("baselines", {}).get("bigram", {}).get("perplexity"),
        "verdict": trained.get("findings", []),
        "next": next_step_of_run(path),
    }


def _run_lines(run: Mapping[str, Any]) -> Iterator[str]:
    """Yield the figures of a run, and the verdict on its training, as lines."""
    for name, stage in run["stages"].items():
        counts = [
            f"{label(key)} {value:,}"
            for key, value in stage.items()
            if key != "seconds" and isinstance(value, int | float) and not isinstance(value, bool)
        ]
        timed = f"{name} ({format_seconds(stage['seconds'])})"
        yield _("{name}: {value}").format(name=timed, value=joined(counts))
    if run["verdict"]:
        from elmo_zh.training.verdict import describe_verdict

        yield from describe_verdict(run["verdict"])


def list_runs(folder: Path) -> list[dict[str, Any]]:
    """Return a description of each run in a folder and its direct subfolders, finished or not, newest first."""
    runs = [describe_run(path) for path in iter_runs(folder)]
    return sorted(runs, key=lambda run: run["finished_at"] or run["started_at"], reverse=True)


def list_lines(runs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a table of runs, line by line."""
    header = (_("run"), _("corpus"), _("tokens"), _("disk"), _("perplexity"), _("bigram"), _("date"), "")
    yield from aligned([header, *map(_cells, runs)], left=(0, 1, 6, 7))


def _cells(run: Mapping[str, Any]) -> tuple[str, ...]:
    tokens = "-" if run["train_tokens"] is None else f"{run['train_tokens']:,}"
    perplexities = ("-" if run[name] is None else f"{run[name]:,.1f}" for name in ("perplexity", "bigram_perplexity"))
    date = run["finished_at"] or run["started_at"]
    marks = [_("latest")] * run["is_latest"]
    if not {"train", "export"} <= run["stages"].keys():
        step = run["checkpoint_step"]
        last = f"train {step:,}" if step is not None else next(reversed(run["stages"]), "")
        marks.append(_("unfinished, last stage: {stage}").format(stage=last or "-"))
    corpus, local = first_ten(run["corpus"][:3], len(run["corpus"])) or "-", format_date(date) if date else "-"
    return run["path"], corpus, tokens, format_bytes(run["bytes"]), *perplexities, local, _("; ").join(marks)
