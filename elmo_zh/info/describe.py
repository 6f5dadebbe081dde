"""Describe a path, whatever elmo-zh wrote there, as JSON values and as lines."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from elmo_zh.bundle.find_bundle import explain_no_bundle
from elmo_zh.bundle.layout import BundleLayout
from elmo_zh.bundle.options_json import load_options
from elmo_zh.corpus.cleaning.line_counts import visible
from elmo_zh.errors import OutputError, RunError
from elmo_zh.info.description import Description, rows
from elmo_zh.info.runs import describe_run, list_lines, list_runs, run_lines, survey_run
from elmo_zh.invocation import command, train_command
from elmo_zh.language import _
from elmo_zh.run.files import folder_bytes, read_json, require_regular_files
from elmo_zh.run.find_runs import RUNS, explain_no_run, is_run, iter_runs
from elmo_zh.run.mark import KINDS, changed_files, kind_of, load_mark, require_unchanged
from elmo_zh.run.reporter import Reporter, format_bytes, format_date

# What is shown of the JSON file that each kind of output has under its own name, such as index.json.
_SHOWN = {
    "index": ("model", "dimension", "settings", "counts", "missing_words"),
    "task": ("settings", "labels", "model", "members", "training", "scores"),
    "comparison": ("metric", "verdict", "recommended", "model", "ancestor", "examples", "files"),
    "probe": ("what", "best_layer", "rows", "model", "examples"),
}


def describe(path: Path, reporter: Reporter, *, check: bool = False, device: str = "auto") -> Description:
    """Describe a run, a folder of runs, a bundle, an index, a task, a comparison, a probe, or another program's model.

    With `check`, also compute the self-test of a bundle, survey the text of a run, or compare the digests of the files
    of another output.
    """
    if path == RUNS and not any(iter_runs(path)):
        advice = _("There are no runs in {path}. Train a model with: {command}")
        lines = [advice.format(path=path, command=train_command())]
        return Description({"kind": "folder of runs", "path": str(path), "runs": []}, lines)
    if not path.is_dir():
        raise RunError(explain_no_run(path) if path.parent == RUNS else explain_no_bundle(path))
    kind = "bundle" if BundleLayout(path).info.is_file() else kind_of(path)
    if kind:
        require_regular_files(path)
    if kind == "bundle":
        from elmo_zh.info.models import describe_bundle

        return describe_bundle(path, check=check, device=device)
    if kind in _SHOWN:
        return _describe_output(path, kind, check=check)
    if kind == "run" or is_run(path):
        return _describe_run(path, reporter, check=check)
    if (path / "options.json").is_file() or (path / "char.dic").is_file():
        return _describe_foreign(path)
    if runs := list_runs(path):
        return Description({"kind": "folder of runs", "path": str(path), "runs": runs}, [*list_lines(runs)])
    raise RunError(explain_no_run(path))


def _describe_run(path: Path, reporter: Reporter, *, check: bool) -> Description:
    values = describe_run(path)
    shown = {"corpus": values["corpus"], "size": format_bytes(values["bytes"])}
    shown |= {name[:-3]: format_date(values[name]) for name in ("started_at", "finished_at") if values[name]}
    if values["checkpoint_step"] is not None:
        shown["checkpoint_step"] = values["checkpoint_step"]
    text = survey_run(path, reporter) if check else {}
    values["text"] = text
    samples = text and [_("Random sentences:"), *(f"  {visible(line)}" for line in text["samples"])]
    figures = {name: value for name, value in text.items() if name not in ("findings", "samples")}
    return Description(values, [str(path), *rows(shown), *run_lines(values), *rows(figures), *samples, values["next"]])


def _describe_output(path: Path, kind: str, *, check: bool) -> Description:
    file = path / f"{kind}.json"
    remedy = _("Write the folder again.")
    if not file.is_file():
        raise OutputError(f"{_('{path} is missing.').format(path=file)} {remedy}")
    require_unchanged(file, remedy)
    try:
        content = read_json(file)
        figures = {name: content[name] for name in _SHOWN[kind] if content.get(name) is not None}
        texts = [str(text["name"]) for text in content.get("texts", [])]
        digests = {**load_mark(path).get("files", {}), **content.get("digests", {})}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        message = _("{path} is damaged ({error}). Write the folder again.")
        raise OutputError(message.format(path=file, error=f"{error!r:.80}")) from None
    date = datetime.fromtimestamp(file.stat().st_mtime, UTC).isoformat(timespec="seconds")
    values = {"kind": kind, "path": str(path), "bytes": folder_bytes(path), "date": date, "texts": texts, **figures}
    changed = changed_files(path, digests) if check else []
    values |= {"changed_files": changed} if check else {}
    report = path / f"{kind}.md"
    if report.is_file():
        lines = report.read_text(encoding="utf-8").rstrip().split("\n")
    else:
        about = (_(KINDS[kind].what), format_bytes(values["bytes"]), format_date(date), texts)
        lines = [str(path), *rows({**dict(zip(("kind", "size", "date", "texts"), about, strict=True)), **figures})]
    if reader := KINDS[kind].reader:
        values["next"] = command(*reader, path)
        lines.append(_("Next: {command}").format(command=values["next"]))
    if check and not changed:
        lines.append(_("All files are as they were written: {count}.").format(count=len(digests)))
    return Description(values, lines, [_("{name} has changed").format(name=name) for name in changed])


def _describe_foreign(path: Path) -> Description:
    """Describe a model of another program by its options; `convert` checks that its files fit together."""
    options = path / "options.json"
    content = load_options(options) if options.is_file() else {}
    figures: dict[str, Any] = {"files": sorted(file.name for file in path.iterdir()), "options": content}
    following = command("convert", path, "--output", "DIR")
    lines = [str(path), *rows({"kind": _(KINDS["model"].what), **figures})]
    lines.append(_("Next: {command}").format(command=following))
    return Description({"kind": "model", "path": str(path), **figures, "next": following}, lines)
