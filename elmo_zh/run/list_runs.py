"""List the runs in a folder: their corpora, sizes and perplexities, and which one is the latest."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from elmo_zh.invocation import train_command
from elmo_zh.language import translate
from elmo_zh.run.files import folder_bytes, is_locked
from elmo_zh.run.find_runs import LATEST, iter_runs
from elmo_zh.run.layout import RunDir
from elmo_zh.run.record import corpus_names, ended_at, finished_stages, load_records
from elmo_zh.run.reporter import aligned, format_bytes, format_date


def list_runs(folder: Path) -> dict[str, Any]:
    """Return a description of each run in a folder and its subfolders, finished or not, newest first."""
    latest = (folder / LATEST.name).resolve() if (folder / LATEST.name).is_dir() else None
    runs = [_describe(path, is_latest=path.resolve() == latest) for path in iter_runs(folder)]
    runs.sort(key=lambda run: run["finished_at"] or run["started_at"], reverse=True)
    return {"folder": str(folder), "runs": runs}


def _describe(path: Path, *, is_latest: bool) -> dict[str, Any]:
    run = RunDir(path)
    records, finished = (load(run, damaged_is_none=True) for load in (load_records, finished_stages))
    segmented, trained = (finished.get(name, {}).get("counts", {}) for name in ("segment", "train"))
    return {
        "run": str(path),
        "is_latest": is_latest,
        "corpus": corpus_names(run),
        "train_tokens": _number(segmented, "train_tokens"),
        "bytes": folder_bytes(path),
        "is_in_use": is_locked(run.lock),
        "finished_stages": list(finished),
        "checkpoint_step": _last_checkpoint(run),
        "perplexity": _number(trained, "heldout", "perplexity"),
        "bigram_perplexity": _number(trained, "baselines", "bigram", "perplexity"),
        "started_at": min((record["started_at"] for record in records.values()), default=""),
        "finished_at": max(map(ended_at, finished.values()), default=""),
    }


def _number(counts: Any, *names: str) -> float | None:
    """Return the number in a record under nested keys; None if it is missing or is not a number."""
    for name in names:
        counts = counts.get(name) if isinstance(counts, dict) else None
    return counts if isinstance(counts, int | float) else None


def _last_checkpoint(run: RunDir) -> int | None:
    steps = [int(path.name[len("step-") :]) for path in run.checkpoints.glob("step-" + "[0-9]" * 8)]
    return max(steps, default=None)


def describe_runs(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield a table of runs for the screen, line by line, or advice if there are no runs."""
    if not found["runs"]:
        yield f"There are no runs in {found['folder']}. Train a model with: {train_command()}"
        return
    header = ("run", "corpus", "tokens", "disk", "perplexity", "bigram", "date", "")
    yield from aligned([*map(_cells, found["runs"])], left=(0, 1, 6, 7), header=header)


def _cells(run: Mapping[str, Any]) -> tuple[str, ...]:
    corpus, stages = run["corpus"], run["finished_stages"]
    names = corpus[0] if corpus else "-"
    if corpus[1:]:
        names = translate(f"{names} and {len(corpus) - 1:,} more")
    tokens = "-" if run["train_tokens"] is None else f"{run['train_tokens']:,}"
    perplexities = ("-" if run[name] is None else f"{run[name]:,.1f}" for name in ("perplexity", "bigram_perplexity"))
    date = run["finished_at"] or run["started_at"]
    local = format_date(date) if date else "-"
    marks = ["latest"] * run["is_latest"] + ["in use now"] * run["is_in_use"]
    if not {"train", "export"} <= set(stages):
        prepared = [stage for stage in stages if stage != "export"]
        done = f"unfinished, last finished stage: {prepared[-1]}" if prepared else translate("unfinished")
        step = run["checkpoint_step"]
        marks.append(f"{done}; trained to step {step:,}" if step is not None and "train" not in stages else done)
    return run["run"], names, tokens, format_bytes(run["bytes"]), *perplexities, local, translate("; ".join(marks))
