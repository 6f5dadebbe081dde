"""A plan as lines for people."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from elmo_zh.planning.comparison import Comparison
from elmo_zh.planning.estimates import Estimate
from elmo_zh.run.reporter import format_bytes, format_seconds

TITLES = {
    "documents": "documents",
    "characters": "characters",
    "kept_characters": "of them kept",
    "sentences": "sentences",
    "tokens": "tokens",
    "distinct_words": "distinct words",
    "rows": "vocabulary rows",
    "coverage": "tokens covered",
}
_STAGES = ("segment", "vocab", "word2vec", "encode", "train")
_MADE_BY = {
    "segmented": "segment",
    "ids": "encode",
    "word2vec": "word2vec",
    "checkpoints": "train",
    "model": "export",
}


def title_of(name: str) -> str:
    """Return what a figure is called."""
    kind, _, what = name.partition(".")
    return TITLES.get(name, f"{what}, {'time' if kind == 'seconds' else 'disk'}")


def show_figure(name: str, value: float) -> str:
    """Return a figure for people, in its own unit."""
    if name == "coverage":
        return f"{value:.2%}"
    if name.startswith("seconds."):
        return format_seconds(value)
    return format_bytes(value) if name.startswith("bytes.") else f"{value:,.0f}"


def show_interval(name: str, estimate: Estimate) -> str:
    """Return the ends of an estimate, or that it is exact."""
    if estimate.is_exact:
        return "exact"
    return f"{show_figure(name, estimate.low)} to {show_figure(name, estimate.high)}"


def describe_plan(plan: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a plan."""
    figures = {name: Estimate.load(values) for name, values in plan["figures"].items()}
    yield from _sample(plan["sample"], plan["passed_over"])
    yield ""
    rows = [("corpus", "about", "95 in 100")]
    rows += [
        (title_of(name), show_figure(name, figures[name].value), show_interval(name, figures[name])) for name in TITLES
    ]
    yield from aligned(rows)
    yield ""
    yield from _coverage(plan, figures)
    yield ""
    yield from _stages(plan, figures)
    if plan["training"]:
        yield ""
        yield from _training(plan["training"])
    dump = Estimate.load(plan["embedding_bytes"])
    yield ""
    yield f"Vectors of the whole corpus, as section embed has them: about {format_bytes(dump.value)}."


def _sample(sample: Mapping[str, Any], passed_over: Mapping[str, Any]) -> Iterator[str]:
    files = f"{sample['files']:,} {'files' if sample['files'] != 1 else 'file'}"
    if sample["is_all"]:
        yield f"All of the corpus was read: {files}, {format_bytes(sample['bytes'])}."
    else:
        yield (
            f"Sample: {sample['pieces']} pieces, {format_bytes(sample['bytes'])} of {files}, about"
            f" {format_bytes(sample['corpus_bytes'])} unpacked ({sample['share']:.2%})."
        )
    if sample["places_not_reached"]:
        yield (
            f"{sample['places_not_reached']} places were not reached in time, since what is packed is read from its"
            " start; the ends of those files may differ. More time: --seconds"
        )
    for reason, found in passed_over.items():
        yield f"Passed over in the sample: {found['count']:,} {reason}, such as {found['names'][0]}."


def _coverage(plan: Mapping[str, Any], figures: Mapping[str, Estimate]) -> Iterator[str]:
    rows = [("most frequent words", "tokens covered", "95 in 100")]
    for point in plan["coverage_curve"]:
        ends = "exact" if point["low"] == point["high"] else f"{point['low']:.1%} to {point['high']:.1%}"
        rows.append((f"{point['words']:,}", f"{point['share']:.1%}", ends))
    yield from aligned(rows)
    yield (
        f"Recommended: vocab.size = {plan['recommended_vocab_size']:,} (95% covered, or twice as many words add less"
        f" than one point); set: {plan['settings']['vocab']['size']:,}, which gives {figures['rows'].value:,.0f} rows."
    )


def _stages(plan: Mapping[str, Any], figures: Mapping[str, Estimate]) -> Iterator[str]:
    rows = [("stage", "time", "memory", "disk")]
    for stage in (*_STAGES, "export"):
        seconds = figures.get(f"seconds.{stage}")
        disk = [
            figures[f"bytes.{what}"].value
            for what, maker in _MADE_BY.items()
            if maker == stage and f"bytes.{what}" in figures
        ]
        memory = plan["memory_bytes"].get(stage)
        if seconds or disk:
            rows.append(
                (
                    stage,
                    format_seconds(seconds.value) if seconds else "",
                    format_bytes(memory) if memory else "",
                    format_bytes(sum(disk)) if disk else "",
                )
            )
    total = sum(figure.value for name, figure in figures.items() if name.startswith("seconds."))
    size = sum(figure.value for name, figure in figures.items() if name.startswith("bytes."))
    rows.append(("together", format_seconds(total), "", format_bytes(size)))
    yield from aligned(rows)


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


def describe_comparison(comparisons: Sequence[Comparison], differences: Sequence[str]) -> Iterator[str]:
    """Yield the lines of what was planned beside what came of it."""
    rows = [("", "planned", "actual", "deviation", "in the interval")]
    rows += [
        (
            title_of(each.name),
            show_figure(each.name, each.planned.value),
            show_figure(each.name, each.actual),
            f"{each.deviation:+.1%}",
            "yes" if each.is_within else f"no ({show_interval(each.name, each.planned)})",
        )
        for each in comparisons
    ]
    yield from aligned(rows)
    if differences:
        yield f"Settings have changed since the plan was made: {', '.join(differences)}."


def aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the rows of a table, first column to the left, others to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        yield "  ".join(cells).rstrip()
