"""Lines of text that show a plan, and a plan beside the truth."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from elmo_zh.planning.comparison import CORPUS_FIGURES, MAKERS
from elmo_zh.run.record import STAGES
from elmo_zh.run.reporter import aligned, format_bytes, format_seconds

_TITLES = {"kept_characters": "of them kept", "rows": "vocabulary rows", "coverage": "tokens covered"}

# Why a size of the vocabulary is recommended.
_REASONS = {
    "coverage": "its words cover 95% of the tokens",
    "gain": "twice as many words would cover less than one percentage point more",
    "min_count": "it has room for every word that occurs vocab.min_count = {min_count} times or more",
}


def _title(name: str) -> str:
    kind, _, what = name.partition(".")
    if what:
        return f"{what}, {'time' if kind == 'seconds' else 'disk'}"
    return _TITLES.get(name, name.replace("_", " "))


def _show(name: str, value: float) -> str:
    """Return a figure in its own unit."""
    if name in ("coverage", "share"):
        return f"{value:.2%}" if name == "coverage" else f"{value:.1%}"
    if name.startswith("seconds."):
        return format_seconds(value)
    return format_bytes(value) if name.startswith("bytes.") else f"{value:,.0f}"


def _show_interval(name: str, values: Mapping[str, float]) -> str:
    low, high = (values.get(end, 0.0) for end in ("low", "high"))
    return "exact" if low == high else f"{_show(name, low)} to {_show(name, high)}"


def describe_plan(plan: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a plan."""
    figures = plan["figures"]
    yield from _sample(plan["sample"], plan["passed_over"])
    yield ""
    rows = [("corpus", "about", "95 in 100")]
    rows += [
        (_title(name), _show(name, figures[name]["value"]), _show_interval(name, figures[name]))
        for name in CORPUS_FIGURES
    ]
    yield from aligned(rows)
    yield ""
    yield from coverage_lines(plan["coverage_curve"])
    vocab = plan["settings"]["vocab"]
    reason = _REASONS[plan["recommended_because"]].format(**vocab)
    yield (
        f"Recommended: vocab.size = {plan['recommended_vocab_size']:,}, since {reason}. Set:"
        f" {vocab['size']:,}, which gives {figures['rows']['value']:,.0f} rows."
    )
    yield ""
    yield from _stages(plan["memory_bytes"], figures)
    if plan["training"]:
        yield ""
        yield from _training(plan["training"])
    yield ""
    size = format_bytes(plan["embedding_bytes"]["value"])
    yield f"Vectors of the whole corpus, with the settings of section embed: about {size}."


def _sample(sample: Mapping[str, Any], passed_over: Mapping[str, Any]) -> Iterator[str]:
    files = f"{sample['files']:,} {'files' if sample['files'] != 1 else 'file'}"
    if sample["is_all"]:
        yield f"All of the corpus was read: {files}, {format_bytes(sample['bytes'])}."
    else:
        yield (
            f"Sample: {sample['pieces']} blocks, {format_bytes(sample['bytes'])} of {files}, about"
            f" {format_bytes(sample['corpus_bytes'])} of text ({sample['share']:.2%})."
        )
    if sample["places_not_reached"]:
        yield (
            f"{sample['places_not_reached']} files or ranges of files were not read to their end in time; the rest may"
            " differ. To allow more time: --seconds"
        )
    for reason, found in passed_over.items():
        yield f"Passed over in the sample: {found['count']:,} {reason}, such as {found['names'][0]}."


def coverage_lines(curve: Sequence[Mapping[str, float]]) -> Iterator[str]:
    """Yield the lines of a coverage curve: words, share of tokens, and the interval if there is one."""
    if not curve:
        return
    rows = [("most frequent words", "tokens covered", "95 in 100")]
    rows += [(f"{each['words']:,}", _show("share", each["share"]), _show_interval("share", each)) for each in curve]
    yield from aligned(rows if any("low" in each for each in curve) else [row[:2] for row in rows])


def _stages(memory: Mapping[str, float], figures: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    rows: list[tuple[str, ...]] = [("stage", "time", "memory", "disk")]
    seconds = {stage: figures[name]["value"] for stage in STAGES if (name := f"seconds.{stage}") in figures}
    disk = {stage: figures[name]["value"] for what, stage in MAKERS.items() if (name := f"bytes.{what}") in figures}
    for stage in (stage for stage in STAGES if stage in {**seconds, **disk}):
        sizes = [format_bytes(found[stage]) if found.get(stage) else "" for found in (memory, disk)]
        rows.append((stage, format_seconds(seconds[stage]) if stage in seconds else "", *sizes))
    yield from aligned(
        [*rows, ("together", format_seconds(sum(seconds.values())), "", format_bytes(sum(disk.values())))]
    )


def _training(training: Mapping[str, Any]) -> Iterator[str]:
    rows = [("training with", "rows", "parameters", "tokens", "epochs", "tokens/s", "time", "memory", "tried")]
    rows += [
        (
            name,
            f"{each['rows']:,}",
            f"{each['parameters'] / 1e6:,.1f} M",
            f"{each['tokens']:,}",
            f"{each['epochs']:.2f}",
            f"{each['tokens_per_second']:,.0f}",
            format_seconds(each["seconds"]),
            format_bytes(each["memory_bytes"]),
            "yes" if each["is_measured"] else "by its products",
        )
        for name, each in training.items()
    ]
    yield from aligned(rows)


def describe_comparison(figures: Mapping[str, Mapping[str, Any]], differences: Sequence[str]) -> Iterator[str]:
    """Yield the lines that show planned figures beside the actual ones, as `compare` returns them."""
    rows = [("", "planned", "actual", "deviation", "in the interval")]
    for name, each in figures.items():
        planned, actual = (_show(name, each[key]) for key in ("planned", "actual"))
        verdict = "yes" if each["is_within"] else f"no ({_show_interval(name, each)})"
        rows.append((_title(name), planned, actual, f"{each['deviation']:+.1%}", verdict))
    yield from aligned(rows)
    if differences:
        yield f"Settings have changed since the plan was made: {', '.join(differences)}."
