"""Describe a run from its records and, if asked, from its text; list the runs in a folder."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from elmo_zh.bundle.find_bundle import next_step_of_run
from elmo_zh.corpus.cleaning.line_counts import visible
from elmo_zh.info.text_survey import Finding, TextSurvey
from elmo_zh.language import N_, _
from elmo_zh.run.files import folder_bytes, require_regular_files
from elmo_zh.run.find_runs import LATEST, iter_runs
from elmo_zh.run.layout import RunDir
from elmo_zh.run.locks import is_locked
from elmo_zh.run.record import corpus_names, ended_at, load_records
from elmo_zh.run.reporter import Reporter, aligned, first_ten, format_bytes, format_date, format_seconds

# A run with more of its text left out, with less or more of it held out, or with less of it in the vocabulary, is odd.
_MUCH_DROPPED = 0.5
_LEAST_HELDOUT, _MOST_HELDOUT = 0.001, 0.15
_LITTLE_COVERAGE = 0.9


def describe_run(path: Path) -> dict[str, Any]:
    """Describe a run, finished or not, from the records of its stages; damaged records count as missing."""
    run = RunDir(path)
    require_regular_files(path)
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
        "is_in_use": is_locked(run.lock),
        "started_at": min((record["started_at"] for record in records.values()), default=""),
        "finished_at": max(map(ended_at, finished.values()), default=""),
        "stages": {name: {"seconds": record["seconds"], **record["counts"]} for name, record in finished.items()},
        "checkpoint_step": max(steps, default=None),
        "train_tokens": segmented.get("train_tokens"),
        "perplexity": trained.get("heldout", {}).get("perplexity"),
        "bigram_perplexity": trained.get("baselines", {}).get("bigram", {}).get("perplexity"),
        "findings": [asdict(finding) for finding in findings_of_records(finished)],
        "verdict": trained.get("findings", []),
        "next": next_step_of_run(path),
    }


def findings_of_records(finished: Mapping[str, Mapping[str, Any]]) -> Iterator[Finding]:
    """Yield what looks odd in the records of the stages that read text."""
    segment = finished.get("segment", {})
    sources, counts = segment.get("sources", {}), segment.get("counts")
    kept = {name: source["kept_characters"] / max(1, source["characters"]) for name, source in sources.items()}
    if lost := [name for name, share in kept.items() if share < 1 - _MUCH_DROPPED]:
        yield Finding(what=N_("sources with most of their text left out"), count=len(lost), example=lost[0])
    if counts:
        share = counts["heldout_tokens"] / max(1, counts["heldout_tokens"] + counts["train_tokens"])
        if not _LEAST_HELDOUT <= share <= _MOST_HELDOUT:
            yield Finding(what=N_("unusual share of held-out tokens"), count=round(share, 6))
    coverage = finished.get("vocab", {}).get("counts", {}).get("coverage", 1.0)
    if coverage < _LITTLE_COVERAGE:
        yield Finding(what=N_("tokens outside the vocabulary"), count=round(1 - coverage, 4))


def survey_run(path: Path, reporter: Reporter) -> dict[str, Any]:
    """Read the segmented text of a run, and return its counts and findings, or {} for a run without text."""
    files = RunDir(path).train_files()
    if not files:
        return {}
    survey = TextSurvey.of_files(files, reporter)
    return {**survey.described(), "findings": [asdict(finding) for finding in survey.findings()]}


def run_lines(run: Mapping[str, Any]) -> Iterator[str]:
    """Yield the figures and findings of a run, and the verdict on its training, as lines."""
    if not run["stages"]:
        yield _("No stage has finished yet.")
    for name, stage in run["stages"].items():
        counts = ", ".join(
            f"{_(key.replace('_', ' '))} {value:,}"
            for key, value in stage.items()
            if key != "seconds" and isinstance(value, int | float) and not isinstance(value, bool)
        )
        yield f"{name} ({format_seconds(stage['seconds'])}): {counts}"
    findings = [*run["findings"], *run.get("text", {}).get("findings", ())]
    if findings:
        yield _("Worth a look (docs/planning.md says what to do):")
    for finding in findings:
        count = f"{finding['count']:,}" if isinstance(finding["count"], int) else f"{finding['count']:.2%}"
        example = f" ({visible(finding['example'])})" if finding["example"] else ""
        yield f"  {_(finding['what'])}: {count}{example}"
    if run["verdict"]:
        from elmo_zh.training.verdict import describe_verdict

        yield from describe_verdict(run["verdict"])


def list_runs(folder: Path) -> list[dict[str, Any]]:
    """Return a description of each run in a folder and its subfolders, finished or not, newest first."""
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
    marks = [_("latest")] * run["is_latest"] + [_("in use now")] * run["is_in_use"]
    if not {"train", "export"} <= run["stages"].keys():
        step = run["checkpoint_step"]
        last = f"train {step:,}" if step is not None else next(reversed(run["stages"]), "")
        marks.append(_("unfinished, last stage: {stage}").format(stage=last or "-"))
    corpus, local = first_ten(run["corpus"][:3]) or "-", format_date(date) if date else "-"
    return run["path"], corpus, tokens, format_bytes(run["bytes"]), *perplexities, local, "; ".join(marks)
